"""What a metric is computed from: sums over users, or how much each item is shown, and how these become its value.

Sums are easy to compute again for other users: the bootstrap adds what the users add whom it draws, a pass over
millions of users adds blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import ITEM_GROUPS
from caged.evaluation import pooling
from caged.evaluation.aligned import Aligned

if TYPE_CHECKING:
    from caged.evaluation.metrics import MetricKey


class UserColumns(Protocol):
    """What a report, a block of one or a stored one has per user."""

    def members(self, group: str) -> Array: ...  # of a group of users
    def groups_of(self, family: str) -> Sequence[str]: ...
    def per_user_of(self, key: MetricKey) -> Array: ...
    def sum_of(self, part: Sum, k: int, group: str = "") -> Array: ...


@dataclass(frozen=True)
class Sum:
    """A sum over users that pooled metrics rest on: how its column is called, and what each user adds."""

    column: str  # with {k} and {group} where it depends on them
    of_lists: Callable[[Aligned, int, str], Array]  # (users,), or (users, parts)

    def name(self, k: int, group: str = "") -> str:
        return self.column.format(k=k, group=group)


class Vector(NamedTuple):
    """A function of sums, (..., m) to (..., parts), and its gradient, (parts, m)."""

    of_sums: Callable[[Array], Array]
    gradient: Callable[[Array], Array]


@dataclass(frozen=True)
class OfSums:
    """A metric that follows from sums over users; it has an interval.

    `adds` are the columns of what each user adds, or tables of several; the last is 1 for the users behind the value.
    `value` takes the m sums, (..., m), to values and `gradient` linearises it (see `pooling`); both are told the
    training interactions per popularity bucket. Where `value` drops the sign of `signed`, intervals and `gradient` are
    those of `signed`: near zero an absolute value cannot be resampled. `biased` is a value that noise only makes
    larger, and that is at least 0. `vector` has the value as its length. `of_two` stands in where there are two groups:
    only two have a sign.
    """

    adds: Callable[[UserColumns, MetricKey], list[Array]]
    value: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array], Array]
    reads_mass: bool = False  # the training interactions per bucket
    signed: Callable[[Array, Array], Array] | None = None
    biased: bool = False
    vector: Vector | None = None
    of_two: OfSums | None = None

    def fitted(self, sums: int) -> OfSums:
        """The formula for this many sums: two for each group, and the users."""
        return self.of_two if self.of_two is not None and sums == 5 else self


@dataclass(frozen=True, kw_only=True)
class Mean(OfSums):
    """The mean of a value that users have of their own, NaN where it is undefined: a ratio of two sums."""

    of_user: Callable[[Aligned, int, str | None], Array]  # lists, k, group or family of items


@dataclass(frozen=True)
class ItemSum:
    """A sum over lists for every item of the catalogue: what it is called, and what the lists of a block add."""

    name: str
    of_lists: Callable[[Aligned, int], Array]  # (items,)


class Shown(NamedTuple):
    """How much each item is shown, in which sense its `ItemSum` says."""

    amounts: Array  # (items,)
    lists: int
    members: Array | None = None  # which items count, where the metric is of a group


PLACES = ItemSum("places", lambda lists, k: lists.exposed(k))
DISCOUNTED_PLACES = ItemSum("discounted_places", lambda lists, k: lists.discounted_exposure(k))
UNIT_LISTS = ItemSum("unit_lists", lambda lists, k: lists.unit_exposure(k))


@dataclass(frozen=True)
class OfItems:
    """A metric that follows from how much each item is shown.

    It has no interval: drawing users with replacement loses lists and repeats others, which shifts it systematically.
    """

    value: Callable[[Shown], float]
    shown: ItemSum = PLACES


# -------------------------------------------------------------------- what users add

HITS = Sum("hits@{k}/{group}", lambda lists, k, group: np.count_nonzero(lists.hits[group][:, :k], axis=1))
RELEVANT = Sum("relevant/{group}", lambda lists, _, group: lists.relevant[group])
LISTED = Sum("listed", lambda lists, *_: lists.has_list.astype(np.int64))
LISTED_UNSEEN = Sum("listed_unseen@{k}/{group}", lambda lists, k, group: lists.listed_unseen(k, group))
ELIGIBLE = Sum("eligible/{group}", lambda lists, _, group: lists.eligible(group))
PROFILE_POPULARITY = Sum("profile_popularity", lambda lists, *_: lists.profile_popularity)
BUCKET_EXPOSURE = Sum("bucket_exposure@{k}", lambda lists, k, _: lists.bucket_exposure(k))


def own_value(users: UserColumns, key: MetricKey) -> list[Array]:
    """Of a mean: the value, and whether there is one."""
    values = users.per_user_of(key.of_each_user)
    defined = _members(users, key, ~np.isnan(values))
    return [np.where(defined, values, 0.0), defined]


def popularity_of_list_and_profile(users: UserColumns, key: MetricKey) -> list[Array]:
    """Of the users who have both."""
    listed, profile = users.per_user_of(key.of_metric("arp")), users.sum_of(PROFILE_POPULARITY, key.k)
    both = _members(users, key, ~np.isnan(listed) & ~np.isnan(profile))
    return [np.where(both, listed, 0.0), np.where(both, profile, 0.0), both]


def shown_and_could_be(users: UserColumns, key: MetricKey) -> list[Array]:
    """New items of the group, or of all groups, that are listed, and those that could be."""
    return [*_by_group(users, key, LISTED_UNSEEN, ELIGIBLE), users.sum_of(LISTED, key.k)]


def found_and_wanted(users: UserColumns, key: MetricKey) -> list[Array]:
    sums = _by_group(users, key, HITS, RELEVANT)
    return [*sums, np.asarray(sum(sums[1::2])) > 0]


def places_by_bucket(users: UserColumns, key: MetricKey) -> list[Array]:
    return [users.sum_of(BUCKET_EXPOSURE, key.k), users.sum_of(LISTED, key.k)]


def _by_group(users: UserColumns, key: MetricKey, *parts: Sum) -> list[Array]:
    groups: Sequence[str] = ITEM_GROUPS if key.group is None else (key.group,)
    if key.group is not None and key.metric.of_family:
        groups = users.groups_of(key.group)
    return [users.sum_of(part, key.k, group) for group in groups for part in parts]


def _members(users: UserColumns, key: MetricKey, chosen: Array) -> Array:
    """Those of the chosen that are in the user group of the key, if it has one."""
    if key.user_group is None:
        return chosen
    return np.asarray(chosen & users.members(key.user_group))


# -------------------------------------------------------------------- how sums become values


def _of_sums_alone(function: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda sums, _: function(sums)


RATIO = _of_sums_alone(pooling.ratio), _of_sums_alone(pooling.ratio_gradient)
GAP = _of_sums_alone(pooling.relative_gap), _of_sums_alone(pooling.ratio_gradient)
DISPARITY = _of_sums_alone(pooling.disparity), _of_sums_alone(pooling.signed_disparity_gradient)
SIGNED = _of_sums_alone(pooling.signed_disparity)
SPREAD = _of_sums_alone(pooling.spread), _of_sums_alone(pooling.spread_gradient)
DEVIATIONS = Vector(pooling.deviations, pooling.deviations_gradient)
DIVERGENCE = pooling.divergence, pooling.divergence_gradient
RATES_APART = OfSums(shown_and_could_be, *DISPARITY, signed=SIGNED)
RECALLS_APART = OfSums(found_and_wanted, *DISPARITY, signed=SIGNED)


def mean_of(of_lists: Callable[[Aligned, int], Array]) -> Mean:
    return Mean(own_value, *RATIO, of_user=lambda lists, k, _: of_lists(lists, k))


def list_mean(of_lists: Callable[[Aligned, int, str | None], Array]) -> Mean:
    """The mean of what users have for a family of item groups, or without one."""
    return Mean(own_value, *RATIO, of_user=of_lists)


def accuracy(of_hits: Callable[[Array, Array, int], Array]) -> Mean:
    """The mean of a function of `ranking`; of a group of items only those hits and relevant items count."""

    def of_user(lists: Aligned, k: int, group: str | None) -> Array:
        return of_hits(lists.hits[group], lists.relevant[group], k)

    return Mean(own_value, *RATIO, of_user=of_user)
