"""What of a plan is to be run here, and in which order: all that is not recorded yet and can be run on this machine.

A run that another one needs is trained again where its folder is gone, even if it is recorded: then its record stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from caged.data.known import DATASETS, folder_of
from caged.errors import CagedError, DataError, RunError, suggestion
from caged.files import read_json
from caged.products.study.commands import Places
from caged.products.study.estimate import STARTING, Estimate
from caged.products.study.plan import PlannedRun
from caged.products.study.records import Recorded, difference, has_form
from caged.runs.folder import RUN, RunFolder

Action = Literal["start", "resume", "record"]  # record: it is finished here, only its record is missing


@dataclass(frozen=True)
class Task:
    run: PlannedRun
    action: Action
    estimate: Estimate
    wanted: bool = True  # False: only because another run needs it
    recorded: bool = False  # its record is there and stays as it is, whatever becomes of this

    @property
    def seconds(self) -> float | None:
        return self.estimate.seconds


@dataclass
class Schedule:
    tasks: list[Task] = field(default_factory=list)  # each after what it needs
    finished: list[PlannedRun] = field(default_factory=list)
    failed: dict[PlannedRun, str] = field(default_factory=dict)  # before, and not to be tried again
    blocked: dict[PlannedRun, str] = field(default_factory=dict)  # cannot be run here and now

    @property
    def seconds(self) -> float:
        """Of all tasks whose time is known."""
        return sum(task.seconds for task in self.tasks if task.seconds is not None)

    @property
    def unknown(self) -> int:
        """Tasks whose time is not."""
        return sum(task.seconds is None for task in self.tasks)


@dataclass(frozen=True)
class Wishes:
    """How to treat what was tried before."""

    retry_failed: bool = False
    restart: bool = False  # do not go on from checkpoints


NO_WISHES = Wishes()


def make_schedule(
    runs: Sequence[PlannedRun],
    found: Mapping[PlannedRun, Recorded],
    places: Places,
    estimate: Callable[[PlannedRun], Estimate],
    *,
    has_cuda: bool,
    wishes: Wishes = NO_WISHES,
) -> Schedule:
    """`found` holds a record for each of the runs, and for those that they need."""
    made = _Maker(found, places, estimate, has_cuda, wishes)
    for run in runs:
        made.consider(run)
    return made.schedule


@dataclass
class _Maker:
    found: Mapping[PlannedRun, Recorded]
    places: Places
    estimate: Callable[[PlannedRun], Estimate]
    has_cuda: bool
    wishes: Wishes
    schedule: Schedule = field(default_factory=Schedule)

    def consider(self, run: PlannedRun) -> None:
        record = self.found[run]
        if record.finished:
            self.schedule.finished.append(run)
        elif record.state == "failed" and not self.wishes.retry_failed:
            self.schedule.failed[run] = record.reason or ""
        elif record.state == "other":
            self.schedule.blocked[run] = _of_another_run(record)
        elif (reason := self._obstacle(run)) is not None:
            self.schedule.blocked[run] = reason
        else:
            self._add(run, wanted=True)

    def _obstacle(self, run: PlannedRun) -> str | None:
        """Why it cannot be run here, itself or what it needs. What was run needs no more than its record."""
        if self._stands_here(run):
            return None
        if run.needs is not None and not self._is_scheduled(run.needs) and not self._stands_here(run.needs):
            needed = self.found[run.needs]
            if needed.state == "failed" and not self.wishes.retry_failed:
                return f"{run.needs.name}, which it needs, failed before: {needed.reason}"
            if needed.state == "other":
                return f"{run.needs.name}, which it needs: {_of_another_run(needed)}"
            if (reason := self._obstacle(run.needs)) is not None:
                return reason
        if run.device == "cuda" and not self.has_cuda:
            return "it is to run on cuda, and there is none here"
        return self._missing_data(run) or self._occupied(run)

    def _missing_data(self, run: PlannedRun) -> str | None:
        if run.market is not None or (run.data not in DATASETS and Path(run.data).exists()):
            return None
        if run.data not in DATASETS:
            return (
                f"its data, {run.data}, is not here{suggestion(run.data, DATASETS)}; give the name of a dataset, or a "
                f"path from where you call caged"
            )
        try:
            folder_of(DATASETS[run.data])
        except DataError as error:
            return str(error)
        return None

    def _occupied(self, run: PlannedRun) -> str | None:
        folder = self.places.folder(run)
        reason = other_run_in(folder, run)
        return None if reason is None else f"{folder} holds another run: {reason}; move it away"

    def _stands_here(self, run: PlannedRun) -> bool:
        folder = self.places.folder(run)
        return other_run_in(folder, run) is None and status_in(folder) == "finished"

    def _is_scheduled(self, run: PlannedRun) -> bool:
        return any(task.run == run for task in self.schedule.tasks)

    def _add(self, run: PlannedRun, *, wanted: bool) -> None:
        if self._is_scheduled(run):
            return
        if run.needs is not None and not self._stands_here(run.needs) and not self._stands_here(run):
            self._add(run.needs, wanted=False)
        self.schedule.tasks.append(self._task(run, wanted))

    def _task(self, run: PlannedRun, wanted: bool) -> Task:
        estimate, status = self.estimate(run), status_in(self.places.folder(run))
        recorded = self.found[run].finished
        if status == "finished":
            return Task(run, "record", Estimate(0.0, basis="recorded"), wanted, recorded)
        if run.kind == "train" and status in ("running", "interrupted") and not self.wishes.restart:
            spent = seconds_in_folder(self.places.folder(run))
            left = None if estimate.seconds is None else max(estimate.seconds - spent, STARTING)
            less = Estimate(left, estimate.memory, estimate.device_memory, estimate.basis)
            return Task(run, "resume", less, wanted, recorded)
        return Task(run, "start", estimate, wanted, recorded)


def _of_another_run(record: Recorded) -> str:
    """What could not be read says itself what to do."""
    advice = "" if record.reason and ";" in record.reason else "; move it away"
    return f"{record.path} does not count: {record.reason}{advice}"


def status_in(folder: Path) -> str | None:
    """Of the run that a folder holds; None where it holds none."""
    try:
        return RunFolder.read(folder).run.status if RunFolder.is_one(folder) else None
    except CagedError:
        return None


def seconds_in_folder(folder: Path) -> float:
    return float(RunFolder.read(folder).run.seconds.get("total", 0.0))


def other_run_in(folder: Path, run: PlannedRun) -> str | None:
    """Why what a folder holds is not this run; None: it is, or the folder is free."""
    if not RunFolder.is_one(folder):
        return None
    try:
        content = read_json(folder / RUN)
    except RunError:
        return "its run.json is damaged"
    if not has_form({"metrics": {}, **content} if isinstance(content, dict) else content):
        return "its run.json is damaged"
    return difference(run, content)


def with_needed(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """The runs and all that they need, each once."""
    found: dict[PlannedRun, None] = {}
    for run in runs:
        if run.needs is not None:
            found.update(dict.fromkeys(with_needed([run.needs])))
        found[run] = None
    return list(found)
