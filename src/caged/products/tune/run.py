"""A search from its settings to its answer; one process at a time works on a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from caged.arguments import whole_number
from caged.errors import RunError
from caged.files import make_writable_folder, refuse_filled_folder, remove_leftovers
from caged.products.tune.answer import Answer, make_answer, write_answer
from caged.products.tune.choice import choose
from caged.products.tune.crew import Workers
from caged.products.tune.finish import train_and_test, write_presets
from caged.products.tune.journal import FILE
from caged.products.tune.search import Limits, Search
from caged.products.tune.settings import Settings
from caged.progress import ProgressReport, unreported
from caged.runs.lock import holds_a_lock_alone, locked, refuse_held

MOST_WORKERS = 256


class NothingChosen(RunError):  # noqa: N818 - the search goes on another time
    """It was stopped before every method had a trial."""


def start_tune(
    settings: Settings,
    folder: Path,
    *,
    budget: float | None = None,
    finish: bool = False,
    workers: int = 1,
    report: ProgressReport = unreported,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Answer:
    """A new search into a new folder. `budget` are seconds; a search that they end is tested only with `finish`.

    `workers` trainings run side by side, each with its share of the threads. Numbers depend on the threads of a
    training, so the share is kept for whoever goes on.
    """
    settings = replace(settings, threads=_threads_of_each(settings.threads, workers))
    refuse_held(folder)
    if not holds_a_lock_alone(folder):
        refuse_filled_folder(folder)
    data = Search.prepared(settings)
    make_writable_folder(folder)
    with locked(folder):
        search = Search.begin(folder, settings, data)
        return _searched(search, budget, finish, workers, report, stop_requested)


def resume_tune(
    folder: Path,
    *,
    budget: float | None = None,
    finish: bool = False,
    workers: int = 1,
    report: ProgressReport = unreported,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Answer:
    """Go on with a search that was stopped or killed. With `finish` and no `budget`, no further trial is made."""
    if not (folder / FILE).is_file():
        raise RunError(f"{folder} holds no {FILE}; name the folder that caged tune --out wrote")
    with locked(folder):
        remove_leftovers(folder)
        search = Search.go_on(folder)
        budget = 0.0 if finish and budget is None else budget
        return _searched(search, budget, finish, workers, report, stop_requested)


def _threads_of_each(threads: int | None, workers: int) -> int | None:
    if whole_number("--workers", workers, least=1, most=MOST_WORKERS) == 1 or threads is not None:
        return threads
    return max(1, torch.get_num_threads() // workers)


def _searched(
    search: Search,
    budget: float | None,
    finish: bool,
    workers: int,
    report: ProgressReport,
    stop_requested: Callable[[], bool],
) -> Answer:
    search.report, search.stop_requested = report, stop_requested
    if workers == 1:
        return _ended(search, budget, finish)
    with Workers(search.given, workers, _threads_of_each(search.settings.threads, workers) or 1) as crew:
        search.crew = crew
        return _ended(search, budget, finish)


def _ended(search: Search, budget: float | None, finish: bool) -> Answer:
    complete = search.run(Limits(budget, share_out=finish))
    choice = choose(search)
    if choice is None:
        raise NothingChosen(
            f"the search in {search.folder} was stopped before every method had a trial; go on with: caged tune "
            f"--resume {search.folder}"
        )
    write_presets(search, choice)
    tests = (complete or finish or search.journal.closed) and not search.stop_requested()
    answer = make_answer(search, choice, train_and_test(search, choice) if tests else {}, complete=complete)
    write_answer(answer)
    return answer
