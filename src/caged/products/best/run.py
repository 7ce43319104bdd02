"""From a log to an answer: read, plan, search, choose, test, refit, write. Every step can be taken up again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from caged.errors import DataError, RunError
from caged.files import (
    make_writable_folder,
    read_sealed_json,
    refuse_filled_folder,
    remove_leftovers,
    write_sealed_json,
    write_text,
)
from caged.graph import check_engine
from caged.page.html import require_templates
from caged.products.best.answer import FILE, MODEL, PAGE, Answer, answer_json, pairs_of, typable
from caged.products.best.audits import write_audits
from caged.products.best.choice import Choice, choose
from caged.products.best.clock import Clock
from caged.products.best.judgement import Judgement, judge_once
from caged.products.best.kept import Kept
from caged.products.best.page import answer_html
from caged.products.best.plan import Plan, make_plan
from caged.products.best.search import Search
from caged.products.best.served import remove_half_written, write_model
from caged.products.best.wish import Wish
from caged.products.tune import Journal, SearchData
from caged.progress import ProgressReport, unreported
from caged.runs.environment import resolve_device, set_threads
from caged.runs.loading import DatasetFacts, load_data
from caged.runs.lock import locked, refuse_held
from caged.training import Interrupted

FEWEST_PAIRS = 50
SEARCH, JOURNAL, PLAN, CHOICE, MODELS = "search", "journal.jsonl", "plan.json", "choice.json", "models"


class AlreadyFinished(RunError):  # noqa: N818 - the command line takes it for a success
    """There is nothing to go on with."""


def find_best(
    wish: Wish,
    folder: Path,
    *,
    go_on: bool = False,
    command: str = "",
    report: ProgressReport = unreported,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Answer:
    """Into a new folder; with `go_on` into one where an earlier call was stopped or killed."""
    require_templates()
    refuse_held(folder)
    begun = (folder / SEARCH / JOURNAL).is_file()
    if go_on and (folder / FILE).is_file():
        raise AlreadyFinished(f"the search in {folder} is already finished; start a new one with another --out")
    if not begun:
        _refuse_filled(folder)
    elif not go_on:
        raise RunError(f"{folder} holds a search already; go on with --resume, or choose another --out")
    set_threads(wish.threads)
    device = resolve_device(wish.device)
    check_engine(wish.spec().train.engine, device)
    clock = Clock(60 * wish.minutes, report=report)
    clock.tell("reading the log")
    data, facts = read_log(wish)
    make_writable_folder(folder)
    with locked(folder):
        work = _Work(wish, folder, device, clock, stop_requested, command, data, facts)
        return work.go_on() if begun else work.begin()


def read_log(wish: Wish) -> tuple[SearchData, DatasetFacts]:
    """What a choice may rest on. The test pairs leave memory when this returns."""
    loaded = load_data(wish.spec())
    facts, parts = loaded.facts, loaded.split
    pairs = pairs_of(facts)
    if pairs < FEWEST_PAIRS:
        raise DataError(
            f"'{wish.source}' has {pairs} pairs of users and items; choosing a model and testing it needs at least "
            f"{FEWEST_PAIRS}, so give a larger log"
        )
    for name, part in (("validation", parts.valid), ("test", parts.test)):
        if part is None or len(part) == 0:
            raise DataError(f"'{wish.source}' has no {name} part; give the whole log as one file, and it is split here")
    assert parts.valid is not None
    return SearchData(parts.train, parts.valid, loaded.spec.eval.k[0], facts["name"]), facts


def _refuse_filled(folder: Path) -> None:
    """What a process left that was killed before its first line is no reason to refuse."""
    with suppress(OSError):
        (folder / SEARCH).rmdir()
    if folder.is_dir() and [file.name for file in folder.iterdir()] == ["run.lock"]:
        return
    refuse_filled_folder(folder)


@dataclass(eq=False)
class _Work:
    wish: Wish
    folder: Path
    device: torch.device
    clock: Clock
    stop_requested: Callable[[], bool]
    command: str
    data: SearchData
    facts: DatasetFacts

    @property
    def search_folder(self) -> Path:
        return self.folder / SEARCH

    def begin(self) -> Answer:
        self.search_folder.mkdir(exist_ok=True)
        journal = Journal(self.search_folder / JOURNAL)
        journal.write("begin", settings=self.wish.to_json(), data={"split": self.facts["split_fingerprint"]})
        return self._answered(journal)

    def go_on(self) -> Answer:
        journal = Journal.read(self.search_folder)
        self.wish.refuse_other(Wish.from_json(journal.settings))
        if journal.data != {"split": self.facts["split_fingerprint"]}:
            raise RunError(
                f"'{self.wish.source}' is not what it was when the search in {self.folder} began; restore it, or start "
                "a new one with another --out"
            )
        for place in (self.folder, self.search_folder):
            remove_leftovers(place)
        for place in (self.folder, self.search_folder / MODELS):
            remove_half_written(place)
        journal.go_on()
        self.clock.spent = sum(trial.seconds for trial in journal.trials.values())
        return self._answered(journal)

    # ---------------------------------------------------------------- steps

    def _answered(self, journal: Journal) -> Answer:
        plan = self._planned()
        kept = Kept(self.search_folder / MODELS)
        search = Search(self.wish, plan, self.data, self.device, journal, kept, self.clock, self.stop_requested)
        choice = self._chosen(search)
        self._pause()
        self.clock.tell("testing the chosen model")
        data = load_data(self.wish.spec())  # from here on with the test part
        judgement = judge_once(choice, kept, data, self.device)
        write_audits(self.folder, data, judgement, self.command)
        self._pause()
        write_model(
            choice.chosen,
            kept,
            data,
            self.folder / MODEL,
            device=self.wish.device,
            clock=self.clock,
            stop_requested=self.stop_requested,
        )
        answer = self._answer(search, choice, judgement)
        write_text(self.folder / PAGE, answer_html(answer))
        write_sealed_json(self.folder / FILE, answer_json(answer))
        shutil.rmtree(kept.folder, ignore_errors=True)
        return answer

    def _planned(self) -> Plan:
        path = self.search_folder / PLAN
        if path.is_file():
            plan = Plan.from_json(read_sealed_json(path))
            self.clock.spent += plan.seconds
            set_threads(plan.threads)  # another number of threads would add in another order
            return plan
        plan = make_plan(self.wish, self.data, pairs_of(self.facts), self.device, self.clock)
        write_sealed_json(path, plan.to_json())
        return plan

    def _chosen(self, search: Search) -> Choice:
        """Once the choice is written down nothing is searched any more: what follows reads the test part."""
        path = self.search_folder / CHOICE
        if path.is_file():
            return Choice.from_json(read_sealed_json(path))
        search.run()
        if not search.counted():
            reasons = "; ".join(f"{method}: {reason}" for method, reason in search.left_out().items())
            raise RunError(f"no method could be trained on '{self.wish.source}' ({reasons}); see {search.journal.path}")
        choice = choose(search)
        write_sealed_json(path, choice.to_json())
        return choice

    def _pause(self) -> None:
        if self.stop_requested():
            raise Interrupted

    def _answer(self, search: Search, choice: Choice, judgement: Judgement) -> Answer:
        return Answer(
            folder=self.folder,
            wish=self.wish,
            command=self.command,
            dataset=self.facts,
            example_user=typable(self.data.train.user_ids),
            epochs=search.plan.epochs,
            choice=choice,
            rows=judgement.rows,
            users=judgement.users,
            settings_tried={method: _tried(search, method, choice.rounds) for method in search.plan.methods},
            seconds={method: search.seconds_of(method) for method in search.plan.methods},
            total_seconds=self.clock.elapsed,
            notes=(*self.facts["notes"], *search.plan.notes, *search.notes()),
        )


def _tried(search: Search, method: str, rounds: int) -> int:
    return sum(trial.number < rounds and trial.metrics is not None for trial in search.journal.of(method))
