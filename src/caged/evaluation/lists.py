"""`Lists`: recommendation lists of different lengths in one padded table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from caged.arguments import whole_number
from caged.data.ids import Array
from caged.errors import DataError

PADDING = -1
USUAL_K = 20


def check_k(k: Any, item_count: int) -> int:
    """A cut-off that a user asked for must lie within the catalogue."""
    advice = ", the number of items in the catalogue: choose another k"
    return whole_number("k", k, least=1, most=item_count, advice=advice)


def usual_k(item_count: int) -> int:
    """The cut-off where nobody asked for one. A list of all items finds everything, so small catalogues get half.

    >>> [usual_k(items) for items in (1000, 20, 19, 3)]
    [20, 20, 9, 1]
    """
    return USUAL_K if item_count >= USUAL_K else max(1, item_count // 2)


class FlatLists(NamedTuple):
    """One entry per listed item, by (user, rank)."""

    users: Array
    items: Array
    ranks: Array  # from 1
    scores: Array | None


@dataclass(frozen=True, eq=False)
class Lists:
    """Per user distinct items, best first; shorter lists are padded with -1 on the right.

    `users` are ascending row numbers. A row may be padding throughout: a user for whom nothing is left to recommend.

    >>> lists = Lists.from_flat(np.array([4, 4, 2]), np.array([7, 0, 3]))
    >>> lists.users.tolist(), lists.items.tolist(), lists.lengths.tolist()
    ([2, 4], [[3, -1], [7, 0]], [1, 2])
    """

    users: Array  # int64 (n,)
    items: Array  # integers (n, width)
    scores: Array | None = None  # float32 (n, width), -inf on padding

    def __post_init__(self) -> None:
        if self.items.ndim != 2 or len(self.items) != len(self.users):
            raise DataError(f"lists of {len(self.users)} users cannot have items of shape {self.items.shape}")
        if self.scores is not None and self.scores.shape != self.items.shape:
            raise DataError(f"lists have items of shape {self.items.shape} but scores of {self.scores.shape}")
        if len(self.users) and (self.users[0] < 0 or bool((self.users[1:] <= self.users[:-1]).any())):
            raise DataError("lists must be sorted by user row with one list per user; merge and sort them")
        if self.items.size and self.items.min() < PADDING:
            raise DataError(f"item rows in lists must be at least 0, or -1 for padding; saw {self.items.min()}")
        listed = self.items != PADDING
        if bool((listed[:, 1:] & ~listed[:, :-1]).any()):
            raise DataError("a list has a gap: padding (-1) may only follow the last item")
        ascending = np.sort(self.items, axis=1)
        repeated = (ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] != PADDING)
        if bool(repeated.any()):
            user = self.users[np.flatnonzero(repeated.any(axis=1))[0]]
            raise DataError(f"the list of user row {user} names an item twice; items of a list must be distinct")

    @classmethod
    def from_flat(cls, users: Array, items: Array, scores: Array | None = None) -> Lists:
        """From one entry per listed item; the entries of a user are in rank order, users in any order."""
        order = np.argsort(users, kind="stable")
        listed, row, lengths = np.unique(users[order], return_inverse=True, return_counts=True)
        column = np.arange(len(order)) - (np.cumsum(lengths) - lengths)[row]
        shape = (len(listed), int(lengths.max(initial=0)))
        padded = np.full(shape, PADDING, dtype=np.int64)
        padded[row, column] = items[order]
        padded_scores = None
        if scores is not None:
            padded_scores = np.full(shape, -np.inf, dtype=np.float32)
            padded_scores[row, column] = scores[order]
        return cls(listed.astype(np.int64), padded, padded_scores)

    def block(self, start: int, stop: int, width: int) -> Array:
        """The padded items of the users in these places of `users`, at most `width` of each."""
        return self.items[start:stop, :width]

    def chosen(self, users: Array) -> Lists:
        """The lists of some of the users (rows, ascending)."""
        places = np.searchsorted(self.users, users)
        return Lists(self.users[places], self.items[places])

    def parts(self, places: int) -> Iterator[Lists]:
        """Those of neighbouring users, with at most so many places (or one user) in each; one part for nobody."""
        users = max(1, places // max(1, self.width))
        for start in range(0, max(1, len(self)), users):
            own = slice(start, start + users)
            yield Lists(self.users[own], self.items[own], None if self.scores is None else self.scores[own])

    def flat(self) -> FlatLists:
        """The inverse of `from_flat`."""
        row, column = np.nonzero(self.items != PADDING)
        scores = None if self.scores is None else self.scores[row, column]
        return FlatLists(self.users[row], self.items[row, column], column + 1, scores)

    def __len__(self) -> int:
        return len(self.users)

    @property
    def width(self) -> int:
        return int(self.items.shape[1])

    @cached_property
    def lengths(self) -> Array:
        return np.asarray(np.count_nonzero(self.items != PADDING, axis=1))


@dataclass(frozen=True, eq=False)
class PackedLists:
    """Many lists without padding: those of `users[n]` are `items[offsets[n]:offsets[n + 1]]`, best first.

    For more lists than a padded table should hold; items of a list are distinct, which whoever makes one has to see to.
    `levels`, where they are kept, say which items of a list are equally good: each is the place, from 0, of the first
    item that is as good.

    >>> PackedLists(np.array([2, 4]), np.array([0, 1, 3]), np.array([3, 7, 0])).block(0, 2, 2).tolist()
    [[3, -1], [7, 0]]
    """

    users: Array  # int64 (n,), ascending
    offsets: Array  # int64 (n + 1,)
    items: Array  # int32
    levels: Array | None = None  # int32

    def __len__(self) -> int:
        return len(self.users)

    @property
    def lengths(self) -> Array:
        return np.diff(self.offsets)

    def cut(self, width: int) -> PackedLists:
        """At most `width` places of each, without levels."""
        lengths = self.lengths
        if lengths.max(initial=0) <= width:
            return PackedLists(self.users, self.offsets, self.items)
        within = np.arange(len(self.items)) - np.repeat(self.offsets[:-1], lengths)
        return PackedLists(self.users, np.append(0, np.cumsum(np.minimum(lengths, width))), self.items[within < width])

    def block(self, start: int, stop: int, width: int) -> Array:
        """The padded items of the users in these places of `users`, at most `width` of each."""
        offsets = self.offsets[start : stop + 1]
        lengths = np.diff(offsets)
        longest = int(lengths.max(initial=0))
        items = self.items[offsets[0] : offsets[-1]]
        if len(items) == longest * len(lengths):
            return items.reshape(len(lengths), longest)[:, :width]
        padded = np.full((len(lengths), longest), PADDING, dtype=self.items.dtype)
        padded[np.arange(longest) < lengths[:, None]] = items
        return padded[:, :width]

    def chosen(self, users: Array) -> Lists:
        """The lists of some of the users (rows, ascending)."""
        places = np.searchsorted(self.users, users)
        lengths = self.lengths[places]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        items = self.items[np.repeat(self.offsets[places], lengths) + within]
        return Lists.from_flat(np.repeat(users, lengths), items)
