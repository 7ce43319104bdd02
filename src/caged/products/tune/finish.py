"""The end of a search: what was chosen is trained anew, with several seeds, and tested, each training once.

From here on there is no way back to the search: the journal says that it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from caged.errors import TrainingError
from caged.files import read_sealed_json
from caged.models import registered
from caged.products.tune.choice import Choice, Chosen
from caged.products.tune.presets import train_command, write_preset
from caged.products.tune.search import Search
from caged.progress import EpochProgress, ProgressReport
from caged.runs.execute import resume, start
from caged.runs.folder import METRICS, RunFolder
from caged.runs.spec import ExperimentSpec
from caged.training import Interrupted

RUNS = "runs"


@dataclass(frozen=True)
class FinalRun:
    """A training of what was chosen."""

    seed: int
    folder: Path
    metrics: dict[str, float | None] | None  # of the test part
    reason: str | None = None  # why there are none

    def value(self, key: str) -> float | None:
        return None if self.metrics is None else self.metrics.get(key)


def write_presets(search: Search, choice: Choice) -> None:
    for chosen in choice.methods:
        if chosen.trial is not None:
            write_preset(search.folder, search.settings, _spec(search, chosen, search.settings.seed))


def train_and_test(search: Search, choice: Choice) -> dict[str, list[FinalRun]]:
    """The only place of a search that reads the test part; a run that is finished already is not made again."""
    if not search.journal.closed:
        search.journal.write("closed", rounds=choice.rounds)
    return {
        chosen.method: [_tested(search, chosen, seed) for seed in _seeds(search, chosen)]
        for chosen in choice.methods
        if chosen.trial is not None
    }


def _seeds(search: Search, chosen: Chosen) -> range:
    """A closed form draws nothing: one training says it all."""
    first, spec = search.settings.seed, _spec(search, chosen, search.settings.seed)
    trained = bool(registered(spec.method).method(spec.config).stages())
    return range(first, first + (search.settings.seeds if trained else 1))


def _spec(search: Search, chosen: Chosen, seed: int) -> ExperimentSpec:
    assert chosen.trial is not None
    return search.settings.spec(chosen.method, chosen.trial.values, seed=seed)


def _tested(search: Search, chosen: Chosen, seed: int) -> FinalRun:
    folder = search.folder / RUNS / f"{chosen.method}-seed{seed}"
    try:
        metrics = _run(search, _spec(search, chosen, seed), folder, search.report, search.stop_requested)
    except TrainingError as error:
        return FinalRun(seed, folder, None, str(error))
    return FinalRun(seed, folder, metrics)


def _run(
    search: Search,
    spec: ExperimentSpec,
    folder: Path,
    report: ProgressReport,
    stop_requested: Callable[[], bool],
) -> dict[str, float | None]:
    if stop_requested():
        raise Interrupted
    observers = (EpochProgress(report, f"{spec.method} seed {spec.seed}"),)
    if RunFolder.is_one(folder):
        found = RunFolder.read(folder)
        if found.run.status != "finished":
            resume(found, observers=observers, stop_requested=stop_requested)
    else:
        command = train_command(search.folder, search.settings, spec)
        start(spec, folder, command=command, no_report=True, observers=observers, stop_requested=stop_requested)
    metrics: dict[str, float | None] = read_sealed_json(folder / METRICS)["metrics"]
    return metrics
