"""Popularity groups of items and taste groups of users, from training degrees alone, and how unequal counts are.

All cuts are decided in integers, so that a group never depends on rounding; ties are cut by row number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from caged.arguments import described, finite_number
from caged.data.ids import Array
from caged.errors import ConfigError, DataError, unknown

ITEM_GROUPS = ("popular", "niche")
SECTIONS = ("head", "middle", "tail")
USER_GROUPS = ("niche-taste", "diverse", "blockbuster")
BUCKETS = 10

_HEAD, _MIDDLE, _TAIL = range(len(SECTIONS))
_NICHE_TASTE, _DIVERSE, _BLOCKBUSTER = range(len(USER_GROUPS))
_ONE_IN = 5  # head, tail and the outer user groups are each about one fifth
POPULAR_SHARE = Fraction(1, 5)  # of the items with an interaction; unless somebody chooses another


def popular_share(value: Any, name: str = "popular_share") -> Fraction:
    """The fraction that somebody wrote as a number: 0.1 is one tenth, not the binary number nearest to it.

    >>> popular_share(0.1)
    Fraction(1, 10)
    """
    given = value if isinstance(value, Fraction) else Fraction(repr(finite_number(name, value)))
    if not 0 < given < 1:
        raise ConfigError(f"{name} is {described(value)}; it must lie between 0 and 1, such as 0.2 for a fifth")
    return given


def popularity_order(degrees: Array) -> Array:
    """Rows of the items with a training interaction, by (degree descending, row ascending).

    >>> popularity_order(np.array([1, 0, 3, 3])).tolist()
    [2, 3, 0]
    """
    degrees = np.asarray(degrees)
    by_degree = np.argsort(-degrees, kind="stable")
    return by_degree[: np.count_nonzero(degrees)]


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """What the training degrees say about every item of the catalogue.

    `popular`: the first floor(n/5) of the n items with an interaction, in popularity order, or another share of them;
    all others, also those without interactions, are niche. `section` indexes `SECTIONS`: head (tail) is the smallest
    prefix (suffix) of that order that holds at least a fifth of the interactions. `bucket` is the decile of that order,
    0 the most popular.
    Items without interactions are niche, tail and in bucket 9.

    >>> groups = ItemGroups.from_degrees(np.array([5, 3, 3, 2, 2, 1, 1, 1, 1, 1, 0, 0]))
    >>> np.flatnonzero(groups.popular).tolist(), np.flatnonzero(groups.in_section("head")).tolist()
    ([0, 1], [0])
    >>> groups.bucket.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]
    """

    degrees: Array  # int64 (N,)
    popular: Array  # bool (N,)
    section: Array  # int8 (N,)
    bucket: Array  # int8 (N,)

    @classmethod
    def from_degrees(cls, degrees: Array, share: Fraction = POPULAR_SHARE) -> ItemGroups:
        degrees = np.asarray(degrees, dtype=np.int64)
        if len(degrees) and degrees.min() < 0:
            raise DataError(f"item degrees must be counts of at least 0; the smallest is {degrees.min()}")
        order = popularity_order(degrees)
        popular = np.zeros(len(degrees), dtype=bool)
        popular[order[: len(order) * share.numerator // share.denominator]] = True
        bucket = np.full(len(degrees), BUCKETS - 1, dtype=np.int8)
        if len(order):
            bucket[order] = BUCKETS * np.arange(len(order)) // len(order)
        return cls(degrees, popular, _sections(degrees, order), bucket)

    @cached_property
    def niche(self) -> Array:
        return ~self.popular

    def member(self, group: str) -> Array:
        """Mask of the items in `popular` or `niche`."""
        if group not in ITEM_GROUPS:
            raise ConfigError(unknown("item group", group, ITEM_GROUPS))
        return self.popular if group == "popular" else self.niche

    def in_section(self, section: str) -> Array:
        """Mask of the items in `head`, `middle` or `tail`."""
        if section not in SECTIONS:
            raise ConfigError(unknown("section", section, SECTIONS))
        return np.asarray(self.section == SECTIONS.index(section))

    @cached_property
    def bucket_mass(self) -> Array:
        """Training interactions per popularity bucket."""
        mass = np.zeros(BUCKETS, dtype=np.int64)
        np.add.at(mass, self.bucket, self.degrees)
        return mass


def _sections(degrees: Array, order: Array) -> Array:
    mass = degrees[order]
    total = mass.sum()
    through = np.cumsum(mass)
    before, after = through - mass, total - through
    labels = np.where(_ONE_IN * after < total, _TAIL, _MIDDLE)
    labels = np.where(_ONE_IN * before < total, _HEAD, labels)
    section = np.full(len(degrees), _TAIL, dtype=np.int8)
    section[order] = labels
    return section


@dataclass(frozen=True, eq=False)
class UserGroups:
    """Users with a training interaction, cut by the share of popular items in their profile.

    The fifth with the lowest shares is `niche-taste`, the fifth with the highest `blockbuster`, the rest `diverse`
    (fifths rounded down, ties by row number). `label` indexes `USER_GROUPS`; -1 marks users without a profile.

    >>> groups = ItemGroups.from_degrees(np.array([5, 1, 1, 1, 1]))
    >>> users, items = np.arange(5), np.array([1, 0, 2, 3, 4])
    >>> UserGroups.from_interactions(users, items, 6, groups).label.tolist()
    [0, 2, 1, 1, 1, -1]
    """

    popular_share: Array  # float64 (users,), NaN without a profile
    label: Array  # int8 (users,)

    @classmethod
    def from_interactions(cls, users: Array, items: Array, user_count: int, groups: ItemGroups) -> UserGroups:
        profile = np.bincount(users, minlength=user_count)
        popular = np.bincount(users[groups.popular[items]], minlength=user_count)
        share = np.full(user_count, np.nan)
        # Division rounds correctly, so equal fractions are equal floats, and unequal ones stay apart while
        # profiles are below 2**26 items: the order of the shares is exact.
        np.divide(popular, profile, out=share, where=profile > 0)
        trained = np.flatnonzero(profile)
        ascending = trained[np.argsort(share[trained], kind="stable")]
        fifth = len(ascending) // _ONE_IN
        label = np.full(user_count, -1, dtype=np.int8)
        label[ascending] = _DIVERSE
        label[ascending[:fifth]] = _NICHE_TASTE
        label[ascending[len(ascending) - fifth :]] = _BLOCKBUSTER
        return cls(share, label)

    def member(self, group: str) -> Array:
        """Mask of the users in `niche-taste`, `diverse` or `blockbuster`."""
        if group not in USER_GROUPS:
            raise ConfigError(unknown("user group", group, USER_GROUPS))
        return np.asarray(self.label == USER_GROUPS.index(group))


# ---------------------------------------------------------------- how unequally counts are spread


def gini(counts: Array) -> float:
    """sum_j (2j - N - 1) x_(j) / (N X) with x ascending and X = sum x; 0: all equal, 1 - 1/N: one has all.

    >>> gini(np.array([1, 1, 1])), gini(np.array([0, 0, 0, 5]))
    (0.0, 0.75)
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64))
    size, total = len(ordered), float(ordered.sum())
    if total == 0.0:
        return float("nan")
    weights = 2.0 * np.arange(1, size + 1) - size - 1.0
    return float((weights * ordered).sum() / (size * total))


def top_share(counts: Array, fraction: float = 0.2) -> float:
    """Share of the total that the largest ceil(fraction * N) counts hold.

    >>> top_share(np.array([6, 1, 1, 1, 1]))
    0.6
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64))[::-1]
    total = float(ordered.sum())
    return float(ordered[: int(np.ceil(fraction * len(ordered)))].sum() / total) if total else float("nan")
