"""`Aligned`: the lists of some users beside what they are measured against, and every value per user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import BUCKETS
from caged.data.seen import find
from caged.evaluation import bias, exposure, ranking
from caged.evaluation.keys import MetricKey
from caged.evaluation.lists import PADDING
from caged.evaluation.reference import Reference

FEW_PER_USER = 8  # pairs, on average; up to here comparing beats searching
_NEVER = np.iinfo(np.int64).max - 1  # the position of a relevant item that is not in the list


@dataclass(eq=False)
class Aligned:
    """One row per user, with what several metrics share; nothing is computed before it is asked for."""

    reference: Reference
    users: Array  # rows, ascending
    items: Array  # (n, width), -1 throughout for a user without a list
    computed: dict[MetricKey, Array] = field(default_factory=dict)
    sums: dict[str, Array] = field(default_factory=dict)

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
        return {None: hit, "popular": popular, "niche": hit & ~popular}

    @cached_property
    def popular(self) -> Array:
        """Which places hold a popular item; meaningless on padding."""
        return np.asarray(self.reference.item_groups.popular.take(self.items))

    @cached_property
    def relevant(self) -> dict[str | None, Array]:
        return {group: counts[self.users] for group, counts in self.reference.relevant_counts.items()}

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
        return owner[kept], self.reference.item_groups.degrees[items[kept]], position[kept]

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

    def exposed(self, k: int) -> Array:
        return exposure.exposure(self.items, self.reference.item_count, k)

    # ---------------------------------------------------------------- values per user

    def per_user(self, name: str, k: int, group: str | None = None) -> Array:
        key = MetricKey(name, k, group)
        if key not in self.computed:
            if name in _ACCURACY:
                self.computed[key] = _ACCURACY[name](self.hits[group], self.relevant[group], k)
            else:
                self.computed[key] = _OF_LISTS[name](self, k)
        return self.computed[key]

    def summed(self, name: str) -> Array:
        """The part of a pooled metric that each user adds, by the name it has in `Report.sums`."""
        if name not in self.sums:
            head, _, group = name.partition("/")
            what, _, k = head.partition("@")
            self.sums[name] = _SUMS[what](self, int(k or 0), group)
        return self.sums[name]


_ACCURACY: dict[str, Callable[[Array, Array, int], Array]] = {
    "recall": ranking.recall,
    "precision": ranking.precision,
    "hit": ranking.hit,
    "mrr": ranking.mrr,
    "map": ranking.average_precision,
    "ndcg": ranking.ndcg,
    "ndcg_hits100": ranking.ndcg_hits100,
}


def _popularity_lift(aligned: Aligned, k: int) -> Array:
    return bias.popularity_lift(aligned.per_user("arp", k), aligned.summed("profile_popularity"))


def _upd(aligned: Aligned, k: int) -> Array:
    listed = bias.list_sections(aligned.items, aligned.reference.item_groups.section, k)
    return bias.upd(aligned.reference.profile_sections[aligned.users], listed)


_OF_LISTS: dict[str, Callable[[Aligned, int], Array]] = {
    "arp": lambda at, k: bias.arp(at.items, at.reference.item_groups.degrees, k),
    "popularity_lift": _popularity_lift,
    "tail_share": lambda at, k: bias.tail_share(at.items, at.reference.item_groups.niche, k),
    "aclt": lambda at, k: bias.aclt(at.items, at.reference.item_groups.niche, k),
    "novelty": lambda at, k: bias.novelty(at.items, at.reference.item_groups.degrees, at.reference.trained_users, k),
    "upd": _upd,
    "pru": lambda at, k: bias.pru(*at.relevant_pairs, len(at.users), k),
}


def _bucket_exposure(aligned: Aligned, k: int, _: str) -> Array:
    rows, items = bias.listed_pairs(aligned.items, k)
    return bias.label_counts(rows, aligned.reference.item_groups.bucket[items], len(aligned.users), BUCKETS)


def _listed_unseen(aligned: Aligned, k: int, group: str) -> Array:
    counted = aligned.unseen & (aligned.popular if group == "popular" else ~aligned.popular)
    return np.asarray(np.count_nonzero(counted[:, :k], axis=1))


_SUMS: dict[str, Callable[[Aligned, int, str], Array]] = {
    "profile_popularity": lambda at, _, __: at.reference.profile_popularity[at.users],
    "bucket_exposure": _bucket_exposure,
    "listed_unseen": _listed_unseen,
    "eligible": lambda at, _, group: at.reference.eligible_counts[group][at.users] * at.has_list,
    "hits": lambda at, k, group: np.count_nonzero(at.hits[group][:, :k], axis=1),
    "relevant": lambda at, _, group: at.relevant[group],
    "listed": lambda at, _, __: at.has_list.astype(np.int64),
}
