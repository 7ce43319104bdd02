"""The search: methods take turns, trial by trial, until the trials, the settings or the time are used up.

Everybody gets the same: number of trials, cap on epochs, seed. References are tuned first, because the others are held
to them. What is chosen rests on whole rounds: a trial that some method could not make any more counts for nobody.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter

import torch

from caged.errors import CagedError, RunError, memory_error
from caged.evaluation.lists import check_k
from caged.evaluation.metrics import MetricKey
from caged.graph import check_engine
from caged.products.tune.journal import FILE, STOPPED, Journal, Trial
from caged.products.tune.objective import Goal, Objective
from caged.products.tune.sampler import check_optuna, propose, small_grid
from caged.products.tune.settings import Settings
from caged.products.tune.space import Values
from caged.products.tune.trial import SearchData, load_search_data, run_trial
from caged.progress import EpochProgress, ProgressReport, unreported
from caged.runs.environment import resolve_device, set_threads
from caged.training import Interrupted

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """How long this process may search, in seconds; with `share_out`, references leave the others their share."""

    seconds: float | None = None
    share_out: bool = False


@dataclass(eq=False)
class Search:
    folder: Path
    settings: Settings
    journal: Journal
    data: SearchData
    report: ProgressReport = unreported
    stop_requested: Callable[[], bool] = lambda: False
    _deadline: float | None = field(default=None, init=False)
    _grids: dict[str, list[Values] | None] = field(default_factory=dict, init=False)

    @staticmethod
    def prepared(settings: Settings) -> SearchData:
        """Everything that a search needs before its first trial; bad input is found before anything is written."""
        check_optuna()
        set_threads(settings.threads)
        spec = settings.spec(settings.methods[0])
        check_engine(spec.train.engine, resolve_device(settings.device))
        data = load_search_data(spec)
        for k in metric_ks(settings, data):
            check_k(k, data.train.item_count)
        return data

    @classmethod
    def begin(cls, folder: Path, settings: Settings, data: SearchData) -> Search:
        """A new one in an empty folder."""
        journal = Journal(folder / FILE)
        journal.write("begin", settings=settings.to_json(), data=data.fingerprints)
        return cls(folder, settings, journal, data)

    @classmethod
    def go_on(cls, folder: Path) -> Search:
        """One that was stopped or killed."""
        journal = Journal.read(folder)
        settings = Settings.from_json(journal.settings)
        data = cls.prepared(settings)
        if data.fingerprints != journal.data:
            raise RunError(
                f"'{settings.source}' is not what it was when the search in {folder} began; restore it, or start anew"
            )
        journal.go_on()
        return cls(folder, settings, journal, data)

    def run(self, limits: Limits) -> bool:
        """Search; whether every trial was made that there is to make."""
        if self.journal.closed:  # what was chosen has met the test part: nothing may be chosen again
            return self.complete
        begun = monotonic()
        methods, references = self.settings.methods, self.settings.references
        shares = len(methods) if limits.share_out else 1
        for place, reference in enumerate(references, start=1):
            if limits.seconds is not None:
                self._deadline = begun + limits.seconds * (place / shares if limits.share_out else 1)
            if reference not in self.journal.frozen and not self._tune_reference(reference, freeze=limits.share_out):
                return False
        self._deadline = None if limits.seconds is None else begun + limits.seconds
        others = [method for method in methods if method not in references]
        return self._take_turns(others, self.goal()) and self.complete

    @property
    def complete(self) -> bool:
        return all(self.made(method) == self.settings.trials for method in self.settings.methods)

    def goal(self) -> Goal:
        """With its limits as numbers; every reference is frozen by now."""
        return Goal(self.settings.objective, tuple(each.limit(self._frozen_best) for each in self.settings.constraints))

    @property
    def rounds(self) -> int:
        """How many trials each method may make: those of the references, where these were cut short."""
        return min([self.settings.trials, *self.journal.frozen.values()])

    def _tune_reference(self, method: str, *, freeze: bool) -> bool:
        done = self._take_turns([method], Goal(self.settings.wish_of(method)))
        if self.stop_requested() or not (done or freeze):
            return False
        trials = self.made(method)
        if trials == 0:
            return False
        self.journal.write("frozen", method=method, trials=trials, best=self._best(method))
        return True

    def _frozen_best(self, method: str, wish: Objective) -> float | None:
        found = [trial.metrics for trial in self.journal.of(method) if trial.metrics is not None]
        values = [value for metrics in found if (value := metrics.get(wish.key)) is not None]
        return (max if wish.maximise else min)(values, default=None)

    def _best(self, method: str) -> dict[str, float | None]:
        return {each.key: self._frozen_best(method, each.wish) for each in self.settings.constraints}

    def _take_turns(self, methods: Sequence[str], goal: Goal) -> bool:
        for number in range(self.rounds):
            for method in methods:
                if not self._made(method, number) and not self._make(method, number, goal):
                    return False
        return True

    def _made(self, method: str, number: int) -> bool:
        trial = self.journal.trials.get((method, number))
        return (trial is not None and trial.ended) or self.exhausted(method, number)

    def exhausted(self, method: str, number: int) -> bool:
        """Whether the method has fewer settings than that."""
        settings = self._grid(method)
        return settings is not None and number >= len(settings)

    def made(self, method: str) -> int:
        """Trials without a gap from the first on; a method whose settings are all tried has made every one."""
        return next((number for number in range(self.rounds) if not self._made(method, number)), self.rounds)

    def _grid(self, method: str) -> list[Values] | None:
        if method not in self._grids:
            settings = self.settings
            found = small_grid(settings.spaces[method], settings.defaults(method), settings.trials, settings.seed)
            self._grids[method] = found
        return self._grids[method]

    # ---------------------------------------------------------------- one trial

    def _make(self, method: str, number: int, goal: Goal) -> bool:
        """False: there is no time, or somebody asked to stop."""
        if self._must_stop():
            return False
        queued = self.journal.trials.get((method, number))
        values = queued.values if queued else self._values(method, number, goal)
        self.journal.write("start", method=method, trial=number, values=values)
        return self._ended(self.journal.trials[method, number])

    def _values(self, method: str, number: int, goal: Goal) -> Values:
        settings = self._grid(method)
        if settings is not None:
            return settings[number]
        if number == 0:
            return self.settings.defaults(method)
        before = [trial for trial in self.journal.of(method) if trial.number < number]
        places = goal.places([trial.metrics for trial in before])
        ranked = list(zip((trial.values for trial in before), places, strict=True))
        return propose(self.settings.spaces[method], ranked, number, self.settings.seed)

    def _ended(self, trial: Trial) -> bool:
        begun, settings = perf_counter(), self.settings
        device = resolve_device(settings.device)
        self.report(f"{trial.method} trial {trial.number + 1}/{self.rounds}", None)
        progress = EpochProgress(self.report, f"{trial.method} trial {trial.number + 1}/{self.rounds}")
        counter = _EpochCounter()
        try:
            outcome = run_trial(
                settings.spec(trial.method, trial.values),
                self.data,
                device,
                metric_ks(settings, self.data),
                observers=(counter, progress),
                stop_requested=self._must_stop,
            )
        except Interrupted:
            self.journal.write("lost", method=trial.method, trial=trial.number, why=STOPPED)
            return False
        except Exception as error:  # whatever it is, it is this setting's, and goes into the record
            told = memory_error(error) or error
            kind = "" if isinstance(told, CagedError) else f"{type(error).__name__}: "
            self._fail(trial, f"{kind}{told}", counter.epochs, perf_counter() - begun)
            return True
        finally:
            _free(device)
        self.journal.write(
            "end",
            method=trial.method,
            trial=trial.number,
            status="complete",
            metrics=outcome.metrics,
            epochs=outcome.epochs,
            best_epoch=outcome.best_epoch,
            seconds=outcome.seconds,
        )
        return True

    def _fail(self, trial: Trial, reason: str, epochs: int, seconds: float) -> None:
        log.warning("trial %d of %s failed: %s", trial.number, trial.method, reason)
        result = {"status": "failed", "reason": reason, "epochs": epochs, "best_epoch": 0, "seconds": seconds}
        self.journal.write("end", method=trial.method, trial=trial.number, **result)

    def _must_stop(self) -> bool:
        return self.stop_requested() or (self._deadline is not None and monotonic() >= self._deadline)


class _EpochCounter:
    """What a trial cost that then failed."""

    epochs = 0

    def epoch(self, line: object, /) -> None:
        self.epochs += 1


def _free(device: torch.device) -> None:
    """Memory of the device that a trial leaves in cycles of objects, such as a recorded step."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def metric_ks(settings: Settings, data: SearchData) -> list[int]:
    """The cut-offs at which trials are measured: that of the epoch, and those of what is wished for."""
    keys = [settings.objective.key, *(each.key for each in settings.constraints)]
    return sorted({data.k, *(key.k for key in map(MetricKey.parse, keys) if key.k)})
