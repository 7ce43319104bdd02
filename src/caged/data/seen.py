"""`Seen`: what users had before, which is neither recommended to them nor relevant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caged.data.cgraph.pairs import fingerprint_together, of_one_folder
from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.some_users import of_users
from caged.errors import DataError

FEW = 8  # at most one in so many users: then their rows are looked up, not all pairs


def find(sorted_keys: Array, wanted: Array) -> Array:
    """Positions of `wanted` in strictly ascending keys, -1 where absent.

    >>> find(np.array([2, 5, 9]), np.array([[5, 3], [9, 10]])).tolist()
    [[1, -1], [2, -1]]
    """
    if len(sorted_keys) == 0:
        return np.full(wanted.shape, -1, dtype=np.int64)
    position = np.searchsorted(sorted_keys, wanted)
    candidate = sorted_keys[np.minimum(position, len(sorted_keys) - 1)]
    return np.where(candidate == wanted, position, -1)


@dataclass(frozen=True, eq=False)
class Seen:
    """The pairs of train and, where given, of valid.

    >>> had = Interactions.from_ids(["ann", "ann", "bob"], ["x", "y", "x"])
    >>> Seen(had).holds(np.array([0, 1]), np.array([1, 1])).tolist()
    [True, False]
    """

    train: Interactions
    valid: Interactions | None = None

    def __post_init__(self) -> None:
        if self.valid is not None:
            check_same_rows(self.train, self.valid)

    @property
    def fingerprint(self) -> str:
        """Of all these pairs, whichever part they are in."""
        known = None if self.valid is None else fingerprint_together(self.train, self.valid)
        if known is not None:
            return known
        whole = self.train if self.valid is None else Interactions.joined([self.train, self.valid])
        return whole.fingerprint

    @property
    def user_count(self) -> int:
        return self.train.user_count

    @property
    def item_count(self) -> int:
        return self.train.item_count

    @cached_property
    def keys(self) -> Array:
        """As `Interactions.keys`: ascending and distinct."""
        if self.valid is None:
            return self.train.keys
        # A stable sort merges the two ascending runs in linear time; np.unique would hash every key.
        keys = np.sort(np.concatenate((self.train.keys, self.valid.keys)), kind="stable")
        return keys[np.diff(keys, prepend=-1) > 0]

    def shared_with(self, part: Interactions) -> int:
        """How many pairs of `part` were seen."""
        if all(of_one_folder(part, had) for had in (self.train, self.valid) if had is not None):
            return 0  # and no key of a pair is made to find that out
        users = np.flatnonzero(part.user_degrees)
        if FEW * len(users) <= self.user_count:
            valid = None if self.valid is None else of_users(self.valid, users)
            keys = Seen(of_users(self.train, users), valid).keys
        else:
            keys = self.keys
        return int(np.count_nonzero(find(keys, part.keys) >= 0))

    def holds(self, users: Array, items: Array) -> Array:
        """Which pairs were seen; users ascending."""
        if len(users) == 0:
            return np.zeros(0, dtype=bool)
        width = np.int64(max(self.item_count, 1))
        start, stop = np.searchsorted(self.keys, [users[0] * width, (users[-1] + 1) * width])
        return np.asarray(find(self.keys[start:stop], users * width + items) >= 0)

    def by_user(self) -> tuple[Array, Array]:
        """CSR: the items of user u are items[offsets[u]:offsets[u + 1]]."""
        if self.valid is None:
            return self.train.by_user()
        users, items = np.divmod(self.keys, max(self.item_count, 1))
        return np.concatenate(([0], np.cumsum(np.bincount(users, minlength=self.user_count)))), items


def check_same_rows(train: Interactions, part: Interactions) -> None:
    if not (part.user_ids == train.user_ids and part.item_ids == train.item_ids):
        raise DataError("the parts of a split must share their users and items; reindex them on one catalogue")
