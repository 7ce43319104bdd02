"""The names of metrics: `name@k`, `name@k/group`, and what is known about each name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from caged.data.popularity import ITEM_GROUPS, USER_GROUPS
from caged.errors import ConfigError, unknown
from caged.evaluation.ranking import IDEAL_DEPTH

Direction = Literal["up", "down", "zero", "none"]


@dataclass(frozen=True)
class Metric:
    """One metric: where better lies, and in which forms it exists.

    `direction`: `up` and `down` say which way is better, `zero` that zero is best, `none` that it only describes.
    `kind`: `accuracy` needs relevant items; `list` has a value per listed user; `catalogue` one value for all lists.
    """

    name: str
    direction: Direction
    kind: Literal["accuracy", "list", "catalogue"]
    item_groups: bool = False
    user_groups: bool = False
    ungrouped: bool = True  # false: exists by item group only

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The groups it is reported for; None is everything."""
        return (
            *((None,) if self.ungrouped else ()),
            *(ITEM_GROUPS if self.item_groups else ()),
            *(USER_GROUPS if self.user_groups else ()),
        )


METRICS = {
    metric.name: metric
    for metric in (
        Metric("recall", "up", "accuracy", item_groups=True, user_groups=True),
        Metric("precision", "up", "accuracy"),
        Metric("hit", "up", "accuracy"),
        Metric("mrr", "up", "accuracy"),
        Metric("map", "up", "accuracy"),
        Metric("ndcg", "up", "accuracy", item_groups=True, user_groups=True),
        Metric("ndcg_hits100", "up", "accuracy", item_groups=True),
        Metric("arp", "none", "list"),
        Metric("popularity_lift", "zero", "list", user_groups=True),
        Metric("delta_gap", "zero", "catalogue", user_groups=True),
        Metric("tail_share", "up", "list", user_groups=True),
        Metric("aclt", "up", "list"),
        Metric("novelty", "up", "list"),
        Metric("upd", "down", "list", user_groups=True),
        Metric("pru", "zero", "list"),
        Metric("coverage", "up", "catalogue", item_groups=True),
        Metric("gini", "down", "catalogue"),
        Metric("entropy", "up", "catalogue"),
        Metric("exposure_kl", "none", "catalogue"),
        Metric("exposure_rate", "none", "catalogue", item_groups=True, ungrouped=False),
        Metric("pop_rsp", "down", "catalogue"),
        Metric("pooled_recall", "up", "catalogue", item_groups=True, ungrouped=False),
        Metric("pop_reo", "down", "catalogue"),
    )
}


@dataclass(frozen=True)
class MetricKey:
    """A metric at a cut-off, for everything or one group.

    >>> MetricKey.parse("recall@20/niche")
    MetricKey(name='recall', k=20, group='niche')
    >>> str(MetricKey("ndcg", 20))
    'ndcg@20'
    """

    name: str
    k: int
    group: str | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.k}" + (f"/{self.group}" if self.group else "")

    @property
    def item_group(self) -> str | None:
        return self.group if self.group in ITEM_GROUPS else None

    @property
    def user_group(self) -> str | None:
        return self.group if self.group in USER_GROUPS else None

    @property
    def width(self) -> int:
        """How many places of a list the value depends on."""
        return max(self.k, IDEAL_DEPTH) if self.name == "ndcg_hits100" else self.k

    @classmethod
    def parse(cls, text: str) -> MetricKey:
        name, _, rest = text.partition("@")
        if name not in METRICS:
            raise ConfigError(unknown("metric", name, METRICS))
        cut = re.fullmatch(r"([1-9][0-9]*)(?:/(.+))?", rest)
        if cut is None:
            raise ConfigError(f"metric '{text}' needs a cut-off of at least 1: write {name}@20, for example")
        key = cls(name, int(cut[1]), cut[2])
        allowed = METRICS[name].groups
        if key.group not in allowed:
            forms = ", ".join(str(cls(name, key.k, group)) for group in allowed)
            raise ConfigError(f"metric '{text}' does not exist; {name} has the forms {forms}")
        if name == "ndcg_hits100" and key.k > IDEAL_DEPTH:
            raise ConfigError(f"metric '{text}' does not exist; the k of ndcg_hits100 is at most {IDEAL_DEPTH}")
        return key


def metric_keys(ks: Iterable[int]) -> list[MetricKey]:
    """Every key at each k, in the order of the tables; `ndcg_hits100` only where it exists.

    >>> len(metric_keys([20])), len(metric_keys([200]))
    (51, 48)
    """
    return [
        MetricKey(metric.name, k, group)
        for k in ks
        for metric in METRICS.values()
        if metric.name != "ndcg_hits100" or k <= IDEAL_DEPTH
        for group in metric.groups
    ]


def list_width(keys: Sequence[MetricKey]) -> int:
    """The list length that the keys need."""
    return max((key.width for key in keys), default=0)
