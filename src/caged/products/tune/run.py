"""A search from its settings to its answer; one process at a time works on a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from caged.arguments import whole_number
from caged.errors import RunError
from caged.files import make_writable_folder, refuse_filled_folder, remove_leftovers
from caged.products.tune.answer import Answer, make_answer, write_answer
from caged.products.tune.choice import choose
from caged.products.tune.crew import Workers
from caged.products.tune.finals import tests_of, untested
from caged.products.tune.finish import train_and_test, write_presets
from caged.products.tune.journal import FILE
from caged.products.tune.search import Limits, Search
from caged.products.tune.settings import Settings
from caged.progress import ProgressReport, unreported
from caged.runs.environment import hardware, resolve_device
from caged.runs.folder import now
from caged.runs.lock import holds_a_lock_alone, locked, refuse_held
from caged.runs.versions import versions

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
    test_defaults: bool = False,
    command: str = "",
    report: ProgressReport = unreported,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Answer:
    """A new search into a new folder.

    `budget` are the seconds of this call; with `finish` those of the search alone, after which what is chosen is
    trained and tested, though trials are left. With `test_defaults` the defaults are, too. `command` goes into the
    record.

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
        _tell(search, command, report, stop_requested, test_defaults=test_defaults)
        return _searched(search, budget, finish, workers)


def resume_tune(
    folder: Path,
    *,
    budget: float | None = None,
    finish: bool = False,
    workers: int = 1,
    test_defaults: bool = False,
    command: str = "",
    report: ProgressReport = unreported,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Answer:
    """Go on with a search that was stopped or killed. With `finish` and no `budget`, no further trial is made."""
    _check_journal(folder)
    with locked(folder):
        remove_leftovers(folder)
        search = Search.go_on(folder)
        _tell(search, command, report, stop_requested, test_defaults=test_defaults)
        return _searched(search, 0.0 if finish and budget is None else budget, finish, workers)


def told_tune(folder: Path) -> Answer:
    """The answer of what is in the journal, without training anything."""
    _check_journal(folder)
    search = Search.told(folder)
    choice = choose(search)
    if choice is None:
        raise _nothing_chosen(folder)
    return make_answer(search, choice, tests_of(search, choice), complete=search.complete)


def _check_journal(folder: Path) -> None:
    if not (folder / FILE).is_file():
        raise RunError(f"{folder} holds no {FILE}; name the folder that caged tune --out wrote")


def _nothing_chosen(folder: Path) -> NothingChosen:
    return NothingChosen(
        f"the search in {folder} was stopped before every method had a trial; go on with: caged tune --resume {folder}"
    )


def _threads_of_each(threads: int | None, workers: int) -> int | None:
    if whole_number("--workers", workers, least=1, most=MOST_WORKERS) == 1 or threads is not None:
        return threads
    return max(1, torch.get_num_threads() // workers)


def _tell(
    search: Search, command: str, report: ProgressReport, stop_requested: Callable[[], bool], *, test_defaults: bool
) -> None:
    """Whom a call listens to, and in the journal what it is."""
    search.report, search.stop_requested = report, stop_requested
    if _has_work(search, test_defaults=test_defaults):
        search.journal.write("call", **_described(search, command))
    if test_defaults and not search.journal.test_defaults:
        search.journal.write("test_defaults")


def _has_work(search: Search, *, test_defaults: bool) -> bool:
    """Else a call only tells again what is known."""
    choice = choose(search) if search.journal.closed else None
    more = test_defaults and not search.journal.test_defaults
    return choice is None or more or bool(untested(search, choice))


def _searched(search: Search, budget: float | None, finish: bool, workers: int) -> Answer:
    if workers == 1:
        return _ended(search, budget, finish)
    with Workers(search.given, workers, _threads_of_each(search.settings.threads, workers) or 1) as crew:
        search.crew = crew
        return _ended(search, budget, finish)


def _ended(search: Search, budget: float | None, finish: bool) -> Answer:
    asked, deadline = search.stop_requested, None if budget is None or finish else monotonic() + budget
    complete = search.run(Limits(budget, share_out=finish))
    choice = choose(search)
    if choice is None:
        raise _nothing_chosen(search.folder)
    write_presets(search, choice)
    if (complete or finish or search.journal.closed) and not asked():
        search.stop_requested = lambda: asked() or (deadline is not None and monotonic() >= deadline)
        train_and_test(search, choice)
    answer = make_answer(search, choice, tests_of(search, choice), complete=complete)
    write_answer(answer)
    return answer


def _described(search: Search, command: str) -> dict[str, Any]:
    """What the record says about where its numbers come from."""
    import optuna  # a folder that was carried along has no metadata to ask

    return {
        "command": command,
        "dataset": search.given.data.name,
        "started": now(),
        "versions": {**versions(), "optuna": optuna.__version__},
        "hardware": hardware(resolve_device(search.settings.device)),
        "threads": torch.get_num_threads(),
    }
