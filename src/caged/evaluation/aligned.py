"""`Aligned`: the lists of some users beside what they are measured against, and what metrics ask of both."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from caged.data.families import Family
from caged.data.ids import Array
from caged.data.popularity import BUCKETS, ITEM_GROUPS, ItemGroups
from caged.data.seen import find
from caged.errors import ConfigError
from caged.evaluation import bias, categories, exposure
from caged.evaluation.lists import PADDING
from caged.evaluation.reference import Reference
from caged.evaluation.shown import ShownBlock, ShownScores

FEW_PER_USER = 8  # pairs, on average; up to here comparing beats searching
_NEVER = np.iinfo(np.int64).max - 1  # the position of a relevant item that is not in the list


class _OnDemand(dict[str | None, Array]):
    """Of all items and of popular and niche ones as usual; of a chosen group made when it is asked for, and not kept:
    there may be many."""

    def __init__(
        self, usual: dict[str | None, Array], lists: Aligned, of_chosen: Callable[[Aligned, str], Array]
    ) -> None:
        super().__init__(usual)
        self._lists = weakref.proxy(lists)  # they keep this: a cycle would keep the tables of many blocks alive
        self._of_chosen = of_chosen

    def __missing__(self, group: str) -> Array:
        return self._of_chosen(self._lists, group)


@dataclass(eq=False)
class Aligned:
    """One row per user, with what several metrics share; nothing is computed before it is asked for."""

    reference: Reference
    users: Array  # rows, ascending
    items: Array  # (n, width), -1 throughout for a user without a list
    scores: ShownScores | None = None  # of what was shown at random
    _popularity: dict[int, Array] = field(default_factory=dict)  # by cut-off; several metrics need it
    _counted: dict[tuple[str, str, int], Array] = field(default_factory=dict)  # by what, family and cut-off
    _profile_categories: dict[str, Array] = field(default_factory=dict)  # by family; several cut-offs need it

    @property
    def groups(self) -> ItemGroups:
        return self.reference.item_groups

    @cached_property
    def listed(self) -> Array:
        return np.asarray(self.items != PADDING)

    @cached_property
    def has_list(self) -> Array:
        return bias.list_lengths(self.items, 1) > 0

    @cached_property
    def found(self) -> Array:
        """Per place the index of the pair among the relevant ones of these users, or -1."""
        return self._find(self.reference.relevant_keys[self._relevant_range])

    @cached_property
    def hits(self) -> dict[str | None, Array]:
        hit = self.found >= 0
        popular = hit & self.popular
        return _OnDemand({None: hit, "popular": popular, "niche": hit & ~popular}, self, Aligned._hits_of_chosen)

    @cached_property
    def popular(self) -> Array:
        """Which places hold a popular item; meaningless on padding."""
        return np.asarray(self.groups.popular.take(self.items))

    @cached_property
    def relevant(self) -> dict[str | None, Array]:
        usual = {group: counts[self.users] for group, counts in self.reference.relevant_counts.items()}
        return _OnDemand(usual, self, lambda lists, group: lists._count_of_chosen("relevant", group))

    @cached_property
    def profile_popularity(self) -> Array:
        """Mean degree of the training items, NaN without any."""
        return np.asarray(self.reference.profile_popularity[self.users])

    @cached_property
    def profile_sections(self) -> Array:
        """Head, middle and tail shares of the training items: (n, 3)."""
        return np.asarray(self.reference.profile_sections[self.users])

    @cached_property
    def unseen(self) -> Array:
        keys = self.reference.seen.keys
        return self.listed & (self._find(keys[self._range_in(keys)]) < 0)

    @cached_property
    def relevant_pairs(self) -> tuple[Array, Array, Array]:
        """(row of the user, degree of the item, position in the list) of every relevant pair of these users."""
        part = self.reference.relevant
        if part is None or len(part) == 0:
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, nothing
        users, items = part.users[self._relevant_range], part.items[self._relevant_range]
        position = np.full(len(users), _NEVER, dtype=np.int64)
        row, column = np.nonzero(self.found >= 0)
        position[self.found[row, column]] = column + 1
        owner = find(self.users, users)
        kept = owner >= 0
        return owner[kept], self.groups.degrees[items[kept]], position[kept]

    @cached_property
    def shown(self) -> ShownBlock:
        """What was shown to these users at random, with its scores."""
        return ShownBlock.empty(len(self.users)) if self.scores is None else self.scores.of_users(self.users)

    def shown_auc(self, group: str | None) -> Array:
        """Of a group of items only those that are liked; what was not liked all counts."""
        return self.shown.auc(None if group is None else self._in_group(self.shown.items, group))

    def _in_group(self, items: Array, group: str) -> Array:
        if group in ITEM_GROUPS:
            return np.asarray(self.groups.member(group)[items])
        family, place = self.reference.groups.item_family(group)
        return np.asarray((family.labels[:, items] == place).any(axis=0))

    def _find(self, keys: Array) -> Array:
        """Per place the index of its pair among ascending keys of these users, -1 where it is not there."""
        width = np.int64(max(self.reference.item_count, 1))
        if len(keys) > FEW_PER_USER * len(self.users):
            places = self.users[:, None] * width + self.items
            return np.where(self.listed, find(keys, places), -1)
        # A pair against every place of its user's list: many comparisons, each a hundred times cheaper than a search.
        users, items = np.divmod(keys, width)
        row = find(self.users, users)
        pair = np.flatnonzero(row >= 0)
        row = row[pair]
        match = np.flatnonzero(np.take(self.items, row, axis=0) == items[pair, None].astype(self.items.dtype))
        hit, column = np.divmod(match, max(self.items.shape[1], 1))
        found = np.full(self.items.shape, -1, dtype=np.int64)
        found[row[hit], column] = pair[hit]
        return found

    @cached_property
    def _relevant_range(self) -> slice:
        return self._range_in(self.reference.relevant_keys)

    def _range_in(self, keys: Array) -> slice:
        """Where the pairs of these users lie among ascending keys: a short range is searched faster than all."""
        if len(self.users) == 0:
            return slice(0, 0)
        width = max(self.reference.item_count, 1)
        first, last = int(self.users[0]) * width, (int(self.users[-1]) + 1) * width
        start, stop = np.searchsorted(keys, [first, last])
        return slice(int(start), int(stop))

    # ---------------------------------------------------------------- per user, at a cut-off

    def popularity(self, k: int) -> Array:
        """Mean degree of the list, NaN without one."""
        if k not in self._popularity:
            self._popularity[k] = bias.arp(self.items, self.groups.degrees, k)
        return self._popularity[k]

    def sections(self, k: int) -> Array:
        """Head, middle and tail shares of the list: (n, 3)."""
        return bias.list_sections(self.items, self.groups.section, k)

    def bucket_exposure(self, k: int) -> Array:
        """Places of the list by popularity bucket of their item: (n, BUCKETS)."""
        rows, items = bias.listed_pairs(self.items, k)
        return bias.label_counts(rows, self.groups.bucket[items], len(self.users), BUCKETS)

    def listed_unseen(self, k: int, group: str) -> Array:
        """Listed items of an item group that are new to the user."""
        if group not in ITEM_GROUPS:
            return self._count_of_chosen("listed", group, k)
        counted = self.unseen & (self.popular if group == "popular" else ~self.popular)
        return np.asarray(np.count_nonzero(counted[:, :k], axis=1))

    def eligible(self, group: str) -> Array:
        """Items of an item group that could be listed: those that are new to the user, for users with a list."""
        if group in ITEM_GROUPS:
            unseen = self.reference.eligible_counts[group][self.users]
        else:
            family, place = self.reference.groups.item_family(group)
            unseen = family.sizes[place] - self._count_of_chosen("seen", group)
        return np.asarray(unseen * self.has_list)

    def unexpected_hits(self, k: int) -> Array:
        """Hits in the first k that are not among the k most popular items which are new to the user."""
        rows, columns = np.nonzero(self.hits[None][:, :k])
        with_hits, owner = np.unique(rows, return_inverse=True)
        position = self.reference.popularity_position[self.items[rows, columns]]
        unexpected = position > self._popular_reach(self.users[with_hits], k)[owner]
        return np.bincount(rows[unexpected], minlength=len(self.users))

    def _popular_reach(self, users: Array, k: int) -> Array:
        """How far down the order of popularity the k first items reach that are new to each of these users."""
        keys, width = self.reference.seen.keys, np.int64(max(self.reference.item_count, 1))
        start, stop = np.searchsorted(keys, [users * width, (users + 1) * width])
        had = stop - start
        owner = np.repeat(np.arange(len(users)), had)
        position = self.reference.popularity_position[keys[_ranges(start, had)] - users[owner] * width]
        near = position < k + had[owner]  # an item behind that moves nothing
        return bias.popular_reach(owner[near], position[near], len(users), k)

    # ---------------------------------------------------------------- per item, at a cut-off

    def exposed(self, k: int) -> Array:
        """How many of the lists name each item of the catalogue."""
        return exposure.exposure(self.items, self.reference.item_count, k)

    def discounted_exposure(self, k: int) -> Array:
        return exposure.discounted_exposure(self.items, self.reference.item_count, k)

    def unit_exposure(self, k: int) -> Array:
        return exposure.unit_exposure(self.items, self.reference.item_count, k)

    # ---------------------------------------------------------------- by chosen groups of items

    @cached_property
    def _hit_places(self) -> tuple[Array, Array]:
        rows, columns = np.nonzero(self.found >= 0)
        return rows, columns

    def _hits_of_chosen(self, group: str) -> Array:
        """Hits are few, so the groups of their items alone are looked up."""
        family, place = self.reference.groups.item_family(group)
        rows, columns = self._hit_places
        inside = (family.labels[:, self.items[rows, columns]] == place).any(axis=0)
        hits = np.zeros(self.items.shape, dtype=bool)
        hits[rows[inside], columns[inside]] = True
        return hits

    def _count_of_chosen(self, what: str, group: str, k: int = 0) -> Array:
        """Pairs of each user with an item of the group: relevant, seen, or listed in the first k places and new.

        All groups of a family are counted in one pass over the pairs of these users; a table for all users and groups
        would not fit where there are millions of users.
        """
        family, place = self.reference.groups.item_family(group)
        cell = what, family.name, k
        if cell not in self._counted:
            owners, items = self._unseen_places(k) if what == "listed" else self._pairs(what)
            self._counted[cell] = group_counts(family, owners, items, len(self.users))
        return np.asarray(self._counted[cell][:, place])

    def diversity(self, k: int, family: str | None) -> Array:
        """By the groups of a family, or by the vectors of the items."""
        groups = self.reference.groups
        if family is not None:
            return categories.intra_list_diversity(self.items, groups.item_families[family], k)
        if groups.vectors is None:
            raise ConfigError(
                f"intra_list_diversity@{k} rests on vectors of the items, and there are none; give them with "
                f"--item-vectors, or name a family, such as intra_list_diversity@{k}/genre"
            )
        return groups.vectors.diversity(self.items, k)

    def miscalibration(self, k: int, family: str) -> Array:
        """How far the categories of the list are from those of the training items."""
        chosen = self.reference.groups.item_families[family]
        if family not in self._profile_categories:
            self._profile_categories[family] = categories.category_shares(*self._profile, chosen, len(self.users))
        listed = categories.category_shares(*bias.listed_pairs(self.items, k), chosen, len(self.users))
        return bias.jensen_shannon(self._profile_categories[family], listed)

    @cached_property
    def _profile(self) -> tuple[Array, Array]:
        """(row of the user, item) of the training pairs of these users."""
        train = self.reference.train
        start = train.user_offsets[self.users]
        lengths = train.user_offsets[self.users + 1] - start
        return np.repeat(np.arange(len(self.users)), lengths), train.items[_ranges(start, lengths)]

    def _unseen_places(self, k: int) -> tuple[Array, Array]:
        rows, columns = np.nonzero(self.unseen[:, :k])
        return rows, self.items[rows, columns]

    def _pairs(self, what: str) -> tuple[Array, Array]:
        """(row of the user, item) of the relevant or seen pairs of these users."""
        keys = self.reference.relevant_keys if what == "relevant" else self.reference.seen.keys
        users, items = np.divmod(keys[self._range_in(keys)], np.int64(max(self.reference.item_count, 1)))
        owner = find(self.users, users)
        kept = owner >= 0
        return owner[kept], items[kept]


def _ranges(start: Array, lengths: Array) -> Array:
    """The numbers from each start on, as many as its length says, one range behind the other."""
    return np.asarray(np.arange(lengths.sum()) + np.repeat(start - (np.cumsum(lengths) - lengths), lengths))


def group_counts(family: Family, owners: Array, items: Array, owner_count: int) -> Array:
    """How many of each owner's items are in each group: (owners, groups).

    >>> genre = Family("genre", ("Comedy", "Drama"), np.array([[0, 1, 0, -1], [-1, -1, 1, -1]], dtype=np.int8))
    >>> group_counts(genre, np.array([0, 0, 0, 1]), np.array([0, 2, 3, 1]), 2).tolist()
    [[2, 1], [0, 1]]
    """
    groups = len(family.groups)
    counts = np.zeros((owner_count, groups), dtype=np.int64)
    for labels in family.labels:
        # Label -1, no group, is counted in a column of its own, which is then left out.
        counts += bias.label_counts(owners, labels[items].astype(np.int64) + 1, owner_count, groups + 1)[:, 1:]
    return counts
