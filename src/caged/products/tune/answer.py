"""The answer of a search: who wins, by how much, and what everybody was given. For a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from caged.config import value_text
from caged.files import write_sealed_json
from caged.page.numbers import UNDEFINED, number, signed_percent
from caged.page.text_table import TextTable
from caged.products.tune.choice import Choice, Chosen
from caged.products.tune.finish import FinalRun
from caged.products.tune.objective import goal_json
from caged.products.tune.presets import preset_path, train_command
from caged.products.tune.search import Search
from caged.products.tune.settings import Settings

FILE = "tune.json"


@dataclass(frozen=True, eq=False)
class Answer:
    folder: Path
    settings: Settings
    choice: Choice
    tested: Mapping[str, list[FinalRun]] = field(default_factory=dict)  # empty before the search is closed
    complete: bool = True  # every trial was made

    @property
    def winner(self) -> Chosen | None:
        return next(iter(self.choice.ranked), None)

    @property
    def second(self) -> Chosen | None:
        return next(iter(self.choice.ranked[1:]), None)

    def validated(self, chosen: Chosen, key: str) -> float | None:
        return None if chosen.trial is None or chosen.trial.metrics is None else chosen.trial.metrics.get(key)

    def test_mean(self, method: str, key: str) -> float | None:
        """Over the seeds; None where one of them has no value, or nothing is tested yet."""
        values = [one.value(key) for one in self.tested.get(method, [])]
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None

    def keys(self) -> list[str]:
        """What is shown: the objective, and what it is held to."""
        return list(self.settings.wished_keys)

    def command(self, chosen: Chosen) -> str:
        assert chosen.trial is not None
        return train_command(self.folder, self.settings, self.settings.spec(chosen.method, chosen.trial.values))


def make_answer(search: Search, choice: Choice, tested: Mapping[str, list[FinalRun]], *, complete: bool) -> Answer:
    return Answer(search.folder, search.settings, choice, tested, complete)


def write_answer(answer: Answer) -> Path:
    path = answer.folder / FILE
    write_sealed_json(path, answer_json(answer))
    return path


# ---------------------------------------------------------------- JSON


def answer_json(answer: Answer) -> dict[str, Any]:
    choice, winner, second = answer.choice, answer.winner, answer.second
    return {
        "folder": str(answer.folder),
        "complete": answer.complete,
        "tested": bool(answer.tested),
        "winner": winner.method if winner else None,
        "second": second.method if second else None,
        "margin": _margin(answer, winner, second),
        "goal": goal_json(choice.goal),
        "subject_to": [str(each) for each in answer.settings.constraints],
        "rounds": choice.rounds,
        "dropped_trials": choice.dropped,
        "methods": {chosen.method: _method_json(answer, chosen) for chosen in choice.methods},
        "front": {
            "axes": [axis.key for axis in choice.goal.axes()],
            "trials": [{"method": trial.method, "trial": trial.number} for trial in choice.front],
        },
        "settings": answer.settings.to_json(),
    }


def _margin(answer: Answer, winner: Chosen | None, second: Chosen | None) -> dict[str, Any] | None:
    if winner is None or second is None:
        return None
    key = answer.settings.objective.key
    return {
        "validation": _difference(answer.validated(winner, key), answer.validated(second, key)),
        "test": _difference(answer.test_mean(winner.method, key), answer.test_mean(second.method, key)),
    }


def _difference(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second


def _method_json(answer: Answer, chosen: Chosen) -> dict[str, Any]:
    tested = answer.tested.get(chosen.method, [])
    return {
        "trials": len(chosen.counted),
        "failed": chosen.failed,
        "exhausted": chosen.exhausted,
        "epochs": chosen.epochs,
        "seconds": chosen.seconds,
        "feasible": chosen.feasible,
        "default": chosen.default.to_json(),
        "chosen": None if chosen.trial is None else chosen.trial.to_json(),
        "preset": None if chosen.trial is None else str(preset_path(answer.folder, chosen.method)),
        "command": None if chosen.trial is None else answer.command(chosen),
        "test": [
            {"seed": one.seed, "folder": str(one.folder), "metrics": one.metrics, "reason": one.reason}
            for one in tested
        ],
        "record": [trial.to_json() for trial in chosen.counted],
    }


# ---------------------------------------------------------------- words


def answer_sentences(answer: Answer) -> list[str]:
    """Who wins, by how much, and on what that rests."""
    winner = answer.winner
    if winner is None:
        return [f"No method wins: no trial {_held(answer) or 'succeeded'}."]
    key, second = answer.settings.objective.key, answer.second
    text = f"{winner.method} wins: {key} {number(answer.validated(winner, key))} on validation"
    held = _held(answer)
    sentences = [f"{text}, the best of all that {held}." if held else f"{text}."]
    if second is not None:
        sentences.append(_by_how_much(answer, winner, second, key))
    if answer.tested:
        sentences.append(_on_test(answer, winner, key))
    return [" ".join(sentences)]


def _held(answer: Answer) -> str:
    parts = [
        f"{each}"
        + (f" (at {'least' if limit.sense == '>=' else 'most'} {number(limit.value)})" if each.reference else "")
        for each, limit in zip(answer.settings.constraints, answer.choice.goal.limits, strict=True)
    ]
    return f"kept {' and '.join(parts)}" if parts else ""


def _by_how_much(answer: Answer, winner: Chosen, second: Chosen, key: str) -> str:
    ahead = _relative(answer.validated(winner, key), answer.validated(second, key))
    return f"Next is {second.method} with {number(answer.validated(second, key))} ({winner.method}: {ahead})."


def _on_test(answer: Answer, winner: Chosen, key: str) -> str:
    seeds = len(answer.tested[winner.method])
    over = f"the mean of {seeds} seeds" if seeds > 1 else "one training"
    mine = answer.test_mean(winner.method, key)
    text = f"On the test part {winner.method} reaches {number(mine)} ({over})"
    second = answer.second
    theirs = None if second is None else answer.test_mean(second.method, key)
    if second is None or theirs is None:
        return f"{text}."
    return f"{text}, {second.method} {number(theirs)} ({winner.method}: {_relative(mine, theirs)})."


def _relative(mine: float | None, theirs: float | None) -> str:
    if mine is None or theirs is None or theirs == 0:
        return UNDEFINED
    return signed_percent(mine / theirs - 1)


def answer_tables(answer: Answer) -> list[TextTable]:
    return [_tuned_table(answer), _budget_table(answer)]


def _tuned_table(answer: Answer) -> TextTable:
    keys = answer.keys()
    headers = ["method"]
    for key in keys:
        headers += [f"{key} default", "tuned", *(["test"] if answer.tested else [])]
    rows = [_tuned_row(answer, chosen, keys) for chosen in answer.choice.methods]
    title = "tuned against default, on validation"
    title += "; test is the mean over seeds of what was tuned" if answer.tested else ""
    return TextTable(title, [*headers, "kept" if answer.settings.constraints else "trial", "chosen"], rows)


def _tuned_row(answer: Answer, chosen: Chosen, keys: Sequence[str]) -> list[str]:
    row = [chosen.method]
    for key in keys:
        row += [number((chosen.default.metrics or {}).get(key)), number(answer.validated(chosen, key))]
        row += [number(answer.test_mean(chosen.method, key))] if answer.tested else []
    if answer.settings.constraints:
        row.append("yes" if chosen.feasible else "no")
    else:
        row.append(UNDEFINED if chosen.trial is None else str(chosen.trial.number))
    return [*row, _setting(chosen)]


def _setting(chosen: Chosen) -> str:
    if chosen.trial is None:
        return f"all {len(chosen.counted)} trials failed"
    if chosen.trial.number == 0:
        return "defaults"
    return ", ".join(f"{name.partition('.')[2]}={value_text(value)}" for name, value in chosen.trial.values.items())


def _budget_table(answer: Answer) -> TextTable:
    rows = [
        [
            chosen.method,
            str(len(chosen.counted)),
            str(chosen.failed),
            str(chosen.epochs),
            number(chosen.seconds, 1),
            "all settings tried" if chosen.exhausted and len(chosen.counted) < answer.choice.rounds else "",
        ]
        for chosen in answer.choice.methods
    ]
    settings = answer.settings
    title = (
        f"what each was given: {answer.choice.rounds} trials of at most {settings.epochs} epochs, seed {settings.seed}"
    )
    return TextTable(title, ["method", "trials", "failed", "epochs", "seconds", "note"], rows)
