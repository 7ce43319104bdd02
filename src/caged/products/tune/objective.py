"""What a search is after: a metric of the validation part, and what must hold beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from caged.errors import ConfigError
from caged.evaluation.metrics import MetricKey

Sense = Literal[">=", "<="]
Metrics = Mapping[str, float | None]
_CONSTRAINT = re.compile(r"\s*(\S+?)\s*(>=|<=)\s*([0-9.eE+-]+)\s*(%\s*of\s+(\S+))?\s*")


@dataclass(frozen=True)
class Objective:
    key: str
    maximise: bool = True

    @classmethod
    def parse(cls, text: str, *, maximise: bool = True) -> Objective:
        key = checked_key(text)
        wrong = {"up": False, "down": True, "zero": True}.get(key.metric.direction)
        if wrong is maximise:
            better = "higher" if key.metric.direction == "up" else "lower"
            option, other = ("--maximise", "--minimise") if maximise else ("--minimise", "--maximise")
            raise ConfigError(f"{option} is {key}, but {better} values of it are better; use {other} {key}")
        return cls(str(key), maximise)

    def of(self, metrics: Metrics) -> float:
        """The higher the better; what is not defined is the worst."""
        value = metrics.get(self.key)
        if value is None or not math.isfinite(value):
            return -math.inf
        if MetricKey.parse(self.key).metric.direction == "zero":
            return -abs(value)
        return value if self.maximise else -value

    def __str__(self) -> str:
        return self.key


USUAL = Objective("recall@20")


def checked_key(text: str) -> MetricKey:
    key = MetricKey.parse(text)
    if key.group not in key.metric.groups:
        raise ConfigError(f"{key} is of groups that somebody chose, and a search knows none; leave /{key.group} out")
    if key.metric.published:
        raise ConfigError(f"{key} exists only to compare with published tables; choose another metric to tune for")
    return key


@dataclass(frozen=True)
class Constraint:
    """`key` at least or at most `number`, or that share of the tuned best of the method `reference`."""

    key: str
    sense: Sense
    number: float
    reference: str | None = None

    @classmethod
    def parse(cls, text: str) -> Constraint:
        """
        >>> Constraint.parse("recall@20>=99% of lightgcn")
        Constraint(key='recall@20', sense='>=', number=0.99, reference='lightgcn')
        """
        found = _CONSTRAINT.fullmatch(text)
        try:
            number = float(found[3]) if found else math.nan
        except ValueError:
            number = math.nan
        if found is None or not math.isfinite(number):
            raise ConfigError(f"--subject-to is '{text}'; write it as 'recall@20>=99% of lightgcn' or 'gini@20<=0.8'")
        key = str(checked_key(found[1]))
        sense: Sense = ">=" if found[2] == ">=" else "<="
        return cls(key, sense, number / 100 if found[4] else number, found[5])

    def __str__(self) -> str:
        amount = f"{self.number:g}" if self.reference is None else f"{100 * self.number:g}% of {self.reference}"
        return f"{self.key}{self.sense}{amount}"

    @property
    def wish(self) -> Objective:
        """What its reference is tuned for."""
        return Objective(self.key, self.sense == ">=")

    def limit(self, best_of: Callable[[str, Objective], float | None]) -> Limit:
        """As a number, once the reference is tuned."""
        if self.reference is None:
            return Limit(self.key, self.sense, self.number)
        best = best_of(self.reference, self.wish)
        if best is None:
            raise ConfigError(
                f"no trial of {self.reference} succeeded, so '{self}' means nothing; see journal.jsonl for the reasons"
            )
        return Limit(self.key, self.sense, self.number * best)


@dataclass(frozen=True)
class Limit:
    key: str
    sense: Sense
    value: float

    def violation(self, metrics: Metrics) -> float:
        """By how much it is missed, relative to the limit; 0 where it holds."""
        value = metrics.get(self.key)
        if value is None or not math.isfinite(value):
            return math.inf
        missed = self.value - value if self.sense == ">=" else value - self.value
        return max(0.0, missed) / (abs(self.value) or 1.0)


@dataclass(frozen=True)
class Goal:
    """Feasible before infeasible, then the objective; among infeasible ones, whoever misses by least."""

    objective: Objective
    limits: tuple[Limit, ...] = ()

    def feasible(self, metrics: Metrics) -> bool:
        return all(limit.violation(metrics) == 0 for limit in self.limits)

    def order(self, metrics: Metrics | None) -> tuple[int, float]:
        """To sort by, the best last; None stands for a trial that failed."""
        if metrics is None:
            return 0, 0.0
        if not self.feasible(metrics):
            return 1, -sum(limit.violation(metrics) for limit in self.limits)
        return 2, self.objective.of(metrics)

    def places(self, all_metrics: Sequence[Metrics | None]) -> list[float]:
        """The place of each in this order, equals alike: all that a sampler needs to know."""
        orders = [self.order(metrics) for metrics in all_metrics]
        distinct = sorted(set(orders))
        return [float(distinct.index(order)) for order in orders]

    def axes(self) -> tuple[Objective, ...]:
        """What the front of trials is drawn over: the objective and what is held, or accuracy and niche recall."""
        wishes = [self.objective, *(Objective(limit.key, limit.sense == ">=") for limit in self.limits)]
        if len({wish.key for wish in wishes}) == 1:
            k = MetricKey.parse(self.objective.key).k or 20
            wishes += [Objective(f"recall@{k}"), Objective(f"recall@{k}/niche")]
        return tuple({wish.key: wish for wish in wishes}.values())


def front(points: Sequence[Metrics], axes: Sequence[Objective]) -> list[int]:
    """The places of those that no other beats in one axis without losing in another.

    >>> front([{"recall@5": x, "gini@5": y} for x, y in ((0.1, 0.3), (0.2, 0.4), (0.1, 0.4))],
    ...       [Objective("recall@5"), Objective("gini@5", maximise=False)])
    [0, 1]
    """
    values = [tuple(axis.of(point) for axis in axes) for point in points]
    return [
        place
        for place, own in enumerate(values)
        if not any(other != own and all(x >= y for x, y in zip(other, own, strict=True)) for other in values)
    ]


def goal_json(goal: Goal) -> dict[str, Any]:
    return {
        "objective": goal.objective.key,
        "maximise": goal.objective.maximise,
        "limits": [{"metric": limit.key, "sense": limit.sense, "value": limit.value} for limit in goal.limits],
    }
