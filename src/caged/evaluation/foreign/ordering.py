"""The rows of some lists, as they came, put in list order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caged.data.ids import Array

LARGEST_PADDING = 8  # times as many places as rows may a table of lists side by side have


@dataclass(frozen=True, eq=False)
class Entries:
    """Rows of a table of lists, by user; `local` numbers the users of this block from 0, ascending."""

    local: Array  # uint16
    items: Array
    rank: Array | None
    score: Array | None

    def __len__(self) -> int:
        return len(self.local)

    def taken(self, chosen: Array) -> Entries:
        rank = None if self.rank is None else self.rank[chosen]
        score = None if self.score is None else self.score[chosen]
        return Entries(self.local[chosen], self.items[chosen], rank, score)

    @cached_property
    def same_user(self) -> Array:
        """For each row but the first, whether the row before is of the same user."""
        return np.asarray(self.local[1:] == self.local[:-1])

    def lists_with_rank_gaps(self) -> int:
        """Users whose ranks, once in order, leave out a number; a list may start at 0 or 1."""
        if self.rank is None or len(self) == 0:
            return 0
        opens = np.append(0, np.flatnonzero(~self.same_user) + 1)
        starts_late = opens[self.rank[opens] > 1]
        gap = np.flatnonzero(self.same_user & (self._rank_steps > 1)) + 1
        return len(np.unique(self.local[np.append(starts_late, gap)]))

    def shared_ranks(self) -> int:
        """Rows that have the rank of the row before, within a list in order."""
        return 0 if self.rank is None else int(np.count_nonzero(self.same_user & (self._rank_steps == 0)))

    def levels(self) -> Array:
        """For each row of lists in order, the place, from 0, of the first row of its list that is equally good.

        >>> rows = Entries(np.array([0, 0, 0, 1]), np.array([6, 5, 7, 5]), None, np.array([0.9, 0.5, 0.5, 0.5]))
        >>> rows.levels().tolist()
        [0, 1, 1, 0]
        """
        deciding = [values for values in (self.rank, self.score) if values is not None]
        equal = self.same_user.copy()
        for values in deciding:
            equal &= values[1:] == values[:-1]
        row = np.arange(len(self))
        opens = np.append(True, ~self.same_user)[: len(self)]
        place = row - np.maximum.accumulate(np.where(opens, row, 0))
        first = np.append(True, ~equal if deciding else np.ones_like(equal))[: len(self)]
        return np.asarray(place[np.maximum.accumulate(np.where(first, row, 0))].astype(np.int32))

    def score_oddities(self) -> dict[str, int]:
        """What scores of lists in order look wrong: none falls, ranks that contradict them, values without a limit."""
        if self.score is None or len(self) == 0:
            return {}
        opens = np.append(0, np.flatnonzero(~self.same_user) + 1)
        several = np.diff(np.append(opens, len(self))) > 1
        before, after = self.score[:-1], self.score[1:]
        falls, rises = (self._lists_where(self.same_user & moved, opens) for moved in (after < before, after > before))
        found = {
            "lists_of_several": several,
            "lists_with_constant_scores": several & ~falls & ~rises,
            "lists_rank_against_score": rises,
            "lists_rank_reversed": rises & ~falls,
        }
        counts = {name: int(np.count_nonzero(lists)) for name, lists in found.items()}
        unlimited = np.abs(self.score) >= np.finfo(np.float32).max  # libraries mask with either
        return {**counts, "rows_with_infinite_scores": int(np.count_nonzero(unlimited))}

    def _lists_where(self, between: Array, opens: Array) -> Array:
        """Which lists have a pair of neighbours that the mask marks; `opens` are the first rows of the lists."""
        marked = np.zeros(len(opens), dtype=bool)
        marked[np.searchsorted(opens, np.flatnonzero(between), side="right") - 1] = True
        return marked

    @cached_property
    def _rank_steps(self) -> Array:
        assert self.rank is not None  # asked for only where there are ranks
        return np.diff(self.rank)


def ordered(entries: Entries) -> Entries:
    """By user, then rank ascending, score descending, item row ascending.

    >>> rows = Entries(np.array([0, 0, 0]), np.array([7, 5, 6]), None, np.array([0.5, 0.5, 0.9]))
    >>> ordered(rows).items.tolist()
    [6, 5, 7]
    """
    keys = _keys(entries)
    if _in_order(entries.same_user, keys):
        return entries
    lengths = np.bincount(entries.local)
    if len(lengths) * int(lengths.max()) > LARGEST_PADDING * len(entries):
        return entries.taken(np.lexsort([*reversed(keys), entries.local]))
    first = entries.taken(_order_by_rows(keys[:1], lengths))
    # Where no two rows of a list are equal in what decides first, the rest need not be looked at.
    return first if _in_order(first.same_user, _keys(first)) else entries.taken(_order_by_rows(keys, lengths))


def by_user(users: Array) -> tuple[Array, Array]:
    """The stable order by user, and the users in that order.

    A user and the place it came from, packed into one integer, need no stable sort: NumPy sorts plain integers several
    times faster.

    >>> [part.tolist() for part in by_user(np.array([3, 1, 3, 1]))]
    [[1, 3, 0, 2], [1, 1, 3, 3]]
    """
    packed = users.astype(np.int64) << 32
    packed |= np.arange(len(users))
    packed.sort()
    return packed & 0xFFFFFFFF, packed >> 32


def _order_by_rows(keys: Sequence[Array], lengths: Array) -> Array:
    """The order within each list, all lists side by side in one padded table: many short sorts are fast ones."""
    width = int(lengths.max())
    filled = np.arange(width) < lengths[:, None]
    place = np.full(filled.shape, -1, dtype=np.int64)
    place[filled] = np.arange(len(keys[0]))
    full = bool(filled.all())
    for key in reversed(keys):
        values = key[place]  # of the padding something, which is then replaced by what comes last
        if not full:
            values[place < 0] = np.inf if key.dtype.kind == "f" else np.iinfo(key.dtype).max
        # Equal to padding or not, what is listed stays in front of it: the sort is stable, the padding starts behind.
        place = np.take_along_axis(place, values.argsort(axis=1, kind="stable"), axis=1)
    return place.ravel() if full else place[place >= 0]


def _in_order(same_user: Array, keys: Sequence[Array]) -> bool:
    """Whether neighbours in a list are in order; keys are looked at only as far as needed."""
    undecided = same_user
    for key in keys:
        if bool((undecided & (key[1:] < key[:-1])).any()):
            return False
        undecided = undecided & (key[1:] == key[:-1])
        if not undecided.any():
            return True
    return True


def _keys(entries: Entries) -> list[Array]:
    """What decides the order within a list, most important first, each ascending."""
    ranks = [] if entries.rank is None else [entries.rank]
    scores = [] if entries.score is None else [-entries.score]
    return [*ranks, *scores, entries.items]


def without_repeats(entries: Entries) -> Entries:
    """Only the first place of every (user, item)."""
    pair = entries.local.astype(np.int64) << 32 | entries.items
    ascending = np.sort(pair)
    if not (ascending[1:] == ascending[:-1]).any():
        return entries
    first = np.unique(pair, return_index=True)[1]
    return entries.taken(np.sort(first))
