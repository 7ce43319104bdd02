"""`Reference`: what lists are measured against, prepared once and used for every measurement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.popularity import ITEM_GROUPS, ItemGroups, UserGroups, popularity_order
from caged.data.seen import Seen, check_same_rows, find
from caged.data.shown import ShownAtRandom
from caged.errors import DataError
from caged.evaluation import bias
from caged.evaluation.groups import Groups
from caged.evaluation.shown import Candidates


@dataclass(frozen=True, eq=False)
class Reference:
    """Training pairs, further seen pairs and relevant pairs, with everything that metrics derive from them.

    `relevant` is the evaluated part: test, or valid while validating. `valid` is given only when testing: it is then
    seen, hence masked. Without `relevant`, accuracy is undefined. A relevant pair that was seen is an error. `chosen`
    are groups that somebody chose; else there are the usual ones alone. `shown` is what chance showed, liked (these
    pairs are relevant) and not (these are in no part).
    """

    train: Interactions
    valid: Interactions | None = None
    relevant: Interactions | None = None
    chosen: Groups | None = None
    shown: ShownAtRandom | None = None

    def __post_init__(self) -> None:
        if self.relevant is not None:
            check_same_rows(self.train, self.relevant)
        leaked = 0 if self.relevant is None else self.seen.shared_with(self.relevant)
        if leaked:
            raise DataError(
                f"{leaked} of the {len(self.relevant_keys)} relevant pairs were also seen in train or valid, which "
                "makes every number too good; remove them or split again"
            )
        if self.shown is not None:
            self._check_shown(self.shown)

    def _check_shown(self, shown: ShownAtRandom) -> None:
        check_same_rows(self.train, shown.not_liked)
        for keys, part in ((self.seen.keys, "train or valid"), (self.relevant_keys, "test")):
            shared = int(np.count_nonzero(find(keys, shown.not_liked.keys) >= 0))
            if shared:
                raise DataError(
                    f"{shared} of the {len(shown.not_liked)} pairs of test_negative are also in {part}, so they were "
                    "liked after all; remove them from one of the two"
                )

    @cached_property
    def candidates(self) -> Candidates | None:
        """What was shown at random to users who liked some of it."""
        return None if self.shown is None else Candidates.of(self.shown)

    @property
    def user_count(self) -> int:
        return self.train.user_count

    @property
    def item_count(self) -> int:
        return self.train.item_count

    @cached_property
    def seen(self) -> Seen:
        return Seen(self.train, self.valid)

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
    def groups(self) -> Groups:
        return Groups(self.train) if self.chosen is None else self.chosen

    @property
    def item_groups(self) -> ItemGroups:
        return self.groups.items

    @property
    def user_groups(self) -> UserGroups:
        return self.groups.users

    @cached_property
    def popularity_position(self) -> Array:
        """Where each item stands in `popularity_order`, from 0; an item that nobody used stands behind any number."""
        order = popularity_order(self.item_groups.degrees)
        position = np.full(self.item_count, np.iinfo(np.int64).max, dtype=np.int64)
        position[order] = np.arange(len(order))
        return position

    @cached_property
    def relevant_counts(self) -> dict[str | None, Array]:
        """Relevant items per user row, of all items (None), and of popular and niche ones."""
        if self.relevant is None:
            return dict.fromkeys((None, *ITEM_GROUPS), np.zeros(self.user_count, dtype=np.int64))
        popular = self._per_user(self.relevant.users[self.item_groups.popular[self.relevant.items]])
        total = self.relevant.user_degrees
        return {None: total, "popular": popular, "niche": total - popular}

    @cached_property
    def eligible_counts(self) -> dict[str, Array]:
        """Unseen popular and niche items per user row."""
        users, items = np.divmod(self.seen.keys, max(self.item_count, 1))
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
