"""What pruning would have done to searches that were made without it, from the curves in their journals.

    python -m tools.pruning_effect tunes/first tunes/second
    python -m tools.pruning_effect tunes/first --maximise recall@20

The rule of `--prune` is applied to every trial as it was made: who would have ended early, after how many epochs, and
whether the trial that a method chose is among them. (With pruning, later trials would have had other settings.) Where
the searches had a constraint, `--maximise` asks for another metric without one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from caged.products.tune.halving import Compared, Curve, Ladder
from caged.products.tune.journal import Journal, Trial
from caged.products.tune.objective import Goal, Objective
from caged.products.tune.search import Search
from caged.products.tune.settings import Settings
from caged.products.tune.trial import SearchData
from caged.products.tune.turns import known_to

HEADERS = (
    "search",
    "method",
    "trials",
    "pruned",
    "epochs",
    "saved",
    "best trial",
    "pruned?",
    "best",
    "best left",
)


@dataclass(frozen=True)
class Effect:
    """On one method of one search."""

    search: str
    method: str
    trials: int
    pruned: int
    epochs: int
    saved: int
    best: Trial
    lost: bool  # the best would have been pruned
    value: float
    value_left: float  # of the best that pruning leaves

    def cells(self) -> list[str]:
        saved = f"{self.saved} ({self.saved / self.epochs:.0%})"
        numbers = [self.trials, self.pruned, self.epochs, saved, self.best.number, "yes" if self.lost else "no"]
        return [self.search, self.method, *map(str, numbers), f"{self.value:.4f}", f"{self.value_left:.4f}"]


def effects(folder: Path, maximise: str | None) -> list[Effect]:
    journal = Journal.read(folder)
    settings = Settings.from_json(journal.settings)
    search = Search(folder, settings, journal, cast("SearchData", None))  # nothing is trained
    found = [_effect(search, method, _goal(search, method, maximise)) for method in settings.methods]
    return [effect for effect in found if effect is not None]


def _goal(search: Search, method: str, maximise: str | None) -> Goal:
    """What the trials of a method were compared by."""
    if maximise is not None:
        return Goal(Objective.parse(maximise))
    return Goal(search.settings.wish_of(method)) if method in search.settings.references else search.goal()


def _effect(search: Search, method: str, goal: Goal) -> Effect | None:
    """None for a method without epochs."""
    made = [trial for trial in search.journal.of(method) if trial.curve is not None and trial.curve["epochs"]]
    if not made:
        return None
    ended_after = _replayed(made, goal, search.settings.epochs)
    best = _best(made, goal)
    left = _best([trial for trial in made if trial.number not in ended_after], goal)
    key = goal.objective.key
    return Effect(
        search=search.folder.name,
        method=method,
        trials=len(made),
        pruned=len(ended_after),
        epochs=sum(trial.epochs for trial in made),
        saved=sum(trial.epochs - ended_after.get(trial.number, trial.epochs) for trial in made),
        best=best,
        lost=best.number in ended_after,
        value=(best.metrics or {})[key] or 0.0,
        value_left=(left.metrics or {})[key] or 0.0,
    )


def _best(trials: Sequence[Trial], goal: Goal) -> Trial:
    return max(trials, key=lambda trial: goal.order(trial.metrics))


def _replayed(trials: Sequence[Trial], goal: Goal, cap: int) -> dict[int, int]:
    """Number of each trial that would have been pruned -> the epochs that it would have had."""
    fell: dict[int, int] = {}
    curves = {trial.number: Curve.from_json(trial.curve or {}) for trial in trials}
    for number, curve in curves.items():
        known = [Compared(curves[other], fell.get(other)) for other in curves if other < known_to(number)]
        rung = Ladder.against(known, goal, cap).falls_at(curve)
        if rung is not None:
            fell[number] = rung.epoch
    return fell


def table(found: Sequence[Effect]) -> str:
    rows = [HEADERS, ["---"] * len(HEADERS), *(effect.cells() for effect in found)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    epochs, saved = sum(one.epochs for one in found), sum(one.saved for one in found)
    lost = sum(one.lost for one in found)
    said = f"{lost} of {len(found)} best trials would have been pruned; {saved} of {epochs} epochs saved"
    return "\n".join([*lines, "", f"{said} ({saved / epochs:.0%})."])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="python -m tools.pruning_effect"
    )
    parser.add_argument("folders", nargs="+", type=Path, help="folders of caged tune, searched without --prune")
    parser.add_argument("--maximise", help="another metric that the search measured, without constraints")
    given = parser.parse_args(arguments)
    print(table([effect for folder in given.folders for effect in effects(folder, given.maximise)]))


if __name__ == "__main__":
    main()
