"""How sure a difference on the test part is: over the choice of users, and over training seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caged.evaluation.bootstrap import Interval
from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import seed_interval
from caged.products.compare import Entry, Group, differences
from caged.products.tune.finals import FinalRun

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Margin:
    """By how much one setting is ahead of another in a metric of the test part, the mean over seeds."""

    name: str  # whose setting it is compared with; of a gain: whose own
    key: str
    difference: float
    base: float
    users: Interval | None  # 95%, paired by user, each user's value averaged over the seeds first
    seeds: Bounds | None  # 95%, Welch's t over the trainings
    runs: tuple[int, int]  # trainings on both sides

    @property
    def relative(self) -> float:
        return self.difference / self.base if self.base else math.nan

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.name,
            "metric": self.key,
            "difference": self.difference,
            "relative": self.relative,
            "interval_over_users": None if self.users is None else list(self.users[:2]),
            "interval_over_seeds": None if self.seeds is None else list(self.seeds),
            "trainings": list(self.runs),
        }


def leads(
    winner: str, tested: Mapping[str, list[FinalRun]], keys: Sequence[str], data: Mapping[str, str]
) -> list[Margin]:
    """The winner less every other method; `data` are the fingerprints of its parts."""
    first = _group(winner, tested.get(winner, []), data)
    others = [_group(method, runs, data) for method, runs in tested.items() if method != winner]
    return [one for other in others if first and other for one in _margins(other.name, other, first, keys)]


def gains(
    default: Mapping[str, list[FinalRun]],
    tuned: Mapping[str, list[FinalRun]],
    keys: Sequence[str],
    data: Mapping[str, str],
) -> list[Margin]:
    """What tuning brought each method: tuned less default; nothing where both are the same trainings."""
    found = []
    for method, runs in tuned.items():
        before, after = _group(method, default.get(method, []), data), _group(method, runs, data)
        if before and after and default[method] != runs:
            found += _margins(method, before, after, keys)
    return found


def _margins(name: str, before: Group, after: Group, keys: Sequence[str]) -> list[Margin]:
    known = [MetricKey.parse(key) for key in keys if _known(before, key) and _known(after, key)]
    return [
        Margin(
            name,
            one.metric,
            one.difference,
            one.baseline_value,
            one.interval,
            seed_interval(before.values(one.metric), after.values(one.metric)),
            (len(after.entries), len(before.entries)),
        )
        for one in differences(before, [after], known, one_split=True)
    ]


def _known(group: Group, key: str) -> bool:
    return all(math.isfinite(entry.metrics.get(key, math.nan)) for entry in group.entries)


def _group(method: str, runs: Sequence[FinalRun], data: Mapping[str, str]) -> Group | None:
    """None where a training failed: the mean over the others would be of a luckier method."""
    if not runs or any(run.metrics is None for run in runs):
        return None
    return Group(method, tuple(_entry(method, run, data) for run in runs))


def _entry(method: str, run: FinalRun, data: Mapping[str, str]) -> Entry:
    return Entry(
        folder=run.users or run.folder,
        kind="run",
        method=method,
        seed=run.seed,
        protocol=None,
        dataset=None,
        fingerprints=data,
        settings={},
        metrics={key: math.nan if value is None else value for key, value in (run.metrics or {}).items()},
    )
