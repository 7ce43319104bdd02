"""Keys of metrics: a metric at a cut-off, for everything or for one group. `metric_table` says what each metric is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

from caged.data.popularity import ITEM_GROUPS, USER_GROUPS
from caged.errors import ConfigError, unknown
from caged.evaluation.formulas import (
    BUCKET_EXPOSURE,
    ELIGIBLE,
    HITS,
    LISTED_UNSEEN,
    PROFILE_POPULARITY,
    RELEVANT,
    Mean,
    OfItems,
    OfSums,
    Sum,
    UserColumns,
)
from caged.evaluation.group_names import NONE_CHOSEN, GroupName, GroupNames
from caged.evaluation.metric_table import METRICS, Metric

__all__ = [
    "BUCKET_EXPOSURE",
    "ELIGIBLE",
    "HITS",
    "LISTED_UNSEEN",
    "METRICS",
    "PROFILE_POPULARITY",
    "RELEVANT",
    "Mean",
    "Metric",
    "MetricKey",
    "OfItems",
    "OfSums",
    "Sum",
    "UserColumns",
    "keys_of_shown",
    "list_ks",
    "list_width",
    "metric_keys",
    "reported_keys",
    "with_sums",
]


class MetricKey(str):
    """A metric at a cut-off, for everything or one group; a key is its text, and is stored and looked up as such.

    >>> key = MetricKey.parse("recall@20/niche")
    >>> key.name, key.k, key.group
    ('recall', 20, 'niche')
    >>> MetricKey("ndcg", 20), MetricKey("shown_auc", 0, "niche")
    ('ndcg@20', 'shown_auc/niche')
    >>> MetricKey.parse("recall@20/genre=Film Noir")  # a group that somebody chose, see `group_names`
    'recall@20/genre=Film%20Noir'
    """

    name: str
    k: int  # 0 where the metric has no cut-off
    group: str | None

    def __new__(cls, name: str, k: int, group: str | None = None) -> Self:
        key = super().__new__(cls, name + (f"@{k}" if k else "") + (f"/{group}" if group else ""))
        key.name, key.k, key.group = name, k, group
        return key

    def __reduce__(self) -> tuple[Any, ...]:
        return MetricKey, (self.name, self.k, self.group)

    @classmethod
    def parse(cls, text: str) -> MetricKey:
        """The key that the text is; an error that names the metrics, or the forms of this one, where it is none."""
        if isinstance(text, MetricKey):
            return text
        name = re.split("[@/]", text)[0]
        if name not in METRICS:
            raise ConfigError(unknown("metric", name, METRICS))
        metric, rest = METRICS[name], text[len(name) :]
        found = re.fullmatch(r"@([1-9][0-9]*)(?:/(.+))?" if metric.has_k else r"()(?:/(.+))?", rest)
        padded = re.match(r"@0+([1-9][0-9]*)", rest)
        if padded is not None and metric.has_k:
            raise ConfigError(f"metric '{text}' has a cut-off with a zero in front; write {name}@{padded[1]}")
        if found is None and metric.has_k:
            raise ConfigError(f"metric '{text}' needs a cut-off of at least 1: write {name}@20, for example")
        if found is None:
            raise ConfigError(f"metric '{text}' cannot be read: {name} has no cut-off, write {name}")
        key = cls(name, int(found[1] or 0), found[2])
        if key.group not in metric.fixed_groups:
            chosen = None if key.group is None else GroupName.parse(key.group)
            if chosen is None or not metric.exists_for(chosen):
                fixed = (cls(name, key.k, group) for group in metric.fixed_groups)
                forms = ", ".join([*fixed, *metric.chosen_forms(key.k)])
                raise ConfigError(f"metric '{text}' does not exist; {name} has the forms {forms}")
            key = key.of(str(chosen))
        if not metric.exists_at(key.k):
            raise ConfigError(f"metric '{text}' does not exist; the k of {name} is at most {metric.depth}")
        return key

    @property
    def metric(self) -> Metric:
        return METRICS[self.name]

    @property
    def user_group(self) -> str | None:
        return self.group if self.group in USER_GROUPS or (self.chosen and self.chosen.of_users) else None

    @property
    def chosen(self) -> GroupName | None:
        """The group or family that somebody chose, where it is of one."""
        return None if self.group in (None, *ITEM_GROUPS, *USER_GROUPS) else GroupName.parse(str(self.group))

    @property
    def of_each_user(self) -> MetricKey:
        """Where the users' own values stand: those of a group of users are the values of its users."""
        return self if self.user_group is None else self.of(None)

    def of(self, group: str | None) -> MetricKey:
        """The same for another group."""
        return MetricKey(self.name, self.k, group)

    def of_metric(self, name: str) -> MetricKey:
        """Another metric at the same cut-off, for everything."""
        return MetricKey(name, self.k)


# -------------------------------------------------------------------- many keys


def metric_keys(ks: Iterable[int], chosen: GroupNames = NONE_CHOSEN) -> list[MetricKey]:
    """Every key at each k, in the order of the tables, also for the groups that somebody chose; without those that rest
    on what was shown at random.

    >>> len(metric_keys([20])), len(metric_keys([200]))
    (57, 54)
    """
    return [
        MetricKey(metric.name, k, group)
        for k in ks
        for metric in METRICS.values()
        if metric.exists_at(k) and not metric.of_shown
        for group in metric.reported_groups(chosen)
    ]


def keys_of_shown(ks: Iterable[int], chosen: GroupNames = NONE_CHOSEN) -> list[MetricKey]:
    """Every key that rests on what was shown at random.

    >>> keys_of_shown([5])
    ['shown_auc', 'shown_auc/popular', 'shown_auc/niche', 'shown_auc_within', 'shown_ndcg@5', 'shown_precision@5']
    """
    cuts = tuple(ks)
    return [
        MetricKey(metric.name, k, group)
        for metric in METRICS.values()
        if metric.of_shown
        for k in (cuts if metric.has_k else (0,))
        for group in metric.reported_groups(chosen)
    ]


def list_ks(keys: Iterable[MetricKey]) -> list[int]:
    """The cut-offs of lists among the keys, in their order."""
    return list(dict.fromkeys(key.k for key in keys if not key.metric.of_shown))


def reported_keys(ks: Iterable[int], chosen: GroupNames = NONE_CHOSEN) -> list[MetricKey]:
    """The same without what exists only to compare with published tables.

    >>> len(reported_keys([20]))
    54
    """
    return [key for key in metric_keys(ks, chosen) if not key.metric.published]


def list_width(keys: Sequence[MetricKey]) -> int:
    """How many places of the lists the keys need."""
    return max((key.metric.depth or key.k for key in keys if not key.metric.of_shown), default=0)


def with_sums(keys: Iterable[MetricKey]) -> dict[MetricKey, OfSums]:
    """The keys that follow from sums over users, and how."""
    return {key: formula for key in keys if isinstance(formula := key.metric.formula, OfSums)}
