"""`Reference`: what lists are measured against, prepared once and used for every measurement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.popularity import ITEM_GROUPS, ItemGroups, UserGroups
from caged.errors import DataError
from caged.evaluation import bias


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
class Reference:
    """Training pairs, further seen pairs and relevant pairs, with everything that metrics derive from them.

    `relevant` is the evaluated part: test, or valid while validating. `valid` is given only when testing: it is then
    seen, hence masked. Without `relevant`, accuracy is undefined. A relevant pair that was seen is an error.
    """

    train: Interactions
    valid: Interactions | None = None
    relevant: Interactions | None = None

    def __post_init__(self) -> None:
        for part in (self.valid, self.relevant):
            if part is not None and not (part.user_ids == self.train.user_ids and part.item_ids == self.train.item_ids):
                raise DataError("the parts of a split must share their users and items; reindex them on one catalogue")
        leaked = int(np.count_nonzero(find(self.seen_keys, self.relevant_keys) >= 0))
        if leaked:
            raise DataError(
                f"{leaked} of the {len(self.relevant_keys)} relevant pairs were also seen in train or valid, which "
                "makes every number too good; remove them or split again"
            )

    @property
    def user_count(self) -> int:
        return self.train.user_count

    @property
    def item_count(self) -> int:
        return self.train.item_count

    @property
    def seen(self) -> tuple[Interactions, ...]:
        """The parts whose pairs are not recommended."""
        return (self.train,) if self.valid is None else (self.train, self.valid)

    @cached_property
    def seen_keys(self) -> Array:
        if self.valid is None:
            return self.train.keys
        # A stable sort merges the two ascending runs in linear time; np.unique would hash every key.
        keys = np.sort(np.concatenate((self.train.keys, self.valid.keys)), kind="stable")
        return keys[np.diff(keys, prepend=-1) > 0]

    def were_seen(self, users: Array, items: Array) -> Array:
        """Which pairs are in train or valid; users ascending."""
        if len(users) == 0:
            return np.zeros(0, dtype=bool)
        width = np.int64(max(self.item_count, 1))
        start, stop = np.searchsorted(self.seen_keys, [users[0] * width, (users[-1] + 1) * width])
        return np.asarray(find(self.seen_keys[start:stop], users * width + items) >= 0)

    @cached_property
    def relevant_keys(self) -> Array:
        return np.zeros(0, dtype=np.int64) if self.relevant is None else self.relevant.keys

    @cached_property
    def relevant_users(self) -> Array:
        """Rows of the users with a relevant item, ascending."""
        return np.flatnonzero(self.relevant_counts[None])

    @cached_property
    def trained_users(self) -> int:
        """M, the number of users with a training interaction."""
        return int(np.count_nonzero(self.train.user_degrees))

    @cached_property
    def item_groups(self) -> ItemGroups:
        return ItemGroups.from_degrees(self.train.item_degrees)

    @cached_property
    def user_groups(self) -> UserGroups:
        return UserGroups.from_interactions(self.train.users, self.train.items, self.user_count, self.item_groups)

    @cached_property
    def relevant_counts(self) -> dict[str | None, Array]:
        """Relevant items per user row, of all items (None) and by item group."""
        if self.relevant is None:
            return dict.fromkeys((None, *ITEM_GROUPS), np.zeros(self.user_count, dtype=np.int64))
        popular = self._per_user(self.relevant.users[self.item_groups.popular[self.relevant.items]])
        total = self.relevant.user_degrees
        return {None: total, "popular": popular, "niche": total - popular}

    @cached_property
    def eligible_counts(self) -> dict[str, Array]:
        """Unseen items per user row and item group."""
        users, items = np.divmod(self.seen_keys, max(self.item_count, 1))
        return {
            group: np.count_nonzero(self.item_groups.member(group))
            - self._per_user(users[self.item_groups.member(group)[items]])
            for group in ITEM_GROUPS
        }

    @cached_property
    def profile_popularity(self) -> Array:
        """Mean degree of the training items per user row, NaN without a profile."""
        return bias.profile_popularity(self.train.users, self.train.items, self.item_groups.degrees, self.user_count)

    @cached_property
    def profile_sections(self) -> Array:
        """Head, middle and tail shares of the training items per user row: (users, 3)."""
        return bias.section_shares(self.train.users, self.train.items, self.item_groups.section, self.user_count)

    def _per_user(self, users: Array) -> Array:
        return np.bincount(users, minlength=self.user_count)
