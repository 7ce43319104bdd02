"""Items that the same users have. Their similarities to all items are the same, so one of them is compared for all.

Where a catalogue is long and its log is short, these are many: of the 9,724 items of ml-latest-small, 3,719 have the
users of another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caged.data.ids import Array

MOST_USERS = 64  # of an item that is looked at: hardly two with more are alike, and their users would fill the memory


class Alike:
    """Groups of items that the same users have, each known by its smallest item; items without users are in none.

    `by_item` (N, M) is CSR with sorted users. Its weights depend on users and on degrees, so they are alike too.
    """

    def __init__(self, by_item: Any) -> None:
        head, has_users = _heads(by_item), np.diff(by_item.indptr) > 0
        self._sizes: Array = np.bincount(head[has_users], minlength=len(head))
        self._first: Array = np.cumsum(self._sizes) - self._sizes
        self._items: Array = np.argsort(np.where(has_users, head, len(head)), kind="stable")
        self.heads: Array = np.flatnonzero(self._sizes)

    def members(self, heads: Array) -> tuple[Array, Array]:
        """The items of some groups, and for each of them the place of its group among `heads`."""
        sizes = self._sizes[heads]
        group = np.repeat(np.arange(len(heads)), sizes)
        shift = self._first[heads] - (np.cumsum(sizes) - sizes)
        return self._items[np.arange(len(group)) + shift[group]], group


def _heads(by_item: Any) -> Array:
    """(N,): the smallest item that has the same users."""
    degrees = np.diff(by_item.indptr)
    heads = np.arange(len(degrees))
    few = np.flatnonzero(degrees <= MOST_USERS)
    users, ends = by_item.indices.tobytes(), by_item.indptr * by_item.indices.itemsize
    spans = zip(few.tolist(), ends[few].tolist(), ends[few + 1].tolist(), strict=True)
    smallest: dict[bytes, int] = {}
    heads[few] = [smallest.setdefault(users[first:last], item) for item, first, last in spans]
    return heads


def without_own(columns: Array, values: Array, items: Array) -> tuple[Array, Array]:
    """(b, k + 1) lists of items -> (b, k): each without the item itself, or without its last entry."""
    own = columns == items[:, None]
    place = own.argmax(1)  # of item 0 the first: padding is 0 too, and comes last
    place[~own[np.arange(len(items)), place]] = columns.shape[1] - 1
    before = np.arange(columns.shape[1] - 1) < place[:, None]
    return np.where(before, columns[:, :-1], columns[:, 1:]), np.where(before, values[:, :-1], values[:, 1:])
