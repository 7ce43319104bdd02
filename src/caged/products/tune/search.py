"""The search: methods take turns, trial by trial, until the trials, the settings or the time are used up.

Everybody gets the same: number of trials, cap on epochs, seed. References are tuned first, because the others are held
to them. What is chosen rests on whole rounds: a trial that some method could not make any more counts for nobody.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from caged.errors import RunError
from caged.evaluation.lists import check_k
from caged.evaluation.metrics import MetricKey
from caged.graph import check_engine
from caged.products.tune.attempt import Attempt, Given, failed
from caged.products.tune.crew import Alone, Crew, Died, Result, Stopped, Turn
from caged.products.tune.halving import Compared, Curve, Ladder
from caged.products.tune.journal import FILE, KILLED, STOPPED, Journal, Trial
from caged.products.tune.objective import Goal, Objective
from caged.products.tune.sampler import check_optuna, propose, small_grid
from caged.products.tune.settings import Settings
from caged.products.tune.space import Values
from caged.products.tune.trial import SearchData, check_measured, load_search_data
from caged.products.tune.turns import known_to, take_turns
from caged.products.tune.watching import TurnProgress
from caged.progress import ProgressReport, unreported
from caged.runs.environment import resolve_device, set_threads

log = logging.getLogger(__name__)
MOST_DEATHS = 5  # workers that a trial may bring down one after the other


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
    data: SearchData | None  # None: it is only told about
    report: ProgressReport = unreported
    stop_requested: Callable[[], bool] = lambda: False
    crew: Crew = field(init=False)  # who trains; this process, if nobody says otherwise
    _deadline: float | None = field(default=None, init=False)
    _grids: dict[str, list[Values] | None] = field(default_factory=dict, init=False)
    _deaths: Counter[Turn] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        if self.data is not None:
            self.crew = Alone(self.given)

    @property
    def given(self) -> Given:
        assert self.data is not None
        return Given(self.settings, self.data)

    @staticmethod
    def prepared(settings: Settings) -> SearchData:
        """Everything that a search needs before its first trial; bad input is found before anything is written."""
        check_optuna()
        set_threads(settings.threads)
        spec = settings.spec(settings.methods[0])
        check_engine(spec.train.engine, resolve_device(settings.device))
        data = load_search_data(spec)
        check_measured([MetricKey.parse(key) for key in settings.wished_keys], data, settings.source)
        for k in Given(settings, data).ks:
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

    @classmethod
    def told(cls, folder: Path) -> Search:
        """What one did so far, read from its journal alone: nothing can be trained with it."""
        journal = Journal.read(folder)
        return cls(folder, Settings.from_json(journal.settings), journal, None)

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
        counted = self.journal.frozen.get(method, self.made(method))
        trials = [trial for trial in self.journal.of(method) if trial.number < counted]
        found = [trial.metrics for trial in trials if trial.metrics is not None]
        values = [value for metrics in found if (value := metrics.get(wish.key)) is not None]
        return (max if wish.maximise else min)(values, default=None)

    def _best(self, method: str) -> dict[str, float | None]:
        return {each.key: self._frozen_best(method, each.wish) for each in self.settings.constraints}

    def _take_turns(self, methods: Sequence[str], goal: Goal) -> bool:
        turns = [(method, number) for number in range(self.rounds) for method in methods]
        watch = TurnProgress(
            self.report,
            lambda turn: f"{turn[0]} trial {turn[1] + 1}/{self.rounds}",
            lambda: (sum(self._made(*turn) for turn in turns), len(turns)),
            side_by_side=self.crew.count > 1,
        )

        def begin(turn: Turn) -> Attempt:
            watch.begin(turn)
            return self._begun(*turn, goal)

        return take_turns(
            self.crew,
            [turn for turn in turns if not self._made(*turn)],
            ready=lambda turn: all(self._made(turn[0], number) for number in range(known_to(turn[1]))),
            begin=begin,
            end=self._end,
            must_stop=self._must_stop,
            watch=watch,
        )

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

    def _begun(self, method: str, number: int, goal: Goal) -> Attempt:
        queued = self.journal.trials.get((method, number))
        values = queued.values if queued else self._values(method, number, goal)
        self.journal.write("start", method=method, trial=number, values=values)
        return Attempt(method, values, self._ladder(method, number, goal) if self.settings.prune else None)

    def _ladder(self, method: str, number: int, goal: Goal) -> Ladder:
        known = self.journal.of(method)[: known_to(number)]
        found = [compared for trial in known if (compared := _compared(trial)) is not None]
        return Ladder.against(found, goal, self.settings.epochs)

    def _values(self, method: str, number: int, goal: Goal) -> Values:
        settings = self._grid(method)
        if settings is not None:
            return settings[number]
        if number == 0:
            return self.settings.defaults(method)
        before = [trial for trial in self.journal.of(method) if trial.number < number]
        known, others = before[: known_to(number)], before[known_to(number) :]
        places = goal.places([trial.metrics for trial in known])
        ranked = list(zip((trial.values for trial in known), places, strict=True))
        pending = [trial.values for trial in others]
        return propose(self.settings.spaces[method], ranked, number, self.settings.seed, pending=pending)

    def _end(self, turn: Turn, result: Result) -> bool:
        """Whether the trial is over; one whose process died is made again, as long as there is hope."""
        method, number = turn
        if isinstance(result, Stopped):
            self.journal.write("lost", method=method, trial=number, why=STOPPED)
            return False
        if isinstance(result, Died):
            self._deaths[turn] += 1
            if self._deaths[turn] < MOST_DEATHS:
                self.journal.write("lost", method=method, trial=number, why=KILLED, reason=result.reason)
                return False
            record = failed(f"{result.reason}, {MOST_DEATHS} times in a row")
        else:
            record = result.value
        if record["status"] == "failed":
            log.warning("trial %d of %s failed: %s", number, method, record["reason"])
        self.journal.write("end", method=method, trial=number, **record)
        return True

    def _must_stop(self) -> bool:
        return self.stop_requested() or (self._deadline is not None and monotonic() >= self._deadline)


def _compared(trial: Trial) -> Compared | None:
    """A trial that failed shows nobody how good others have to be; neither does a closed form."""
    if trial.curve is None or not trial.curve["epochs"]:
        return None
    return Compared(Curve.from_json(trial.curve), trial.epochs if trial.status == "pruned" else None)
