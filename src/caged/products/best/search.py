"""The search: methods take turns, a setting each, as long as a whole round fits into the time.

Everybody has the same number of settings, the same cap on epochs and the same seed. What is chosen rests on whole
rounds: a training that some method could not make any more counts for nobody. A method whose first training does not
end in its share of the time is left out, and a note says so.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import fmean

import torch

from caged.errors import CagedError, memory_error
from caged.models import display_name
from caged.products.best.clock import Clock, EpochsOf
from caged.products.best.kept import Kept
from caged.products.best.plan import Plan
from caged.products.best.shortlist import BASELINE, BESTSELLERS, settings_of
from caged.products.best.wish import Wish
from caged.products.tune import STOPPED, Goal, Journal, Limit, Objective, SearchData, Trial, run_trial
from caged.training import Interrupted

SLOWER = 1.2  # how much slower the machine may get before the last training
NO_TIME = "its first training did not end in its share of the time; give more --minutes"


@dataclass(eq=False)
class Search:
    wish: Wish
    plan: Plan
    data: SearchData
    device: torch.device
    journal: Journal
    kept: Kept
    clock: Clock
    stop_requested: Callable[[], bool] = lambda: False

    @property
    def recall(self) -> str:
        return f"recall@{self.data.k}"

    @property
    def niche(self) -> str:
        return f"{self.recall}/niche"

    def run(self) -> None:
        for number in range(self.wish.rounds):
            if number and not self._fits_another_round(number):
                return
            for method in self._methods(number):
                if not self._made(method, number) and not self._make(method, number):
                    return

    # ---------------------------------------------------------------- what was found

    @property
    def rounds(self) -> int:
        """Whole ones."""
        numbers = range(self.wish.rounds)
        return next((number for number in numbers if not self._is_whole(number)), self.wish.rounds)

    def counted(self) -> list[Trial]:
        """The trials that may be chosen: those of whole rounds, in the order in which they were made."""
        rounds = self.rounds
        found = [trial for trial in self.journal.trials.values() if trial.metrics is not None and trial.number < rounds]
        return sorted(found, key=lambda trial: (trial.number, self.plan.methods.index(trial.method)))

    def seconds_of(self, method: str) -> float:
        """Of all trainings, also of those that did not count."""
        return sum(trial.seconds for trial in self.journal.of(method))

    def goal(self) -> Goal:
        """The most niche recall among all whose recall is close enough to the best."""
        values = [value for trial in self.counted() if (value := (trial.metrics or {}).get(self.recall)) is not None]
        return Goal(Objective(self.niche), (Limit(self.recall, ">=", self.wish.keep * max(values, default=0.0)),))

    def first(self, method: str) -> Trial | None:
        """The trial of a method at its defaults, where it was made."""
        return next((trial for trial in self.counted() if (trial.method, trial.number) == (method, 0)), None)

    def notes(self) -> list[str]:
        """What whoever reads the numbers has to know about the trainings."""
        found = [f"{display_name(method)} is left out: {reason}" for method, reason in self.left_out().items()]
        base = self.first(BASELINE)
        if base is not None and base.best_epoch == self.plan.epochs:
            found.append(
                f"{display_name(BASELINE)} at its defaults was still getting better in epoch {base.best_epoch}, the "
                "last one here; with more it would be better than it is in this comparison"
            )
        return found

    # ---------------------------------------------------------------- turns

    def _methods(self, number: int) -> list[str]:
        """Who has a setting of this number and is still in."""
        return [
            method
            for method in self.plan.methods
            if number < len(settings_of(method, self.wish.rounds)) and method not in self.left_out()
        ]

    def left_out(self) -> dict[str, str]:
        """Who could not be trained at its defaults, and why."""
        found = {method: self.journal.trials.get((method, 0)) for method in self.plan.methods}
        return {
            method: str(trial.reason)
            for method, trial in found.items()
            if trial is not None and trial.status == "failed"
        }

    def _made(self, method: str, number: int) -> bool:
        trial = self.journal.trials.get((method, number))
        return trial is not None and trial.ended

    def _is_whole(self, number: int) -> bool:
        methods = self._methods(number)
        return bool(methods) and all(self._made(method, number) for method in methods)

    def _fits_another_round(self, number: int) -> bool:
        """If every method takes as long as it did on average."""
        methods = [method for method in self._methods(number) if not self._made(method, number)]
        seconds = sum(fmean(trial.seconds for trial in self.journal.of(method) if trial.ended) for method in methods)
        return seconds + self._end_seconds() <= self.clock.to_search

    def _end_seconds(self) -> float:
        """Popularity is taken out, and whatever may be chosen so far is refitted, by how long its epochs took."""
        refit = max(map(self._seconds_to_refit, self.counted()), default=0.0)
        return self.plan.adjusting + SLOWER * refit

    def _seconds_to_refit(self, trial: Trial) -> float:
        if not trial.epochs:  # a closed form
            return trial.seconds
        return trial.seconds / trial.epochs * trial.best_epoch * self.plan.refit_factor

    # ---------------------------------------------------------------- one trial

    def _make(self, method: str, number: int) -> bool:
        """False: there is no time."""
        if self.stop_requested():
            raise Interrupted
        values = settings_of(method, self.wish.rounds)[number]
        self.journal.write("start", method=method, trial=number, values=values)
        trial = self.journal.trials[method, number]
        seconds = self._share_of_time(method, number)
        begun = self.clock.elapsed
        spec = self.wish.spec(method, values, self.plan.epochs or None)
        watch = EpochsOf(self.clock, f"{display_name(method)}, setting {number + 1}/{self.wish.rounds}")
        self.clock.tell(watch.what)
        try:
            outcome = run_trial(
                spec,
                self.data,
                self.device,
                [self.data.k],
                observers=(watch,),
                stop_requested=lambda: self.stop_requested() or self.clock.elapsed - begun > seconds,
                trained=partial(self.kept.save, trial, spec, self.data),
            )
        except Interrupted:
            if self.stop_requested() or number:
                self.journal.write("lost", method=method, trial=number, why=STOPPED)
                if self.stop_requested():
                    raise
                return False
            self._fail(trial, NO_TIME, watch, begun)
            return True
        except Exception as error:  # whatever it is, it is this setting's, and goes into the record
            told = memory_error(error) or error
            kind = "" if isinstance(told, CagedError) else f"{type(error).__name__}: "
            self._fail(trial, f"{kind}{told}", watch, begun)
            return True
        finally:
            _free(self.device)
        self.journal.write(
            "end",
            method=method,
            trial=number,
            status="complete",
            metrics=outcome.metrics,
            epochs=outcome.epochs,
            best_epoch=outcome.best_epoch,
            seconds=self.clock.elapsed - begun,
        )
        self._drop_hopeless()
        return True

    def _fail(self, trial: Trial, reason: str, watch: EpochsOf, begun: float) -> None:
        result = {"status": "failed", "reason": reason, "epochs": len(watch.seconds), "best_epoch": 0}
        seconds = self.clock.elapsed - begun
        self.journal.write("end", method=trial.method, trial=trial.number, seconds=seconds, **result)

    def _share_of_time(self, method: str, number: int) -> float:
        """How long a trial may take: later ones until the end has to begin; first ones whatever the plan does not
        promise to the others, and at least their share where the time runs short."""
        left = self.clock.to_search
        if number:
            return left - self._end_seconds()
        timed = self.plan.seconds_per_epoch
        if method not in timed:  # a closed form, which nothing interrupts
            return left
        others = sum(timed[name] for name in timed if name != method and not self._made(name, 0))
        promised = others + self.plan.refit_factor * max(timed.values())  # for each epoch
        return max(left - self.plan.epochs * promised, left * timed[method] / (timed[method] + promised))

    def _drop_hopeless(self) -> None:
        """The best recall only grows: who is too far below it now stays so. Bestsellers and LightGCN at its defaults
        are what the chosen model is compared with."""
        limit = self.goal().limits[0]
        counted = self.counted()
        self.kept.drop_others(
            trial
            for trial in self.journal.trials.values()
            if trial not in counted
            or limit.violation(trial.metrics or {}) == 0
            or (trial.method, trial.number) in ((BESTSELLERS, 0), (BASELINE, 0))
        )


def _free(device: torch.device) -> None:
    """Memory of the device that a training leaves in cycles of objects, such as a recorded step."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
