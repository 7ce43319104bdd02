"""The choice, on the validation part alone: who recommends most niche items well without losing accuracy.

Candidates are all trainings of whole rounds. The most accurate one of each method, if it is close enough to the best
recall, is one once more with popularity taken out of its scores, as far as that keeps it close enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from caged.evaluation.adjust.choice import Adjustment, Form
from caged.models import display_name
from caged.products.adjust import adjust_model
from caged.products.best.search import Search
from caged.products.best.shortlist import BESTSELLERS
from caged.products.tune import Goal, Trial, Values

FORM: Form = "degree"
ROUNDING = 1e-12  # relative: the share of one recall that is the share of another is not exact


@dataclass(frozen=True)
class Candidate:
    method: str
    trial: int
    values: Values  # that differ from the defaults
    strength: float | None  # of the adjustment; None: as it was trained
    metrics: Mapping[str, float | None]  # of the validation part
    epochs: int  # behind the state that was kept
    within: bool = False  # close enough to the best recall

    @property
    def name(self) -> str:
        return self.method if self.strength is None else f"{self.method} adjusted"

    @property
    def display(self) -> str:
        return display_name(self.name)

    @property
    def adjustment(self) -> Adjustment | None:
        return None if self.strength is None else Adjustment(FORM, self.strength)


@dataclass(frozen=True)
class Choice:
    recall: str  # the key that decides who is close enough
    niche: str  # the key that decides among them
    limit: float
    chosen: Candidate
    candidates: tuple[Candidate, ...]  # in the order of the rule, the chosen one first
    rounds: int

    def best_of(self, name: str) -> Candidate | None:
        """The first of a method in that order."""
        return next((one for one in self.candidates if one.name == name), None)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(one.name for one in self.candidates))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Choice:
        candidates = tuple(Candidate(**one) for one in values["candidates"])
        return cls(**{**values, "chosen": candidates[0], "candidates": candidates})


def choose(search: Search) -> Choice:
    """The test part is not in memory."""
    goal, counted = search.goal(), search.counted()
    found = [_candidate(trial, None, trial.metrics or {}, goal) for trial in counted]
    for trial in _most_accurate(counted, search.recall):
        if goal.feasible(trial.metrics or {}) and trial.method != BESTSELLERS:
            search.clock.tell(f"taking popularity out of {display_name(trial.method)}")
            found += _adjusted(search, trial, goal)
    ranked = ranking(found, goal, search.recall)
    return Choice(search.recall, search.niche, goal.limits[0].value, ranked[0], tuple(ranked), search.rounds)


def ranking(candidates: Sequence[Candidate], goal: Goal, recall: str) -> list[Candidate]:
    """By the rule; of equals the more accurate one, then who came first."""
    return sorted(candidates, key=lambda one: (*goal.order(one.metrics), one.metrics.get(recall) or 0.0), reverse=True)


def _most_accurate(trials: Sequence[Trial], recall: str) -> list[Trial]:
    """One of each method."""
    best: dict[str, Trial] = {}
    for trial in trials:
        if trial.method not in best or _recall(trial, recall) > _recall(best[trial.method], recall):
            best[trial.method] = trial
    return list(best.values())


def _recall(trial: Trial, key: str) -> float:
    return (trial.metrics or {}).get(key) or 0.0


def _candidate(trial: Trial, strength: float | None, metrics: Mapping[str, float | None], goal: Goal) -> Candidate:
    within = goal.feasible(metrics)
    return Candidate(trial.method, trial.number, trial.values, strength, dict(metrics), trial.best_epoch, within)


def _adjusted(search: Search, trial: Trial, goal: Goal) -> list[Candidate]:
    """With as much popularity out as leaves it close enough to the best; none where that is nothing."""
    own = _recall(trial, search.recall)
    if not own:
        return []
    keep = min(1.0, goal.limits[0].value / own * (1 + ROUNDING))
    outcome = adjust_model(search.kept.load(trial, search.device), FORM, k=search.data.k, keep=keep)
    if outcome.adjustment.is_neutral:
        return []
    after = {str(key): change.after for key, change in outcome.changes["valid"].items()}
    return [_candidate(trial, outcome.adjustment.strength, after, goal)]
