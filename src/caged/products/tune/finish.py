"""The end of a search: what was chosen is trained anew, with several seeds, and tested, each training once.

From here on there is no way back to the search: the journal says that it is closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from caged.errors import TrainingError
from caged.products.tune.attempt import Given
from caged.products.tune.choice import Choice
from caged.products.tune.crew import Died, Done, Result, Turn
from caged.products.tune.finals import final_spec, keep_failure, keep_test, run_folder, untested
from caged.products.tune.journal import Final
from caged.products.tune.presets import default_command, train_command, write_preset
from caged.products.tune.search import MOST_DEATHS, Search
from caged.products.tune.turns import take_turns
from caged.products.tune.watching import TurnProgress
from caged.runs.execute import resume, start
from caged.runs.folder import RunFolder
from caged.runs.spec import ExperimentSpec
from caged.training import Observer


def write_presets(search: Search, choice: Choice) -> None:
    settings = search.settings
    for chosen in choice.methods:
        if chosen.trial is not None:
            write_preset(search.folder, settings, settings.spec(chosen.method, chosen.trial.values))


def train_and_test(search: Search, choice: Choice) -> None:
    """The only place of a search that reads the test part; what is tested already is not tested again."""
    if not search.journal.closed:
        search.journal.write("closed", rounds=choice.rounds)
    _Finish(search, choice, {_turn(final): final for final in untested(search, choice)}).run()


def _turn(final: Final) -> Turn:
    method, setting, seed = final
    return (method if setting == "tuned" else f"{method} with defaults"), seed


@dataclass(frozen=True)
class Training:
    """Trains a setting and tests it; the result is the reason why there is nothing to test, where there is one."""

    spec: ExperimentSpec
    folder: Path
    command: str

    def __call__(self, given: Given, observer: Observer, stop_requested: Callable[[], bool]) -> str | None:
        try:
            if not RunFolder.is_one(self.folder):
                start(
                    self.spec,
                    self.folder,
                    command=self.command,
                    no_report=True,
                    observers=(observer,),
                    stop_requested=stop_requested,
                )
            elif (found := RunFolder.read(self.folder)).run.status != "finished":
                resume(found, observers=(observer,), stop_requested=stop_requested)
        except TrainingError as error:
            return str(error)
        return None


@dataclass(eq=False)
class _Finish:
    """The trainings of a search that is closed, as far as they are not tested; stopped, the next call goes on."""

    search: Search
    choice: Choice
    finals: dict[Turn, Final]
    deaths: Counter[Turn] = field(default_factory=Counter)

    def run(self) -> None:
        crew = self.search.crew
        watch = TurnProgress(
            self.search.report,
            lambda turn: f"{turn[0]} seed {turn[1]}",
            lambda: (sum(map(self._is_over, self.finals)), len(self.finals)),
            side_by_side=crew.count > 1,
        )
        take_turns(
            crew,
            list(self.finals),
            ready=lambda turn: True,
            begin=self._begun,
            end=self._end,
            must_stop=self.search.stop_requested,
            watch=watch,
        )

    def _begun(self, turn: Turn) -> Training:
        search, final = self.search, self.finals[turn]
        spec, settings = final_spec(search, self.choice, final), search.settings
        tuned = final[1] == "tuned"
        command = train_command(search.folder, settings, spec) if tuned else default_command(settings, spec)
        return Training(spec, run_folder(search, final), command)

    def _end(self, turn: Turn, result: Result) -> bool:
        search, final = self.search, self.finals[turn]
        if isinstance(result, Done) and result.value is None:
            keep_test(search, self.choice, final)
        elif isinstance(result, Done):
            keep_failure(search, final, result.value)
        elif isinstance(result, Died):
            self.deaths[turn] += 1
            if self.deaths[turn] == MOST_DEATHS:
                keep_failure(search, final, f"{result.reason}, {MOST_DEATHS} times in a row")
        return self._is_over(turn)

    def _is_over(self, turn: Turn) -> bool:
        return self.finals[turn] in self.search.journal.tested
