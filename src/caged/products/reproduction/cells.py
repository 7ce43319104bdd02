"""What stands in a cell: the mean over the seeds of a row, and how it compares with the row below which all stand.

Rows are compared on the seeds that both have: else a row with one seed would be better or worse by what this seed is.
Intervals are over seeds, from three on: Student's of a mean, Welch's of a difference. A test is over seeds (Welch's t)
where both rows have five, and else over users (paired t on the means over the seeds), where the records hold values per
user. What was not run is a gap, and says so; so is a metric that not every finished seed of a row has recorded: a mean
over the rest would stand beside a count of seeds that is not its own.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.errors import RunError
from caged.evaluation.significance import LEAST_RUNS, paired_test, seed_interval, student_half, welch_test
from caged.products.reproduction.content import gpu_seconds, metric_of, users_of
from caged.products.results import LEAST_FOR_INTERVAL
from caged.products.study import Recorded
from caged.runs.recorded_users import has_recorded_users, read_recorded_users

Sign = Literal["better", "worse"]
Over = Literal["users", "seeds"]


class Outcome(NamedTuple):
    """Of a test against the row that others are compared with."""

    over: Over
    p: float
    difference: float


@dataclass(frozen=True)
class Cell:
    """One row in one metric under one protocol."""

    mean: float
    seeds: int
    half: float | None = None  # half of Student's 95% interval over seeds
    change: float | None = None  # percent of the mean of the row that it is compared with
    interval: tuple[float, float] | None = None  # Welch's 95% interval of the change, in percent
    over: Over | None = None  # what it was tested over
    p: float | None = None  # after Holm's correction
    sign: Sign | None = None  # where p is below the level
    best: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Gap:
    """Why there is no value."""

    reason: Literal["not planned", "not run", "failed", "not counted", "not measured"]

    def to_json(self) -> dict[str, str]:
        return {"gap": self.reason}


@dataclass(frozen=True, eq=False)
class Seeds:
    """The runs of one row under one protocol on one dataset."""

    planned: tuple[Recorded, ...]

    @property
    def finished(self) -> list[Recorded]:
        return [one for one in self.planned if one.finished]

    def values(self, key: str) -> list[float]:
        """Of the finished ones; empty unless each of them has the metric: those that have it are another choice of
        seeds than the row says it has."""
        found = [metric_of(one, key) for one in self.finished]
        values = [value for value in found if value is not None]
        return values if len(values) == len(found) else []

    def with_seeds(self, seeds: Container[int]) -> Seeds:
        return Seeds(tuple(one for one in self.planned if one.run.seed in seeds))

    def gap(self) -> Gap:
        if not self.planned:
            return Gap("not planned")
        if self.finished:
            return Gap("not measured")
        states = {one.state for one in self.planned}
        return Gap("failed" if "failed" in states else "not counted" if "other" in states else "not run")


def cell_of(seeds: Seeds, base: Seeds | None, key: str) -> Cell | Gap:
    """`base` is None for the row that the others are compared with. There is a change where every seed that both have
    recorded the metric, in both."""
    values = seeds.values(key)
    if not values:
        return seeds.gap()
    half = student_half(values) if len(values) >= LEAST_FOR_INTERVAL else None
    alone = Cell(fmean(values), len(values), half)
    if base is None:
        return alone
    below, beside = (one.values(key) for one in on_shared_seeds([base, seeds]))
    if not below or fmean(below) == 0:
        return alone
    unit = 100 / fmean(below)
    ends = seed_interval(below, beside) if min(len(beside), len(below)) >= LEAST_FOR_INTERVAL else None
    interval = None if ends is None else (unit * ends[0], unit * ends[1])
    return replace(alone, change=unit * (fmean(beside) - fmean(below)), interval=interval)


def on_shared_seeds(rows: Sequence[Seeds]) -> list[Seeds]:
    """Rows with the finished runs of the seeds that all of them have; as they are where there is no such seed."""
    shared = set.intersection(*({one.run.seed for one in row.finished} for row in rows))
    return [row.with_seeds(shared) for row in rows] if shared else list(rows)


def outcome_of(seeds: Seeds, base: Seeds, key: str) -> Outcome | None:
    """Over seeds where both have enough, else over users where they are recorded."""
    a, b = (one.values(key) for one in on_shared_seeds([base, seeds]))
    if min(len(a), len(b)) >= LEAST_RUNS:
        found = welch_test(a, b)
        return Outcome("seeds", found.p, found.mean_difference)
    pairs = _pairs(base, seeds)
    one, other = (_mean_per_user([pair[side] for pair in pairs], key) for side in (0, 1))
    if one is None or other is None:
        return None
    over_users = paired_test(one, other)
    return Outcome("users", over_users.p_t, over_users.mean_difference)


def _pairs(base: Seeds, seeds: Seeds) -> list[tuple[Recorded, Recorded]]:
    """Runs with the same seed whose values per user are recorded, all of the same users."""
    known = {one.run.seed: one for one in base.finished if _has_users(one)}
    others = [one for one in seeds.finished if _has_users(one) and one.run.seed in known]
    pairs = [(known[one.run.seed], one) for one in others]
    runs = [one for pair in pairs for one in pair]
    odd = next((one for one in runs if _about_users(one)["ids"] != _about_users(runs[0])["ids"]), None)
    if odd is not None:
        raise RunError(f"{runs[0].path} and {odd.path} are about different users; record both on one split")
    return pairs


def _mean_per_user(runs: Sequence[Recorded], key: str) -> Array | None:
    """Over the runs; None where one of them has not recorded the metric, or there is none."""
    tables = [read_recorded_users(one.path, _about_users(one)) for one in runs]
    if not tables or not all(key in table for table in tables):
        return None
    return np.asarray(np.mean([table[key] for table in tables], axis=0))


def has_lost_users(one: Recorded) -> bool:
    return one.finished and users_of(one) is not None and not _has_users(one)


def _has_users(one: Recorded) -> bool:
    return users_of(one) is not None and has_recorded_users(one.path, one.content or {})


def _about_users(one: Recorded) -> Mapping[str, Any]:
    return users_of(one) or {}


def gpu_minutes(records: Sequence[Recorded]) -> float:
    """That the recorded runs spent on a GPU, those included that failed, but not those of other runs than planned; runs
    side by side share its minutes."""
    return sum(gpu_seconds(one) for one in records if one.state != "other") / 60
