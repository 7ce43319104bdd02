"""The answer of a search: who wins, by how much and how sure, what everybody was given; all of it as JSON.

`words`, `tables`, `text` and `page` say it to people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from caged.files import write_sealed_json
from caged.products.tune.choice import Choice, Chosen
from caged.products.tune.evidence import Margin, gains, leads
from caged.products.tune.finals import FinalRun, Finals
from caged.products.tune.importance import Effect, effects
from caged.products.tune.objective import goal_json
from caged.products.tune.presets import preset_path, train_command
from caged.products.tune.search import Search
from caged.products.tune.settings import Settings

FILE, PAGE = "tune.json", "tune.html"


@dataclass(frozen=True, eq=False)
class Answer:
    folder: Path
    settings: Settings
    choice: Choice
    tests: Finals = field(default_factory=Finals)
    complete: bool = True  # every trial was made
    made_for: str | None = None  # the goal that the trials were proposed for, where it is another one
    data: Mapping[str, str] = field(default_factory=dict)  # fingerprints of the parts that were searched on
    calls: tuple[Mapping[str, Any], ...] = ()  # the commands that did the work, and their machines

    @property
    def winner(self) -> Chosen | None:
        return next(iter(self.choice.ranked), None)

    @property
    def second(self) -> Chosen | None:
        return next(iter(self.choice.ranked[1:]), None)

    @property
    def tested(self) -> Mapping[str, list[FinalRun]]:
        """The chosen settings by method; empty before the search is closed."""
        return self.tests.tuned

    @property
    def dataset(self) -> str:
        return str(self.calls[0]["dataset"]) if self.calls else self.settings.source

    def validated(self, chosen: Chosen, key: str) -> float | None:
        return None if chosen.trial is None or chosen.trial.metrics is None else chosen.trial.metrics.get(key)

    def defaulted(self, chosen: Chosen, key: str) -> float | None:
        """What the defaults reach on validation."""
        return (chosen.default.metrics or {}).get(key)

    def test_mean(self, method: str, key: str) -> float | None:
        """Over the seeds; None where one of them has no value, or nothing is tested yet."""
        return _mean(self.tests.tuned.get(method, []), key)

    def default_test_mean(self, method: str, key: str) -> float | None:
        return _mean(self.tests.default.get(method, []), key)

    @cached_property
    def leads(self) -> list[Margin]:
        """The winner against every other method, on the test part."""
        if self.winner is None:
            return []
        return leads(self.winner.method, self.tests.tuned, self.choice.keys, self.data)

    @cached_property
    def gains(self) -> list[Margin]:
        """Tuned against default, on the test part."""
        return gains(self.tests.default, self.tests.tuned, self.choice.keys, self.data)

    @cached_property
    def effects(self) -> list[Effect]:
        return effects(self.choice, self.settings.spaces)

    @property
    def devices(self) -> list[str]:
        """Where it was trained."""
        return list(dict.fromkeys(str(one.get("gpu") or one["cpu"]) for one in self._machines))

    @property
    def on_gpu(self) -> bool:
        return any(one["device"] == "cuda" for one in self._machines)

    @property
    def _machines(self) -> list[Mapping[str, Any]]:
        """A call that only judged again has none."""
        return [call["hardware"] for call in self.calls if "hardware" in call]

    def command(self, chosen: Chosen) -> str:
        assert chosen.trial is not None
        return train_command(self.folder, self.settings, self.settings.spec(chosen.method, chosen.trial.values))


def make_answer(search: Search, choice: Choice, tests: Finals, *, complete: bool) -> Answer:
    journal = search.journal
    return Answer(
        search.folder,
        search.settings,
        choice,
        tests,
        complete,
        journal.made_for,
        journal.data,
        tuple(journal.calls),
    )


def write_answer(answer: Answer) -> Path:
    path = answer.folder / FILE
    write_sealed_json(path, answer_json(answer))
    return path


def _mean(runs: list[FinalRun], key: str) -> float | None:
    values = [one.value(key) for one in runs]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


# ---------------------------------------------------------------- JSON


def answer_json(answer: Answer) -> dict[str, Any]:
    choice, winner, second = answer.choice, answer.winner, answer.second
    return {
        "folder": str(answer.folder),
        "dataset": answer.dataset,
        "complete": answer.complete,
        "tested": bool(answer.tested) and answer.tests.left == 0,
        "tests_left": answer.tests.left,
        "winner": winner.method if winner else None,
        "second": second.method if second else None,
        "margin": _margin(answer, winner, second),
        "leads": [one.to_json() for one in answer.leads],
        "gains": [one.to_json() for one in answer.gains],
        "goal": goal_json(choice.goal),
        "trials_made_for": answer.made_for,
        "subject_to": [str(each) for each in answer.settings.constraints],
        "rounds": choice.rounds,
        "dropped_trials": choice.dropped,
        "methods": {chosen.method: _method_json(answer, chosen) for chosen in choice.methods},
        "front": {
            "axes": [axis.key for axis in choice.goal.axes()],
            "trials": [{"method": trial.method, "trial": trial.number} for trial in choice.front],
        },
        "importance": [effect.to_json() for effect in answer.effects],
        "settings": answer.settings.to_json(),
        "calls": list(answer.calls),
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
    return {
        "trials": len(chosen.counted),
        "failed": chosen.failed,
        "pruned": chosen.pruned,
        "epochs_saved": chosen.saved,
        "exhausted": chosen.exhausted,
        "epochs": chosen.epochs,
        "seconds": chosen.seconds,
        "feasible": chosen.feasible,
        "default": chosen.default.to_json(),
        "chosen": None if chosen.trial is None else chosen.trial.to_json(),
        "preset": None if chosen.trial is None else str(preset_path(answer.folder, chosen.method)),
        "command": None if chosen.trial is None else answer.command(chosen),
        "test": [_final_json(one) for one in answer.tests.tuned.get(chosen.method, [])],
        "default_test": [_final_json(one) for one in answer.tests.default.get(chosen.method, [])],
        "record": [trial.to_json() for trial in chosen.counted],
    }


def _final_json(one: FinalRun) -> dict[str, Any]:
    return {
        "seed": one.seed,
        "folder": str(one.folder),
        "metrics": one.metrics,
        "reason": one.reason,
        "epochs": one.epochs,
        "seconds": one.seconds,
    }
