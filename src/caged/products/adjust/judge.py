"""What an adjustment costs and what it brings: the same users, before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from caged.data.interactions import Interactions
from caged.errors import ConfigError
from caged.evaluation.adjust.choice import GRID, Adjustment, Chosen, Form, choose_strength
from caged.evaluation.bootstrap import Interval
from caged.evaluation.intervals import intervals
from caged.evaluation.lists import Lists
from caged.evaluation.measure import Report, measure
from caged.evaluation.metrics import MetricKey
from caged.evaluation.reference import Reference
from caged.evaluation.significance import paired_intervals

SHOWN = ("recall@{k}", "recall@{k}/niche", "ndcg@{k}", "tail_share@{k}")
# Lists of k places for the users of a reference, without what they have seen.
Ranking = Callable[[Adjustment, Reference, int], Lists]


@dataclass(frozen=True)
class Change:
    """Of one metric on one part, against strength 0; the interval is that of the difference, paired by user."""

    before: float
    after: float
    interval: Interval | None

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def percent(self) -> float:
        return 100 * self.difference / self.before if self.before else float("nan")

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "percent": self.percent,
            "interval": None if self.interval is None else [self.interval.low, self.interval.high],
        }


class Judge:
    """One part of a split. Each strength is ranked and measured once."""

    def __init__(self, reference: Reference, rank: Ranking, form: Form, k: int) -> None:
        self._reference, self._rank, self._form, self._k = reference, rank, form, k
        self.keys = tuple(MetricKey.parse(pattern.format(k=k)) for pattern in SHOWN)
        self._reports: dict[float, Report] = {}

    def report(self, strength: float) -> Report:
        if strength not in self._reports:
            lists = self._rank(Adjustment(self._form, strength), self._reference, self._k)
            self._reports[strength] = measure(lists, self._reference, metrics=self.keys)
        return self._reports[strength]

    def recall(self, strength: float) -> float:
        return self.report(strength).metrics[self.keys[0]]

    def changes(self, strength: float) -> dict[MetricKey, Change]:
        before, after = self.report(0.0), self.report(strength)
        found = paired_intervals(_per_user(before, self.keys), _per_user(after, self.keys))
        return {
            key: Change(before.metrics[key], after.metrics[key], interval)
            for key, interval in zip(self.keys, found, strict=True)
        }


def _per_user(report: Report, keys: Sequence[MetricKey]) -> np.ndarray[Any, Any]:
    return np.stack([report.per_user_of(key) for key in keys], axis=1)


@dataclass(frozen=True, eq=False)
class Point:
    """One strength on one part."""

    strength: float
    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The adjustment, how it was chosen, and what it does on every part."""

    adjustment: Adjustment
    k: int
    chosen: Chosen | None  # None where the strength was given
    changes: Mapping[str, Mapping[MetricKey, Change]]  # by part
    curve: Mapping[str, Sequence[Point]] = field(default_factory=dict)  # by part, where it was asked for

    def to_json(self) -> dict[str, Any]:
        return {
            "form": self.adjustment.form,
            "strength": self.adjustment.strength,
            "k": self.k,
            **self.rule(),
            "changes": {
                part: {key: change.to_json() for key, change in found.items()} for part, found in self.changes.items()
            },
            **(
                {"curve": {part: [_as_json(one) for one in points] for part, points in self.curve.items()}}
                if self.curve
                else {}
            ),
        }

    def rule(self) -> dict[str, Any]:
        """How the strength came about; empty where it was given."""
        if self.chosen is None:
            return {}
        return {"keep": self.chosen.keep, "tried": [list(pair) for pair in self.chosen.tried]}


def _as_json(point: Point) -> dict[str, Any]:
    return {
        "strength": point.strength,
        "metrics": dict(point.metrics),
        "intervals": {key: [interval.low, interval.high] for key, interval in point.intervals.items()},
    }


def judges_of(
    train: Interactions, valid: Interactions | None, test: Interactions | None, rank: Ranking, form: Form, k: int
) -> dict[str, Judge]:
    """One for each part that there is. Who is tested has seen train and valid."""
    judges = {}
    if valid is not None:
        judges["valid"] = Judge(Reference(train, relevant=valid), rank, form, k)
    if test is not None:
        judges["test"] = Judge(Reference(train, valid, test), rank, form, k)
    return judges


def judged(
    judges: Mapping[str, Judge], form: Form, k: int, *, strength: float | None, keep: float, with_curve: bool
) -> Outcome:
    """The given strength, or the one that the part `valid` chooses; test is only reported."""
    chosen = None
    if strength is None:
        if "valid" not in judges:
            raise ConfigError(
                "there is no validation part to choose the strength on; give one (--valid), or say how strong the "
                "adjustment shall be (--strength 0.2)"
            )
        chosen = choose_strength(judges["valid"].recall, keep)
        strength = chosen.strength
    adjustment = Adjustment(form, strength)
    changes = {part: judge.changes(strength) for part, judge in judges.items()}
    curve = {part: [_point(judge, one) for one in GRID] for part, judge in judges.items()} if with_curve else {}
    return Outcome(adjustment, k, chosen, changes, curve)


def _point(judge: Judge, strength: float) -> Point:
    report = judge.report(strength)
    return Point(strength, report.metrics, intervals(report))
