"""The test, once, after the choice: the chosen model, LightGCN at its defaults, bestsellers; with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from caged.evaluation.evaluate import Evaluation
from caged.evaluation.intervals import intervals
from caged.evaluation.significance import paired_interval
from caged.models import display_name
from caged.products.best.choice import Candidate, Choice
from caged.products.best.kept import Kept
from caged.products.best.shortlist import BASELINE, BESTSELLERS
from caged.products.tune import Trial
from caged.runs.execute import evaluate_part
from caged.runs.loading import Loaded

CHOSEN = "chosen"  # the role of the model that is served
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Value:
    """A metric, and its difference to that of the chosen model (chosen less this one); intervals are over users."""

    value: float
    interval: Bounds | None
    difference: float = math.nan
    difference_interval: Bounds | None = None


@dataclass(frozen=True)
class Judged:
    role: str  # chosen, lightgcn or mostpop
    name: str  # for tables and pages
    values: Mapping[str, Value]  # by metric

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Judgement:
    rows: tuple[Judged, ...]  # the chosen one first
    evaluations: Mapping[str, Evaluation]  # by role
    users: int

    def row(self, role: str) -> Judged | None:
        return next((row for row in self.rows if row.role == role), None)


def judge_once(choice: Choice, kept: Kept, data: Loaded, device: torch.device) -> Judgement:
    """The only place that reads the test part."""
    models = {CHOSEN: choice.chosen, **_compared(choice)}
    evaluations = {role: _evaluated(model, kept, data, device) for role, model in models.items()}
    rows = tuple(Judged(role, name_of(role, choice.chosen), _values(choice, evaluations, role)) for role in evaluations)
    users = len(evaluations[CHOSEN].report.users)
    return Judgement(rows, evaluations, users)


def name_of(role: str, chosen: Candidate) -> str:
    return {CHOSEN: chosen.display, BASELINE: f"{display_name(BASELINE)} at its defaults"}.get(role, display_name(role))


def _compared(choice: Choice) -> dict[str, Candidate]:
    """At their defaults, as trained; who was not trained is not there, nor who was chosen itself."""
    found = {}
    for method in (BASELINE, BESTSELLERS):
        plain = [one for one in choice.candidates if (one.method, one.trial, one.strength) == (method, 0, None)]
        if plain and plain[0] != choice.chosen:
            found[method] = plain[0]
    return found


def _evaluated(model: Candidate, kept: Kept, data: Loaded, device: torch.device) -> Evaluation:
    fitted = kept.load(Trial(model.method, model.trial, model.values), device)
    scorer = replace(fitted, adjustment=model.adjustment).scorer()
    assert data.split.test is not None
    return evaluate_part(scorer, data.split, data.split.test, data.spec, device)


def _values(choice: Choice, evaluations: Mapping[str, Evaluation], role: str) -> dict[str, Value]:
    report, of_chosen = evaluations[role].report, evaluations[CHOSEN].report
    found = intervals(report)
    values = {}
    for key in (choice.recall, choice.niche):
        interval = found.get(key)
        bounds = None if interval is None else (interval.low, interval.high)
        value = Value(report.metrics[key], bounds)
        if role != CHOSEN:
            paired = paired_interval(report.per_user[key], of_chosen.per_user[key])
            value = replace(
                value,
                difference=of_chosen.metrics[key] - report.metrics[key],
                difference_interval=None if paired is None else (paired.low, paired.high),
            )
        values[key] = value
    return values
