"""`compare`: runs and audits of the same test part beside each other, with intervals, tests and effect sizes.

One run per method is compared user by user. Several seeds are compared run by run, from five runs per method on; users
and seeds are never pooled as if they were independent. P-values are adjusted over everything that is shown.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from caged.arguments import described, instance, instances, place
from caged.data.popularity import POPULAR_SHARE
from caged.errors import ConfigError, unknown
from caged.evaluation.bootstrap import Interval
from caged.evaluation.metrics import MetricKey
from caged.products.compare.bases import Bases
from caged.products.compare.differences import Difference, adjusted, differences, value_intervals
from caged.products.compare.entries import Entry, read_entry
from caged.products.compare.groups import (
    Group,
    baseline_first,
    check_comparable,
    check_splits,
    common_ks,
    grouped,
)
from caged.products.compare.leaders import Leader, leader_of
from caged.products.compare.notes import about_groups, notes, warnings

DEFAULT_K = 20
DEFAULT_METRICS = (
    "recall@{k}",
    "ndcg@{k}",
    "recall@{k}/niche",
    "recall@{k}/popular",
    "tail_share@{k}",
    "gini@{k}",
    "coverage@{k}",
    "arp@{k}",
    "shown_auc",
    "shown_auc/niche",
    "shown_auc_within",
)
ACCURACY_AXIS = ("recall@{k}", "ndcg@{k}")
NICHE_AXIS = ("recall@{k}/niche", "tail_share@{k}")


@dataclass(frozen=True)
class TradeOff:
    """Accuracy against niche items: one point per method, and who is not beaten in both.

    `front` goes by the points alone and is what a plot draws. `unbeaten` are those that no other method beats surely:
    by more than the interval of the difference leaves open, in both.
    """

    x: MetricKey
    y: MetricKey
    points: Mapping[str, tuple[float, float]]
    front: tuple[str, ...]  # by x, ascending
    unbeaten: tuple[str, ...]  # by x, ascending; holds the front
    intervals: Mapping[str, tuple[Interval | None, Interval | None]]  # of x and y, over the choice of users


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods beside each other; the first one is the baseline."""

    dataset: str | None
    protocol: str | None
    metrics: tuple[MetricKey, ...]
    methods: tuple[Group, ...]
    differences: tuple[Difference, ...]  # by method, then metric
    seed_test: Literal["welch", "paired"] | None
    trade_off: TradeOff | None
    leaders: tuple[Leader, ...]  # in accuracy and on niche items, or in the first two metrics
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    by_groups: tuple[MetricKey, ...] = ()  # that all folders have for groups that somebody chose, whether shown or not

    @property
    def baseline(self) -> Group:
        return self.methods[0]

    @property
    def share(self) -> Fraction:
        """Of the items with training interactions that are popular."""
        basis = self.baseline.entries[0].basis
        return POPULAR_SHARE if basis is None else basis.share

    @property
    def values(self) -> dict[str, dict[str, float]]:
        """Method -> metric -> value, the mean over runs."""
        return {group.name: {key: group.mean(key) for key in self.metrics} for group in self.methods}

    def __str__(self) -> str:
        from caged.products.compare.tables import as_text

        return as_text(self)

    @property
    def floors(self) -> Mapping[str, Mapping[str, float]]:
        """What random choice and mere popularity reach where chance showed items: name -> metric -> value.

        Empty where no metric rests on that; all folders that are compared share what was shown.
        """
        if not any(key.metric.of_shown for key in self.metrics):
            return {}
        known = (entry.floors for group in self.methods for entry in group.entries)
        return next((floors for floors in known if floors), {})

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "protocol": self.protocol,
            "baseline": self.baseline.name,
            "metrics": list(self.metrics),
            "methods": [_method_json(group, self.metrics) for group in self.methods],
            "differences": [one.to_json() for one in self.differences],
            "seed_test": self.seed_test,
            "trade_off": None if self.trade_off is None else vars(self.trade_off),
            "leaders": [_leader_json(one) for one in self.leaders],
            **({"shown_floors": self.floors} if self.floors else {}),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def compare(
    folders: Sequence[str | os.PathLike[str]], *, baseline: str | None = None, metrics: Sequence[str] | None = None
) -> Comparison:
    """Compare the runs and audits in `folders`; the first of them, or the method called `baseline`, is the baseline.

    Runs with the same method and settings apart from the seed are one method. `metrics` are keys such as
    `recall@20/niche`; by default accuracy, niche items and concentration at k = 20, or at the first k there is.
    """
    if isinstance(folders, str | bytes | os.PathLike) or not isinstance(folders, Iterable):
        raise ConfigError(f"folders is {described(folders)}; give a list of the folders of runs and audits")
    entries = [read_entry(place("one of folders", folder)) for folder in folders]
    baseline = None if baseline is None else instance("baseline", baseline, str)
    metrics = None if metrics is None else instances("metrics", metrics, str)
    check_comparable(entries)
    groups = baseline_first(grouped(entries), baseline)
    one_split = check_splits(groups)
    ks = common_ks(entries)
    bases = Bases.of(entries)
    keys = _chosen(entries, ks, metrics, bases)
    found = differences(groups[0], groups[1:], keys, one_split=one_split)
    over_seeds = any(one.over_seeds for one in found)
    k = DEFAULT_K if DEFAULT_K in ks else ks[0]
    trade_off = _trade_off(groups, k, bases, one_split=one_split)
    told = keys[:2] if trade_off is None else [trade_off.x, trade_off.y]
    leaders = [leader_of(groups, key, one_split=one_split) for key in told]
    protocol = next((entry.protocol for entry in entries if entry.protocol), None)
    by_groups = _by_groups(entries, k, bases)
    return Comparison(
        dataset=next((entry.dataset for entry in entries if entry.dataset), None),
        protocol=protocol,
        metrics=tuple(keys),
        methods=tuple(groups),
        differences=tuple(adjusted(found)),
        seed_test=("welch" if one_split else "paired") if over_seeds else None,
        trade_off=trade_off,
        leaders=tuple(one for one in leaders if one is not None),
        notes=(*notes(groups, found, ks, one_split=one_split), *bases.notes, *about_groups(by_groups, keys)),
        warnings=(*warnings(groups[0].name, found, protocol), *bases.warnings),
        by_groups=by_groups,
    )


