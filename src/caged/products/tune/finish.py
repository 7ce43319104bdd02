"""The end of a search: what was chosen is trained anew, with several seeds, and tested, each training once.

From here on there is no way back to the search: the journal says that it is closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from caged.errors import TrainingError
from caged.files import read_sealed_json
from caged.models import registered
from caged.products.tune.attempt import Given
from caged.products.tune.choice import Choice, Chosen
from caged.products.tune.crew import Died, Done, Result, Turn
from caged.products.tune.presets import train_command, write_preset
from caged.products.tune.search import MOST_DEATHS, Search
from caged.products.tune.turns import take_turns
from caged.products.tune.watching import TurnProgress
from caged.runs.execute import resume, start
from caged.runs.folder import METRICS, RunFolder
from caged.runs.spec import ExperimentSpec
from caged.training import Interrupted, Observer

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
    final = _Final(search, {chosen.method: chosen for chosen in choice.methods if chosen.trial is not None})
    return final.runs()


@dataclass(frozen=True)
class Training:
    """Trains what was chosen and tests it; the result are the metrics, or the reason why there are none."""

    spec: ExperimentSpec
    folder: Path
    command: str

    def __call__(
        self, given: Given, observer: Observer, stop_requested: Callable[[], bool]
    ) -> dict[str, float | None] | str:
        try:
            if RunFolder.is_one(self.folder):
                resume(RunFolder.read(self.folder), observers=(observer,), stop_requested=stop_requested)
            else:
                start(
                    self.spec,
                    self.folder,
                    command=self.command,
                    no_report=True,
                    observers=(observer,),
                    stop_requested=stop_requested,
                )
        except TrainingError as error:
            return str(error)
        return _metrics(self.folder)


@dataclass(eq=False)
class _Final:
    """The trainings of a search that is closed: a turn for each method and seed."""

    search: Search
    chosen: Mapping[str, Chosen]
    found: dict[Turn, dict[str, float | None] | str] = field(default_factory=dict)  # metrics, or why there are none
    deaths: Counter[Turn] = field(default_factory=Counter)

    def runs(self) -> dict[str, list[FinalRun]]:
        turns = [(method, seed) for method, chosen in self.chosen.items() for seed in _seeds(self.search, chosen)]
        for turn in turns:
            folder = self._folder(turn)
            if RunFolder.is_one(folder) and RunFolder.read(folder).run.status == "finished":
                self.found[turn] = _metrics(folder)
        crew = self.search.crew
        watch = TurnProgress(
            self.search.report,
            lambda turn: f"{turn[0]} seed {turn[1]}",
            lambda: (len(self.found), len(turns)),
            side_by_side=crew.count > 1,
        )
        done = take_turns(
            crew,
            [turn for turn in turns if turn not in self.found],
            ready=lambda turn: True,
            begin=self._begun,
            end=self._end,
            must_stop=self.search.stop_requested,
            watch=watch,
        )
        if not done:
            raise Interrupted
        return {method: [self._run(turn) for turn in turns if turn[0] == method] for method in self.chosen}

    def _begun(self, turn: Turn) -> Training:
        method, seed = turn
        spec = _spec(self.search, self.chosen[method], seed)
        command = train_command(self.search.folder, self.search.settings, spec)
        return Training(spec, self._folder(turn), command)

    def _end(self, turn: Turn, result: Result) -> bool:
        if isinstance(result, Done):
            self.found[turn] = result.value
        elif isinstance(result, Died):
            self.deaths[turn] += 1
            if self.deaths[turn] == MOST_DEATHS:
                self.found[turn] = f"{result.reason}, {MOST_DEATHS} times in a row"
        return turn in self.found

    def _run(self, turn: Turn) -> FinalRun:
        found = self.found[turn]
        metrics, reason = (None, found) if isinstance(found, str) else (found, None)
        return FinalRun(turn[1], self._folder(turn), metrics, reason)

    def _folder(self, turn: Turn) -> Path:
        return self.search.folder / RUNS / f"{turn[0]}-seed{turn[1]}"


def _metrics(folder: Path) -> dict[str, float | None]:
    metrics: dict[str, float | None] = read_sealed_json(folder / METRICS)["metrics"]
    return metrics


def _seeds(search: Search, chosen: Chosen) -> range:
    """A closed form draws nothing: one training says it all."""
    first, spec = search.settings.seed, _spec(search, chosen, search.settings.seed)
    trained = bool(registered(spec.method).method(spec.config).stages())
    return range(first, first + (search.settings.seeds if trained else 1))


def _spec(search: Search, chosen: Chosen, seed: int) -> ExperimentSpec:
    assert chosen.trial is not None
    return search.settings.spec(chosen.method, chosen.trial.values, seed=seed)
