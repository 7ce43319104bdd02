"""Small searches: a log, its split as a folder, settings that train in no time, and trainings that are made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from caged.products.tune.attempt import Given
from caged.products.tune.crew import Alone, Died, Job, Result, Stop, Turn, Watch, unwatched
from caged.products.tune.journal import Journal
from caged.products.tune.settings import Settings, make_settings
from caged.products.tune.trial import Outcome
from caged.runs.spec import ExperimentSpec

TINY = ("train.batch_size=128", "method.embedding_size=4")
USERS, ITEMS = 40, 40


def write_log(folder: Path) -> Path:
    """Every user takes 8 to 12 items, the first items more often."""
    generator = np.random.default_rng(5)
    shares = np.arange(1, ITEMS + 1) ** -0.5
    lines = ["user_id,item_id"]
    for user in range(USERS):
        for item in generator.choice(ITEMS, generator.integers(8, 13), replace=False, p=shares / shares.sum()):
            lines.append(f"u{user:02d},i{item:02d}")
    path = folder / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def settings(source: Path, *methods: str, **options: Any) -> Settings:
    usual: dict[str, Any] = {"trials": 3, "epochs": 2, "seeds": 1, "device": "cpu", "threads": 1}
    fixed = TINY if any(method not in ("mostpop", "ease", "itemknn") for method in methods) else ()
    return make_settings(str(source), methods, **{**usual, "fixed": fixed, **options})


class MadeUp:
    """Stands for `run_trial`: what a setting reaches is a formula, and what was trained is written down."""

    def __init__(self, before: Callable[[int, ExperimentSpec], None] = lambda count, spec: None) -> None:
        self.before, self.trained = before, list[tuple[str, float]]()

    def __call__(self, spec: ExperimentSpec, *_: object, **__: object) -> Outcome:
        self.before(len(self.trained), spec)
        rate = spec.train.learning_rate
        self.trained.append((spec.method, rate))
        recall = 1 / (1 + abs(np.log10(rate) + 2.5)) - 0.01 * len(spec.method)
        return Outcome({"recall@20": float(recall), "recall@20/niche": 1 - float(recall)}, 2, 1, 0.5)


class SideBySide:
    """Stands for worker processes: jobs are done here, in an order that chance makes; some workers die over theirs."""

    def __init__(self, given: Given, count: int, seed: int, deaths: float = 0.0) -> None:
        self.given, self.count, self.deaths = given, count, deaths
        self._draws = np.random.default_rng(seed)
        self._running: list[tuple[Turn, Job, Stop]] = []

    @property
    def free(self) -> bool:
        return len(self._running) < self.count

    def start(self, turn: Turn, job: Job, stop_requested: Stop, watch: Watch = unwatched) -> None:
        self._running.append((turn, job, stop_requested))

    def wait(self) -> list[tuple[Turn, Result]]:
        turn, job, stop_requested = self._running.pop(self._draws.integers(len(self._running)))
        if self._draws.random() < self.deaths:
            return [(turn, Died("its process was killed"))]
        alone = Alone(self.given)
        alone.start(turn, job, stop_requested)
        return alone.wait()

    def stop(self) -> None:
        """Jobs ask by themselves."""


def outcomes(journal: Journal) -> list[tuple[Any, ...]]:
    """What a search did, without the time that it took."""
    return [
        (trial.method, trial.number, trial.values, trial.status, trial.metrics, trial.epochs)
        for _, trial in sorted(journal.trials.items())
    ]
