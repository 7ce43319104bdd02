"""The runs of a schedule, each in a process of its own, several side by side, until they or the time are used up.

A process that has to stop is asked to (it ends its epoch and leaves a checkpoint), asked again (it stops at once, its
last checkpoint stays) and then killed. Whatever happens, its record says how far it got.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from caged.errors import CagedError, RunError
from caged.files import make_parent, read_sealed_json, write_json
from caged.products.study.commands import Places, command, resume_command
from caged.products.study.failures import as_a_plan_says_it, reason_in, record_failure
from caged.products.study.market import make_market
from caged.products.study.plan import PlannedRun
from caged.products.study.records import Recorded, market_file, market_parameters, other_market, recorded
from caged.products.study.schedule import Task, other_run_in, status_in
from caged.progress import ProgressReport, unreported
from caged.runs.environment import SIDE_BY_SIDE
from caged.runs.folder import METRICS, RunFolder
from caged.runs.lock import refuse_held

POLL = 0.1  # seconds between two looks at the processes
PATIENCE = (60.0, 10.0)  # seconds that a process has after it was asked to stop, and asked again
INTERRUPTED, BAD_INPUT = 130, 2  # exit codes of the command line


@dataclass
class Outcome:
    """What became of the tasks of a schedule."""

    finished: list[PlannedRun] = field(default_factory=list)
    failed: dict[PlannedRun, str] = field(default_factory=dict)  # recorded as such
    refused: dict[PlannedRun, str] = field(default_factory=dict)  # they could not even begin; nothing is recorded
    stopped: list[PlannedRun] = field(default_factory=list)  # to be gone on with
    too_long: list[PlannedRun] = field(default_factory=list)  # not begun: there was less time than they take
    waiting: list[PlannedRun] = field(default_factory=list)  # not begun: the time was over


@dataclass
class _Active:
    task: Task
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    begun: float
    before: Any  # what was recorded of the run
    status: str | None  # of the run that its folder held
    shared: float = 0.0  # seconds times the runs that were under way


@dataclass
class Runner:
    places: Places
    workers: int = 1
    threads: int | None = None  # of each run on CPU; None: all cores
    device: str = "auto"
    budget: float | None = None  # seconds
    program: Sequence[str] = (sys.executable, "-m", "caged")
    stop_requested: Callable[[], bool] = lambda: False
    report: ProgressReport = unreported
    say: Callable[[str], None] = lambda message: None
    _active: list[_Active] = field(default_factory=list, init=False)
    _left: list[Task] = field(default_factory=list, init=False)
    _count: int = field(default=0, init=False)
    _begun: float = field(default=0.0, init=False)
    outcome: Outcome = field(default_factory=Outcome, init=False)

    def run(self, tasks: Sequence[Task]) -> Outcome:
        self._begun, self._left, self._count = time.monotonic(), list(tasks), len(tasks)
        try:
            while not self._must_stop():
                self._start_what_fits()
                if not self._active:
                    break
                self._tell()
                self._pause()
                self._collect()
        finally:
            self._stop_all()
        kind = self.outcome.waiting if self._must_stop() else self.outcome.too_long
        kind += [task.run for task in self._left]
        return self.outcome

    def _must_stop(self) -> bool:
        return self.stop_requested() or self._time_left() <= 0

    def _time_left(self) -> float:
        return float("inf") if self.budget is None else self._begun + self.budget - time.monotonic()

    # ---------------------------------------------------------------- starting

    def _start_what_fits(self) -> None:
        """In the order of the schedule; a run that would take longer than is left lets shorter ones pass.

        Estimates are of a run alone; those that are under way take their share of the machine from it.
        """
        for task in list(self._left):
            if len(self._active) >= self.workers or self._must_stop():
                return
            needed = task.run.needs
            if needed is not None and (reason := self._not_made(needed)) is not None:
                self._left.remove(task)
                self._refused(task.run, reason)
            elif needed is not None and self._is_under_way(needed):
                continue
            elif task.seconds is None or task.seconds * (len(self._active) + 1) <= self._time_left():
                self._left.remove(task)
                self._start(task)

    def _not_made(self, run: PlannedRun) -> str | None:
        reason = self.outcome.failed.get(run) or self.outcome.refused.get(run)
        return None if reason is None else f"{run.name}, which it needs, was not made: {reason}"

    def _is_under_way(self, run: PlannedRun) -> bool:
        return any(task.run == run for task in [*self._left, *(active.task for active in self._active)])

    def _start(self, task: Task) -> None:
        run, folder = task.run, self.places.folder(task.run)
        try:
            refuse_held(folder)  # a study that was killed leaves its runs alone, and they go on
            if run.market is not None:
                self._make_market(run)
            if task.action == "record" or self._was_made_meanwhile(run):
                if not task.recorded:
                    record_again(run, self.places)
                self.outcome.finished.append(run)
                return
            if task.action == "start" and RunFolder.is_one(folder):  # it failed, or is not to be gone on with
                shutil.rmtree(folder)
            make_parent(self.places.log(run))
            log = self.places.log(run).open("wb")
        except (CagedError, OSError) as error:
            self._refused(run, str(error))
            return
        status = status_in(folder)
        process = subprocess.Popen(
            [*self.program, *self._arguments(task)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is ours to pass on
            env={**os.environ, "PYTHONUNBUFFERED": "1", SIDE_BY_SIDE: str(self._most_at_once())},
        )
        before = recorded([run], self.places.results)[run].content
        self._active.append(_Active(task, process, log, time.monotonic(), before, status))

    def _most_at_once(self) -> int:
        """How many runs may share the machine with one that begins now; how many did is known when it ends."""
        return min(self.workers, len(self._active) + len(self._left) + 1)

    def _make_market(self, run: PlannedRun) -> None:
        assert run.market is not None
        place = market_file(self.places.results, run)
        has_records = any(place.parent.glob("*/*/seed*.json"))
        if (place.exists() or has_records) and (reason := other_market(run, self.places.results)) is not None:
            raise RunError(f"{reason}, or give another --record")
        make_market(run.market, self.places.market(run), self.places.market_as_text(run))
        if not place.exists():
            make_parent(place)
            write_json(place, {"parameters": market_parameters(run)})

    def _was_made_meanwhile(self, run: PlannedRun) -> bool:
        """By another study, since this one looked."""
        folder = self.places.folder(run)
        return status_in(folder) == "finished" and other_run_in(folder, run) is None

    def _arguments(self, task: Task) -> list[str]:
        record = not task.recorded
        if task.action == "resume":
            return resume_command(task.run, self.places, record=record)
        return command(task.run, self.places, threads=self.threads, device=self.device, record=record)

    # ---------------------------------------------------------------- ending

    def _collect(self) -> None:
        for active in [one for one in self._active if one.process.poll() is not None]:
            self._active.remove(active)
            active.log.close()
            self._ended(active)

    def _ended(self, active: _Active) -> None:
        run, code = active.task.run, active.process.returncode
        record = recorded([run], self.places.results)[run]
        if record.finished and (code == 0 or self._was_made(active)):
            if not active.task.recorded:
                say_shared(record, active.shared / max(time.monotonic() - active.begun, POLL))
            self.outcome.finished.append(run)
            self.say(f"finished: {run.name} ({_minutes(time.monotonic() - active.begun)})")
            return
        if code == INTERRUPTED or (self._must_stop() and code in (-signal.SIGINT, -signal.SIGKILL)):
            self.outcome.stopped.append(run)
            self.say(f"stopped: {run.name}")
            return
        if active.task.recorded:
            self._failed(run, reason_in(self.places.log(run), code))
        elif record.state == "failed" and record.content != active.before:
            self._failed(run, str(record.reason))
        elif code == 0:  # whatever it did, it is not the run of the plan
            self._refused(run, f"its record is not one of the plan: {record.reason or record.state}")
        elif code == BAD_INPUT and status_in(self.places.folder(run)) == active.status:  # nothing of it was begun
            self._refused(run, as_a_plan_says_it(reason_in(self.places.log(run), code)))
        else:
            reason = reason_in(self.places.log(run), code)
            record_failure(run, record, reason, ["caged", *self._arguments(active.task)])
            self._failed(run, reason)

    def _was_made(self, active: _Active) -> bool:
        """Whatever ended its process then: it had written all that a run leaves, or its record was there before."""
        return not active.task.recorded or status_in(self.places.folder(active.task.run)) == "finished"

    def _failed(self, run: PlannedRun, reason: str) -> None:
        self.outcome.failed[run] = reason
        self.say(f"failed: {run.name}: {reason}")

    def _refused(self, run: PlannedRun, reason: str) -> None:
        self.outcome.refused[run] = reason
        self.say(f"refused: {run.name}: {reason}")

    def _stop_all(self) -> None:
        """Asked, asked again, killed."""
        for patience in PATIENCE:
            self._signal(signal.SIGINT)
            with suppress(KeyboardInterrupt):  # somebody does not want to wait so long
                self._wait(patience)
        self._signal(signal.SIGKILL)
        for active in self._active:
            active.process.wait()
        self._collect()

    def _wait(self, patience: float) -> None:
        until = time.monotonic() + patience
        while self._active and time.monotonic() < until:
            self._collect()
            self._pause()

    def _pause(self) -> None:
        time.sleep(POLL)
        for active in self._active:
            active.shared += POLL * len(self._active)

    def _signal(self, which: signal.Signals) -> None:
        for active in self._active:
            if active.process.poll() is None:
                active.process.send_signal(which)

    def _tell(self) -> None:
        done = self._count - len(self._left) - len(self._active)
        names = ", ".join(active.task.run.name for active in self._active)
        self.report(f"study: {done} of {self._count} done, now {names}", done / self._count)


def say_shared(record: Recorded, runs: float) -> None:
    """How many runs shared the machine on average, itself included: its process knew only how many there might be."""
    content = record.content or {}
    shared = round(max(1.0, runs), 2)
    known = content.get("hardware") or {}
    if known.get("side_by_side", 1) != shared:
        hardware = {key: value for key, value in known.items() if key != "side_by_side"}
        write_json(record.path, {**content, "hardware": hardware | ({"side_by_side": shared} if shared > 1 else {})})


def record_again(run: PlannedRun, places: Places) -> None:
    """The record of a run that is finished here, where only that is missing."""
    folder = RunFolder.read(places.folder(run))
    folder.metrics = read_sealed_json(folder.path / METRICS)
    folder.run.record = str(places.record(run).resolve())
    folder.store()


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
