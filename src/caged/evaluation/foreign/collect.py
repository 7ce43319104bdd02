"""From the rows of somebody else's table to `PackedLists`: who, in which order, without repeats.

In memory are, per row of the table, the item and what orders it; lists are made some thousand users at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from caged.data.ids import Array, IdMap
from caged.evaluation.foreign.ordering import Entries, by_user, ordered, without_repeats
from caged.evaluation.foreign.scan import Scan
from caged.evaluation.lists import PackedLists
from caged.evaluation.parallel import in_order

BLOCK_ROWS = 1 << 18  # of the table, that are sorted at a time
MOST_USERS = 1 << 16  # of such a block

Seen = Callable[[Array, Array], Array]


def collect(
    scanned: Scan, user_ids: IdMap, item_ids: IdMap, *, width: int | None, drop_seen: Seen | None = None
) -> tuple[PackedLists, dict[str, int]]:
    """The lists in the rows of `user_ids` and `item_ids`, cut to `width` places, and a count of every treatment.

    Without a width they stay whole, and say which of their items are equally good.

    Order: rank ascending where there is one, then score descending, then item row. Repeated pairs keep their best
    place. Where seen items are to be dropped, `drop_seen` tells for user and item rows (users ascending) which those
    are; later items then move up.
    """
    flat = _scattered(scanned, user_ids, item_ids)
    scanned.kept = None  # whose place `flat` has taken
    counts = Counter(rows=scanned.rows, duplicate_rows=0, duplicate_ranks=0, lists_with_rank_gaps=0)
    lengths = np.zeros(len(flat.users), dtype=np.int64)
    levels = np.empty(scanned.rows, dtype=np.int32) if width is None else None
    end = 0

    def cleaned(block: tuple[int, int]) -> _Cleaned:
        return _cleaned(flat.block(*block), flat.users[slice(*block)], drop_seen, width)

    for (start, stop), part in in_order(cleaned, _blocks(flat.offsets)):
        counts.update(part.counts)
        lengths[start:stop] = part.lengths
        # Lists only get shorter, so this never reaches rows that are still to be read.
        flat.items[end : end + len(part.items)] = part.items
        if levels is not None and part.levels is not None:
            levels[end : end + len(part.items)] = part.levels
        end += len(part.items)
    kept = lengths > 0
    ties = None if levels is None else levels[:end]
    packed = PackedLists(flat.users[kept], np.append(0, np.cumsum(lengths[kept])), flat.items[:end], ties)
    return packed, {**counts, "rows_used": end}


@dataclass(eq=False)
class _Flat:
    """The rows of the table by user, in no order within a user."""

    users: Array  # int64, ascending
    offsets: Array
    items: Array  # int32
    rank: Array | None
    score: Array | None

    def block(self, start: int, stop: int) -> Entries:
        rows = slice(int(self.offsets[start]), int(self.offsets[stop]))
        local = np.repeat(np.arange(stop - start, dtype=np.uint16), np.diff(self.offsets[start : stop + 1]))
        rank = None if self.rank is None else self.rank[rows]
        score = None if self.score is None else self.score[rows]
        return Entries(local, self.items[rows], rank, score)


def _scattered(scanned: Scan, user_ids: IdMap, item_ids: IdMap) -> _Flat:
    rows_of_user = np.zeros(len(user_ids), dtype=np.int64)
    user_row, item_row = scanned.users.rows_in(user_ids), scanned.items.rows_in(item_ids)
    mentioned = np.flatnonzero(scanned.rows_of_user)
    rows_of_user[mentioned if user_row is None else user_row[mentioned]] = scanned.rows_of_user[mentioned]
    next_place = np.cumsum(rows_of_user) - rows_of_user
    users = np.flatnonzero(rows_of_user)
    flat = _Flat(users, np.append(next_place[users], scanned.rows), np.empty(scanned.rows, np.int32), None, None)
    for piece in scanned.pieces():
        place, order = _places(piece.users if user_row is None else user_row[piece.users], next_place)

        items = piece.items if item_row is None else item_row[piece.items]
        flat.items[place] = items if order is None else items[order]
        flat.rank = _put(flat.rank, piece.rank, scanned.rows, place, order)
        flat.score = _put(flat.score, piece.score, scanned.rows, place, order)
    return flat


def _put(
    target: Array | None, values: Array | None, rows: int, place: Array | slice, order: Array | None
) -> Array | None:
    if values is None:
        return None
    target = np.empty(rows, values.dtype) if target is None else target
    target[place] = values if order is None else values[order]
    return target


def _places(users: Array, next_place: Array) -> tuple[Array | slice, Array | None]:
    """Where the rows of these users go, and the order to put them there (None: as they are); moves `next_place` on."""
    order = None
    if bool((users[1:] < users[:-1]).any()):
        order, users = by_user(users)
    opens = np.flatnonzero(np.append(True, users[1:] != users[:-1]))
    lengths = np.diff(np.append(opens, len(users)))
    owners = users[opens]
    shift = next_place[owners] - opens
    next_place[owners] += lengths
    if bool((shift == shift[:1]).all()):  # the usual file: by user, so that all rows move together
        return slice(int(shift[0]), int(shift[0]) + len(users)), order
    return np.arange(len(users)) + np.repeat(shift, lengths), order


def _blocks(offsets: Array) -> Iterator[tuple[int, int]]:
    """Ranges of users with about `BLOCK_ROWS` rows, at least one user and at most `MOST_USERS`."""
    start, count = 0, len(offsets) - 1
    while start < count:
        stop = int(np.searchsorted(offsets, offsets[start] + BLOCK_ROWS, side="right")) - 1
        stop = min(max(stop, start + 1), start + MOST_USERS, count)
        yield start, stop
        start = stop


class _Cleaned(NamedTuple):
    """The lists of a block of users."""

    lengths: Array
    items: Array
    counts: dict[str, int]
    levels: Array | None  # only of whole lists


def _cleaned(block: Entries, users: Array, seen: Seen | None, width: int | None) -> _Cleaned:
    block = ordered(block)
    distinct = without_repeats(block)
    local, items = distinct.local, distinct.items
    counts = {
        "lists_with_rank_gaps": block.lists_with_rank_gaps(),
        "duplicate_rows": len(block) - len(distinct),
        "duplicate_ranks": distinct.shared_ranks(),
        **distinct.score_oddities(),
    }
    levels = distinct.levels() if width is None else None
    if seen is not None:
        unseen = ~seen(users[local], items)
        counts["seen_rows"] = len(unseen) - int(np.count_nonzero(unseen))
        local, items = local[unseen], items[unseen]
        levels = None if levels is None else levels[unseen]
    lengths = np.bincount(local, minlength=len(users))
    if width is not None and lengths.max(initial=0) > width:
        within = np.arange(len(local)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        items, lengths = items[within < width], np.minimum(lengths, width)
    return _Cleaned(lengths, items, counts, levels)