def pareto_front(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """The names of the points that no other beats in one coordinate without losing in the other; by x, ascending.

    >>> pareto_front({"a": (0.1, 0.9), "b": (0.2, 0.5), "c": (0.1, 0.4), "d": (0.3, 0.1)})
    ('a', 'b', 'd')
    """

    def beaten(x: float, y: float) -> bool:
        return any(a >= x and b >= y and (a, b) != (x, y) for a, b in points.values())

    return tuple(sorted((name for name, point in points.items() if not beaten(*point)), key=lambda name: points[name]))


# -------------------------------------------------------------------- which metrics


def _chosen(
    entries: Sequence[Entry], ks: Sequence[int], metrics: Sequence[str] | None, bases: Bases
) -> list[MetricKey]:
    k = DEFAULT_K if DEFAULT_K in ks else ks[0]
    everywhere = [key for key in entries[0].keys if all(key in entry.metrics for entry in entries)]
    if metrics is None:
        keys = [key for key in _at(k, DEFAULT_METRICS) if key in everywhere and bases.allow(key)]
        if not keys:
            why = "".join(f" ({warning})" for warning in bases.warnings)
            raise ConfigError(
                f"the folders share none of the usual metrics at k = {k}{why}; choose some with --metrics"
            )
        return keys
    keys = [MetricKey.parse(text.strip()) for text in dict.fromkeys(metrics)]
    for key in keys:
        lacking = next((entry for entry in entries if key not in entry.metrics), None)
        if lacking is not None:
            raise ConfigError(f"{unknown('metric', key, everywhere)} ({lacking.folder} does not have it)")
        bases.check(key)
    if not keys:
        raise ConfigError("no metric is named; give at least one, e.g. recall@20, or leave --metrics out")
    return keys


def _by_groups(entries: Sequence[Entry], k: int, bases: Bases) -> tuple[MetricKey, ...]:
    """What all folders say about groups that somebody chose."""
    keys = [key for key in entries[0].keys if key.chosen is not None and key.k == k and bases.allow(key)]
    return tuple(key for key in keys if all(key in entry.metrics for entry in entries))


def _at(k: int, patterns: Sequence[str]) -> list[MetricKey]:
    return [MetricKey.parse(pattern.format(k=k)) for pattern in patterns]


# -------------------------------------------------------------------- trade-off and JSON


def _trade_off(groups: Sequence[Group], k: int, bases: Bases, *, one_split: bool) -> TradeOff | None:
    def known(key: MetricKey) -> bool:
        return bases.allow(key) and all(_known(entry, key) for group in groups for entry in group.entries)

    def defined(patterns: Sequence[str]) -> MetricKey | None:
        return next((key for key in _at(k, patterns) if known(key)), None)

    x, y = defined(ACCURACY_AXIS), defined(NICHE_AXIS)
    if x is None or y is None:
        return None
    points = {group.name: (group.mean(x), group.mean(y)) for group in groups}
    front = pareto_front(points)
    beaten = {
        group.name
        for group in groups
        if group.name not in front and any(_surely_beats(other, group, (x, y), one_split) for other in groups)
    }
    unbeaten = sorted(points.keys() - beaten, key=lambda name: points[name])
    intervals = {group.name: value_intervals(group, (x, y)) for group in groups}
    both = {name: (found[0], found[1]) for name, found in intervals.items()}
    return TradeOff(x, y, points, front, tuple(unbeaten), both)


def _surely_beats(other: Group, group: Group, axes: Sequence[MetricKey], one_split: bool) -> bool:
    """More in both, and the intervals of the differences agree; where there is none the values decide."""
    if not all(other.mean(key) > group.mean(key) for key in axes):
        return False
    gains = differences(group, [other], axes, one_split=one_split)
    return all((gain.interval.low if gain.interval else gain.difference) > 0 for gain in gains)


def _known(entry: Entry, key: str) -> bool:
    return math.isfinite(entry.metrics.get(key, math.nan))


def _leader_json(one: Leader) -> dict[str, Any]:
    lead = None if one.lead is None else one.lead.to_json()
    return {"metric": one.metric, "method": one.method, "value": one.value, "certainty": one.certainty, "lead": lead}


def _method_json(group: Group, keys: Sequence[str]) -> dict[str, Any]:
    return {
        "name": group.name,
        "runs": [
            {"folder": entry.folder, "kind": entry.kind, "seed": entry.seed, "protocol": entry.protocol}
            for entry in group.entries
        ],
        "metrics": {
            key: {"mean": group.mean(key), "sd": group.spread(key), "values": group.values(key)} for key in keys
        },
    }
