"""What each option did: how much of the differences between the trials of a method goes with it.

Trials are put into groups by the value of an option; the tried values of a range are cut into three equal parts. The
share is epsilon squared, which is the share of the variance of the objective between the groups, less what groups that
mean nothing would have: 0 if the option did nothing, 1 if it alone decided. Whether it may be chance is a permutation
test, with Holm's correction over everything shown. Optuna's own measures need further packages, or look at the best
tenth of the trials only, of which there are one or two here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from caged.config import Range, Search, value_text
from caged.data.ids import Array
from caged.evaluation.significance import holm
from caged.products.tune.choice import Choice, Chosen
from caged.products.tune.space import Space
from caged.seeding import numpy_generator

LEAST_TRIALS = 6  # that succeeded; fewer say nothing about an option
PARTS = 3  # of the tried values of a range
SHUFFLES = 2000


@dataclass(frozen=True)
class Step:
    """The trials with one value of an option, or with values from a part of its range."""

    label: str
    trials: int
    mean: float  # of the objective


@dataclass(frozen=True)
class Effect:
    method: str
    option: str
    share: float
    p: float
    steps: tuple[Step, ...]
    p_adjusted: float = math.nan

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "steps": [vars(step) for step in self.steps]}


def effects(choice: Choice, spaces: dict[str, Space]) -> list[Effect]:
    """Of every option that was tried at several values, the strongest first; methods with too few trials are out."""
    found = [effect for chosen in choice.methods for effect in _of_method(choice, chosen, spaces[chosen.method])]
    adjusted = holm([effect.p for effect in found])
    corrected = [replace(effect, p_adjusted=p) for effect, p in zip(found, adjusted, strict=True)]
    return sorted(corrected, key=lambda effect: -effect.share)


def too_few(choice: Choice) -> list[str]:
    """Methods that have options, and fewer trials than it takes."""
    return [
        chosen.method
        for chosen in choice.methods
        if len(_known(choice, chosen)) < LEAST_TRIALS and chosen.default.values
    ]


def _known(choice: Choice, chosen: Chosen) -> list[tuple[dict[str, Any], float]]:
    key = choice.goal.objective.key
    pairs = ((trial.values, (trial.metrics or {}).get(key)) for trial in chosen.counted)
    return [(values, value) for values, value in pairs if value is not None and math.isfinite(value)]


def _of_method(choice: Choice, chosen: Chosen, space: Space) -> Iterable[Effect]:
    known = _known(choice, chosen)
    if len(known) < LEAST_TRIALS:
        return
    reached = np.array([value for _, value in known])
    for option, search in space.items():
        labels = _labels([values[option] for values, _ in known], search)
        share, p = explained(labels, reached)
        if math.isfinite(share):
            yield Effect(chosen.method, option, share, p, _steps(labels, reached))


def _labels(values: Sequence[Any], search: Search) -> list[str]:
    """The group of each trial, by its name."""
    if not isinstance(search, Range):
        return [value_text(value) for value in values]
    numbers = np.asarray(values, dtype=np.float64)
    part = np.searchsorted(np.quantile(numbers, [place / PARTS for place in range(1, PARTS)]), numbers)
    ends = {int(one): (numbers[part == one].min(), numbers[part == one].max()) for one in np.unique(part)}
    names = {
        one: value_text(float(low)) if low == high else f"{value_text(float(low))} to {value_text(float(high))}"
        for one, (low, high) in ends.items()
    }
    return [names[int(one)] for one in part]


def _steps(labels: Sequence[str], reached: Array) -> tuple[Step, ...]:
    found = []
    for label in dict.fromkeys(labels):
        mine = reached[[one == label for one in labels]]
        found.append(Step(label, len(mine), float(mine.mean())))
    return tuple(found)


def explained(labels: Sequence[str], reached: Array) -> tuple[float, float]:
    """The share of the differences that goes with the groups, and how often shuffled groups have as much of them.

    >>> explained(["a", "a", "a", "b", "b", "b"], np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0]))
    (1.0, 0.1...)
    >>> explained(["a", "b", "c"], np.array([1.0, 2.0, 3.0]))
    (nan, nan)
    """
    names = list(dict.fromkeys(labels))
    trials, groups = len(labels), len(names)
    centred = reached - reached.mean()
    total = float(np.square(centred).sum())
    if not 1 < groups < trials or total == 0:
        return math.nan, math.nan
    member = np.array([[label == name for name in names] for label in labels], dtype=np.float64)
    sizes = member.sum(axis=0)
    generator = numpy_generator(0, "importance")
    shuffled = generator.permuted(np.tile(centred, (SHUFFLES, 1)), axis=1)
    between = (np.square(np.vstack([centred, shuffled]) @ member) / sizes).sum(axis=1) / total
    observed = float(between[0])
    share = 1 - (1 - observed) * (trials - 1) / (trials - groups)
    as_much = int((between >= observed - 1e-12).sum())  # the observed one is among them
    return max(0.0, share), as_much / (SHUFFLES + 1)
