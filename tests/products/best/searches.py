"""Small searches: a log, trainings that are made up, and a clock that only they move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from caged.products.best import run
from caged.products.best.clock import Clock
from caged.products.best.kept import Kept
from caged.products.best.plan import Plan
from caged.products.best.search import Search
from caged.products.best.wish import Wish
from caged.products.tune import Journal, Outcome
from caged.runs.spec import ExperimentSpec
from caged.training import Interrupted
from tests.products.tune.tuned import write_log

QUICK: dict[str, Any] = {"keep": 0.8, "rounds": 2, "epochs": 2, "device": "cpu", "threads": 1}
METHODS = ("mostpop", "ease", "lightgcn", "softmax")


def wish(source: Path, **options: Any) -> Wish:
    return Wish(str(source), **{**QUICK, **options})


def written(folder: Path) -> Path:
    return write_log(folder)


class Time:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class MadeUp:
    """Stands for `run_trial`: every training takes as long, and reaches as much, as the table says.

    It ends in `Interrupted` where it was asked to stop before it was done, as a training does.
    """

    def __init__(self, time: Time, seconds: Mapping[str, float], recall: Callable[[str, int], float]) -> None:
        self.time, self.seconds, self.recall = time, seconds, recall
        self.trained: list[str] = []

    def __call__(
        self, spec: ExperimentSpec, *_: object, stop_requested: Callable[[], bool] = lambda: False, **__: object
    ) -> Outcome:
        number = self.trained.count(spec.method)
        for _step in range(10):
            self.time.seconds += self.seconds[spec.method] / 10
            if stop_requested() and self.seconds[spec.method] > 1:
                raise Interrupted
        self.trained.append(spec.method)
        recall = self.recall(spec.method, number)
        return Outcome({"recall@20": recall, "recall@20/niche": 1 - recall}, 10, 5, 0.0)


def search_of(folder: Path, time: Time, budget: float, **plan: Any) -> Search:
    """A search over the four methods whose plan is given."""
    asked = wish(written(folder), rounds=6, epochs=10)
    data, _ = run.read_log(asked)
    journal = Journal(folder / "journal.jsonl")
    journal.write("begin", settings=asked.to_json(), data={})
    usual: dict[str, Any] = {
        "methods": METHODS,
        "epochs": 10,
        "seconds_per_epoch": {"lightgcn": 1.0, "softmax": 2.0},
        "refit_factor": 2.0,
        "notes": (),
        "seconds": 0.0,
    }
    clock = Clock(budget, now=time)
    device = torch.device("cpu")
    return Search(asked, Plan(**{**usual, **plan}), data, device, journal, Kept(folder / "models"), clock)
