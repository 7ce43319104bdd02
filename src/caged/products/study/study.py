"""A study as a whole: what of a plan is recorded, what is to be run here, and running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caged.files import make_writable_folder
from caged.products.study.commands import Places
from caged.products.study.estimate import Estimator
from caged.products.study.plan import Plan, PlannedRun, chosen
from caged.products.study.possible import check_folder, check_runs
from caged.products.study.records import Recorded, at_hand, recorded
from caged.products.study.runner import Outcome, Runner
from caged.products.study.schedule import NO_WISHES, Schedule, Wishes, make_schedule, with_needed
from caged.progress import ProgressReport, unreported
from caged.runs.lock import locked


@dataclass(frozen=True)
class Study:
    """The chosen runs of a plan, with what is known about each of them on this machine."""

    plan: Plan
    places: Places
    runs: Sequence[PlannedRun]
    found: Mapping[PlannedRun, Recorded]
    schedule: Schedule
    device: str


def make_study(
    plan: Plan,
    *,
    results: Path | None = None,
    runs: Path = Path("runs"),
    only: Sequence[str] = (),
    seeds: int | None = None,
    device: str = "auto",
    wishes: Wishes = NO_WISHES,
) -> Study:
    """`results` is where records are read and written, by default where the plan has them."""
    from caged.runs.environment import resolve_device  # with torch

    kind = resolve_device(device).type
    places = Places(plan.results if results is None else results, runs)
    check_folder(places.results, "--record")
    check_folder(places.runs, "--runs")
    selected = chosen(plan, only, seeds)
    check_runs(plan, with_needed(selected))
    found = recorded(with_needed(selected), places.results, at_hand())
    estimator = Estimator.from_records([places.results, plan.results], kind)
    has_cuda = kind == "cuda"
    schedule = make_schedule(selected, found, places, estimator, has_cuda=has_cuda, wishes=wishes)
    return Study(plan, places, selected, found, schedule, kind)


def run_study(
    study: Study,
    *,
    budget: float | None = None,
    workers: int = 1,
    threads: int | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
    report: ProgressReport = unreported,
    say: Callable[[str], None] = lambda message: None,
) -> Outcome:
    """Run what is scheduled, for `budget` seconds at most."""
    make_writable_folder(study.places.runs)
    make_writable_folder(study.places.results)
    runner = Runner(
        study.places,
        workers=workers,
        threads=threads,
        device=study.device,
        budget=budget,
        stop_requested=stop_requested,
        report=report,
        say=say,
    )
    with locked(study.places.runs):  # two studies would take each other's runs for failed ones
        return runner.run(study.schedule.tasks)
