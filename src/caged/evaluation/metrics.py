"""The table of metrics: one row for each, with everything there is to know about it.

What computes, resamples, prints, compares, gates or explains a metric reads its row and knows none by name. A metric
is a function of sums over users (`OfSums`), or of how often each item is shown (`OfItems`). Sums are easy to compute
again for other users: the bootstrap adds what the users add whom it draws, a pass over millions of users adds blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import ITEM_GROUPS, USER_GROUPS, gini
from caged.errors import ConfigError, unknown
from caged.evaluation import bias, exposure, pooling, ranking
from caged.evaluation.aligned import Aligned

Direction = Literal["up", "down", "zero", "none"]
Unit = Literal["share", "change", "index", "number"]
_WHOLE: tuple[None] = (None,)
_BY_ITEMS, _BY_USERS = (None, *ITEM_GROUPS), (None, *USER_GROUPS)
_BY_BOTH = (*_BY_ITEMS, *USER_GROUPS)


# -------------------------------------------------------------------- what a row is


class MetricKey(str):
    """A metric at a cut-off, for everything or one group; a key is its text, and is stored and looked up as such.

    >>> key = MetricKey.parse("recall@20/niche")
    >>> key.name, key.k, key.group
    ('recall', 20, 'niche')
    >>> MetricKey("ndcg", 20)
    'ndcg@20'
    """

    name: str
    k: int
    group: str | None

    def __new__(cls, name: str, k: int, group: str | None = None) -> Self:
        key = super().__new__(cls, f"{name}@{k}" + (f"/{group}" if group else ""))
        key.name, key.k, key.group = name, k, group
        return key

    def __reduce__(self) -> tuple[Any, ...]:
        return MetricKey, (self.name, self.k, self.group)

    @classmethod
    def parse(cls, text: str) -> MetricKey:
        """The key that the text is; an error that names the metrics, or the forms of this one, where it is none."""
        if isinstance(text, MetricKey):
            return text
        name, _, rest = text.partition("@")
        if name not in METRICS:
            raise ConfigError(unknown("metric", name, METRICS))
        cut = re.fullmatch(r"([1-9][0-9]*)(?:/(.+))?", rest)
        if cut is None:
            raise ConfigError(f"metric '{text}' needs a cut-off of at least 1: write {name}@20, for example")
        key, metric = cls(name, int(cut[1]), cut[2]), METRICS[name]
        if key.group not in metric.groups:
            forms = ", ".join(cls(name, key.k, group) for group in metric.groups)
            raise ConfigError(f"metric '{text}' does not exist; {name} has the forms {forms}")
        if not metric.exists_at(key.k):
            raise ConfigError(f"metric '{text}' does not exist; the k of {name} is at most {metric.depth}")
        return key

    @property
    def metric(self) -> Metric:
        return METRICS[self.name]

    @property
    def item_group(self) -> str | None:
        return self.group if self.group in ITEM_GROUPS else None

    @property
    def user_group(self) -> str | None:
        return self.group if self.group in USER_GROUPS else None

    def of(self, group: str | None) -> MetricKey:
        """The same for another group."""
        return MetricKey(self.name, self.k, group)


class UserColumns(Protocol):
    """What a report, a block of one or a stored one has per user."""

    @property
    def user_group(self) -> Array: ...
    def per_user_of(self, key: MetricKey) -> Array: ...
    def sum_of(self, part: Sum, k: int, group: str = "") -> Array: ...


@dataclass(frozen=True)
class Sum:
    """A sum over users that pooled metrics rest on: how its column is called, and what each user adds."""

    column: str  # with {k} and {group} where it depends on them
    of_lists: Callable[[Aligned, int, str], Array]  # (users,), or (users, parts)

    def name(self, k: int, group: str = "") -> str:
        return self.column.format(k=k, group=group)


@dataclass(frozen=True)
class OfSums:
    """A metric that follows from sums over users; it has an interval.

    `adds` are the columns of what each user adds, or tables of several; the last is 1 for the users behind the value.
    `value` takes the m sums, (..., m), to values and `gradient` linearises it (see `pooling`); both are told the
    training interactions per popularity bucket. Where `value` drops the sign of `signed`, intervals and `gradient` are
    those of `signed`: near zero an absolute value cannot be resampled. `biased` is a value that noise only makes
    larger, and that is at least 0.
    """

    adds: Callable[[UserColumns, MetricKey], list[Array]]
    value: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array], Array]
    reads_mass: bool = False  # the training interactions per bucket
    signed: Callable[[Array, Array], Array] | None = None
    biased: bool = False


@dataclass(frozen=True, kw_only=True)
class Mean(OfSums):
    """The mean of a value that users have of their own, NaN where it is undefined: a ratio of two sums."""

    of_user: Callable[[Aligned, int, str | None], Array]  # lists, k, item group


@dataclass(frozen=True)
class OfItems:
    """A metric that follows from how often each item is shown, and which items count where it is of a group.

    It has no interval: drawing users with replacement loses lists, which shifts it systematically.
    """

    value: Callable[[Array, Array | None], float]


@dataclass(frozen=True)
class Metric:
    """One row.

    `direction`: `up` and `down` say which way is better, `zero` that zero is best, `none` that it only describes.
    `unit`: a `share`, a relative `change`, an `index` between bounds, or a `number` with a scale of its own.
    """

    name: str
    direction: Direction
    unit: Unit
    groups: tuple[str | None, ...]  # it is reported for; None is everything
    formula: OfSums | OfItems
    meaning: str  # {k} stands for the cut-off
    needs_test: bool = False
    published: bool = False  # only for comparison with published tables; misleads elsewhere
    depth: int | None = None  # places that it reads whatever k is, and the largest k
    of_catalogue: bool = False  # counts items that nobody has used or listed
    of_groups: bool = False  # knows popular and niche items also where it is for everything

    @property
    def counts_catalogue(self) -> bool:
        return self.of_catalogue or isinstance(self.formula, OfItems)

    def exists_at(self, k: int) -> bool:
        return self.depth is None or k <= self.depth


# -------------------------------------------------------------------- what users add

HITS = Sum("hits@{k}/{group}", lambda lists, k, group: np.count_nonzero(lists.hits[group][:, :k], axis=1))
RELEVANT = Sum("relevant/{group}", lambda lists, _, group: lists.relevant[group])
LISTED = Sum("listed", lambda lists, *_: lists.has_list.astype(np.int64))
LISTED_UNSEEN = Sum("listed_unseen@{k}/{group}", lambda lists, k, group: lists.listed_unseen(k, group))
ELIGIBLE = Sum("eligible/{group}", lambda lists, _, group: lists.eligible(group))
PROFILE_POPULARITY = Sum("profile_popularity", lambda lists, *_: lists.profile_popularity)
BUCKET_EXPOSURE = Sum("bucket_exposure@{k}", lambda lists, k, _: lists.bucket_exposure(k))


def _own_value(users: UserColumns, key: MetricKey) -> list[Array]:
    """Of a mean: the value, and whether there is one."""
    values = users.per_user_of(key.of(key.item_group))
    defined = _members(users, key, ~np.isnan(values))
    return [np.where(defined, values, 0.0), defined]


def _popularity_of_list_and_profile(users: UserColumns, key: MetricKey) -> list[Array]:
    """Of the users who have both."""
    listed, profile = users.per_user_of(MetricKey("arp", key.k)), users.sum_of(PROFILE_POPULARITY, key.k)
    both = _members(users, key, ~np.isnan(listed) & ~np.isnan(profile))
    return [np.where(both, listed, 0.0), np.where(both, profile, 0.0), both]


def _shown_and_could_be(users: UserColumns, key: MetricKey) -> list[Array]:
    """New items of the group, or of both groups, that are listed, and those that could be."""
    return [*_by_group(users, key, LISTED_UNSEEN, ELIGIBLE), users.sum_of(LISTED, key.k)]


def _found_and_wanted(users: UserColumns, key: MetricKey) -> list[Array]:
    sums = _by_group(users, key, HITS, RELEVANT)
    return [*sums, np.asarray(sum(sums[1::2])) > 0]


def _places_by_bucket(users: UserColumns, key: MetricKey) -> list[Array]:
    return [users.sum_of(BUCKET_EXPOSURE, key.k), users.sum_of(LISTED, key.k)]


def _by_group(users: UserColumns, key: MetricKey, *parts: Sum) -> list[Array]:
    groups = ITEM_GROUPS if key.group is None else (key.group,)
    return [users.sum_of(part, key.k, group) for group in groups for part in parts]


def _members(users: UserColumns, key: MetricKey, chosen: Array) -> Array:
    """Those of the chosen that are in the user group of the key, if it has one."""
    if key.user_group is None:
        return chosen
    return np.asarray(chosen & (users.user_group == USER_GROUPS.index(key.user_group)))


# -------------------------------------------------------------------- how sums become values


def _of_sums_alone(function: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda sums, _: function(sums)


_RATIO = _of_sums_alone(pooling.ratio), _of_sums_alone(pooling.ratio_gradient)
_GAP = _of_sums_alone(pooling.relative_gap), _of_sums_alone(pooling.ratio_gradient)
_DISPARITY = _of_sums_alone(pooling.disparity), _of_sums_alone(pooling.signed_disparity_gradient)
_SIGNED = _of_sums_alone(pooling.signed_disparity)
_DIVERGENCE = pooling.divergence, pooling.divergence_gradient


def _mean(of_lists: Callable[[Aligned, int], Array]) -> Mean:
    return Mean(_own_value, *_RATIO, of_user=lambda lists, k, _: of_lists(lists, k))


def _accuracy(of_hits: Callable[[Array, Array, int], Array]) -> Mean:
    """The mean of a function of `ranking`; of a group of items only those hits and relevant items count."""

    def of_user(lists: Aligned, k: int, group: str | None) -> Array:
        return of_hits(lists.hits[group], lists.relevant[group], k)

    return Mean(_own_value, *_RATIO, of_user=of_user)


# -------------------------------------------------------------------- the rows

_ROWS = (
    Metric(
        name="recall",
        direction="up",
        unit="share",
        groups=_BY_BOTH,
        formula=_accuracy(ranking.recall),
        meaning="Share of a user's relevant items that stand among the first {k} of the list; the average user.",
        needs_test=True,
    ),
    Metric(
        name="precision",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=_accuracy(ranking.precision),
        meaning="Share of the first {k} places that hold a relevant item; the average user. Divides by {k} even "
        "where a list is shorter.",
        needs_test=True,
    ),
    Metric(
        name="hit",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=_accuracy(ranking.hit),
        meaning="Share of users with at least one relevant item among the first {k}.",
        needs_test=True,
    ),
    Metric(
        name="mrr",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=_accuracy(ranking.mrr),
        meaning="1 / place of the first relevant item, 0 if none is among the first {k}; the average user.",
        needs_test=True,
    ),
    Metric(
        name="map",
        direction="up",
        unit="share",
        groups=_WHOLE,
        formula=_accuracy(ranking.average_precision),
        meaning="Precision at the place of each relevant item among the first {k}, added up and divided by the "
        "smaller of {k} and the number of relevant items; the average user.",
        needs_test=True,
    ),
    Metric(
        name="ndcg",
        direction="up",
        unit="share",
        groups=_BY_BOTH,
        formula=_accuracy(ranking.ndcg),
        meaning="Relevant items among the first {k}, each weighted by 1/log2(place + 1), over the best sum that is "
        "possible; the average user.",
        needs_test=True,
    ),
    Metric(
        name="ndcg_hits100",
        direction="up",
        unit="share",
        groups=_BY_ITEMS,
        formula=_accuracy(ranking.ndcg_hits100),
        meaning="As NDCG, but compared with the best order of the hits in the first 100 places only. It rewards "
        "lists that find little and exists to compare with published tables.",
        needs_test=True,
        published=True,
        depth=ranking.IDEAL_DEPTH,
    ),
    Metric(
        name="arp",
        direction="none",
        unit="number",
        groups=_WHOLE,
        formula=_mean(lambda lists, k: lists.popularity(k)),
        meaning="Average number of training users of the first {k} items; the average user.",
    ),
    Metric(
        name="popularity_lift",
        direction="zero",
        unit="change",
        groups=_BY_USERS,
        formula=_mean(lambda lists, k: bias.popularity_lift(lists.popularity(k), lists.profile_popularity)),
        meaning="How much more popular the first {k} items are than the user's own training items: (list average - "
        "own average) / own average. 0 is as popular as the history, 1 is twice as popular; the mean of "
        "the users' ratios.",
    ),
    Metric(
        name="delta_gap",
        direction="zero",
        unit="change",
        groups=_BY_USERS,
        formula=OfSums(_popularity_of_list_and_profile, *_GAP),
        meaning="As the popularity lift, but the averages are taken over the users first and then compared: the "
        "ratio of means (delta GAP). It can differ from the popularity lift in size and in sign.",
    ),
    Metric(
        name="tail_share",
        direction="up",
        unit="share",
        groups=_BY_USERS,
        formula=_mean(lambda lists, k: bias.tail_share(lists.items, lists.groups.niche, k)),
        meaning="Share of the first {k} places that go to niche items; the average user.",
        of_groups=True,
    ),
    Metric(
        name="aclt",
        direction="up",
        unit="number",
        groups=_WHOLE,
        formula=_mean(lambda lists, k: bias.aclt(lists.items, lists.groups.niche, k)),
        meaning="Number of niche items among the first {k}; the average user.",
        of_groups=True,
    ),
    Metric(
        name="novelty",
        direction="up",
        unit="number",
        groups=_WHOLE,
        formula=_mean(
            lambda lists, k: bias.novelty(lists.items, lists.groups.degrees, lists.reference.trained_users, k)
        ),
        meaning="Average of -log2(training users of the item / all training users) over the first {k}, in bits: "
        "higher is less known; the average user.",
    ),
    Metric(
        name="upd",
        direction="down",
        unit="index",
        groups=_BY_USERS,
        formula=_mean(lambda lists, k: bias.upd(lists.profile_sections, lists.sections(k))),
        meaning="Distance between a user's history and list in the shares of head, middle and tail items "
        "(Jensen-Shannon divergence): 0 is the same mix, 1 nothing in common; the average user.",
    ),
    Metric(
        name="pru",
        direction="zero",
        unit="index",
        groups=_WHOLE,
        formula=_mean(lambda lists, k: bias.pru(*lists.relevant_pairs, len(lists.users), k)),
        meaning="Among a user's relevant items, whether popular ones stand higher (rank correlation): 0 is no "
        "preference, 1 always the popular first; the average user.",
        needs_test=True,
    ),
    Metric(
        name="coverage",
        direction="up",
        unit="share",
        groups=_BY_ITEMS,
        formula=OfItems(exposure.coverage),
        meaning="Share of the items that stand in at least one list of {k}.",
    ),
    Metric(
        name="gini",
        direction="down",
        unit="index",
        groups=_WHOLE,
        formula=OfItems(lambda exposed, _: gini(exposed)),
        meaning="How unequally the places of all lists of {k} are spread over the items: 0 all items alike, near 1 "
        "a few items take everything.",
    ),
    Metric(
        name="entropy",
        direction="up",
        unit="index",
        groups=_WHOLE,
        formula=OfItems(lambda exposed, _: exposure.entropy(exposed)),
        meaning="How evenly the places of all lists of {k} are spread over the items: 1 all alike, 0 a single item.",
    ),
    Metric(
        name="exposure_kl",
        direction="none",
        unit="number",
        groups=_WHOLE,
        formula=OfSums(_places_by_bucket, *_DIVERGENCE, reads_mass=True, biased=True),
        meaning="How far the places of the lists are from the training interactions, by tenth of the "
        "trained items (Kullback-Leibler divergence, bits): 0 is the same spread. It grows in both directions.",
    ),
    Metric(
        name="exposure_rate",
        direction="none",
        unit="share",
        groups=ITEM_GROUPS,
        formula=OfSums(_shown_and_could_be, *_RATIO),
        meaning="Of all pairs of a listed user and an item of the group that is new to the user, the share that "
        "stands in the lists of {k}.",
        of_catalogue=True,
    ),
    Metric(
        name="pop_rsp",
        direction="down",
        unit="index",
        groups=_WHOLE,
        formula=OfSums(_shown_and_could_be, *_DISPARITY, signed=_SIGNED),
        meaning="Statistical parity: how far the exposure rates of popular and niche items are apart, |a - b| / (a "
        "+ b). 0 is equal; it hides which one is ahead.",
        of_catalogue=True,
        of_groups=True,
    ),
    Metric(
        name="pooled_recall",
        direction="up",
        unit="share",
        groups=ITEM_GROUPS,
        formula=OfSums(_found_and_wanted, *_RATIO),
        meaning="Found relevant items of the group over all its relevant items, added up over users first.",
        needs_test=True,
    ),
    Metric(
        name="pop_reo",
        direction="down",
        unit="index",
        groups=_WHOLE,
        formula=OfSums(_found_and_wanted, *_DISPARITY, signed=_SIGNED),
        meaning="Equal opportunity: how far the pooled recalls of popular and niche items are apart, |a - b| / (a "
        "+ b). 0 is equal; it hides which one is ahead.",
        needs_test=True,
        of_groups=True,
    ),
)
METRICS = {metric.name: metric for metric in _ROWS}


# -------------------------------------------------------------------- many keys


def metric_keys(ks: Iterable[int]) -> list[MetricKey]:
    """Every key at each k, in the order of the tables.

    >>> len(metric_keys([20])), len(metric_keys([200]))
    (51, 48)
    """
    return [
        MetricKey(metric.name, k, group)
        for k in ks
        for metric in METRICS.values()
        if metric.exists_at(k)
        for group in metric.groups
    ]


def reported_keys(ks: Iterable[int]) -> list[MetricKey]:
    """The same without what exists only to compare with published tables.

    >>> len(reported_keys([20]))
    48
    """
    return [key for key in metric_keys(ks) if not key.metric.published]


def list_width(keys: Sequence[MetricKey]) -> int:
    """How many places of the lists the keys need."""
    return max((key.metric.depth or key.k for key in keys), default=0)


def with_sums(keys: Iterable[MetricKey]) -> dict[MetricKey, OfSums]:
    """The keys that follow from sums over users, and how."""
    return {key: formula for key in keys if isinstance(formula := key.metric.formula, OfSums)}
