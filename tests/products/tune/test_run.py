"""A search from its settings to its answer."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.data import Interactions
from caged.errors import DataError
from caged.products.tune import NothingChosen, answer_json, resume_tune, start_tune, told_tune
from caged.products.tune import run as running
from caged.products.tune.halving import Curve
from caged.products.tune.journal import Journal
from caged.products.tune.objective import Constraint, Objective
from caged.products.tune.search import Limits, Search
from caged.products.tune.trial import load_search_data
from caged.runs.loading import load_data
from caged.runs.presets import tuned_on
from caged.runs.spec import resolve
from tests.cli.invoke import caged, ended, spawn
from tests.products.tune.test_crew import is_gone
from tests.products.tune.tuned import ITEMS, TINY, USERS, outcomes, settings, write_log

METHODS = ("mostpop", "ease", "lightgcn")


@pytest.fixture
def split(tmp_path: Path) -> Path:
    write_log(tmp_path)
    assert caged("data", "split", "log.csv", "-o", "split", cwd=tmp_path).code == 0
    return tmp_path / "split"


def replace_test_by_noise(split: Path) -> None:
    """Pairs that are drawn blindly, of the same users and items, so that the catalogue stays."""
    parts = {name: pq.read_table(split / f"{name}.parquet") for name in ("train", "valid", "test")}
    taken = {
        pair
        for name in ("train", "valid")
        for pair in zip(*(parts[name][column].to_pylist() for column in ("user_id", "item_id")), strict=True)
    }
    old = list(zip(*(parts["test"][column].to_pylist() for column in ("user_id", "item_id")), strict=True))
    pairs = [(f"u{user:02d}", f"i{item:02d}") for user in range(USERS) for item in range(ITEMS)]
    free = [pair for pair in pairs if pair not in taken]
    drawn = np.random.default_rng(1).choice(len(free), len(old), replace=False)
    noise = [free[place] for place in drawn]
    assert {item for _, item in taken} == {item for _, item in pairs}, "an item that only the test part had is lost"
    columns = {"user_id": [user for user, _ in noise], "item_id": [item for _, item in noise]}
    pq.write_table(pa.table(columns), split / "test.parquet")


def add_what_chance_showed(split: Path) -> None:
    """A part valid_negative: some pairs that are neither in train nor in valid. Some of them are in test."""
    parts = [pq.read_table(split / f"{name}.parquet") for name in ("train", "valid")]
    both = pa.concat_tables([part.select(["user_id", "item_id"]) for part in parts])
    liked = {tuple(row.values()) for row in both.to_pylist()}
    pairs = [(f"u{user:02d}", f"i{item:02d}") for user in range(USERS) for item in range(ITEMS)]
    free = [pair for pair in pairs if pair not in liked]
    shown = [free[place] for place in np.random.default_rng(2).choice(len(free), 200, replace=False)]
    columns = {"user_id": [user for user, _ in shown], "item_id": [item for _, item in shown]}
    pq.write_table(pa.table(columns), split / "valid_negative.parquet")


@pytest.mark.parametrize(
    ("workers", "further"),
    [
        (1, {}),
        (1, {"objective": Objective("shown_auc")}),
        (1, {"prune": True, "trials": 6, "epochs": 8, "seed": 4}),
        pytest.param(2, {"prune": True, "trials": 6, "epochs": 8, "seed": 4}, marks=pytest.mark.slow),
    ],
)
def test_noise_in_the_test_part_changes_no_choice(
    workers: int, further: dict[str, Any], split: Path, tmp_path: Path
) -> None:
    wished = {
        "objective": Objective("recall@20/niche"),
        "constraints": [Constraint.parse("recall@20>=90% of lightgcn")],
        **further,
    }
    if wished["objective"].key == "shown_auc":
        add_what_chance_showed(split)
    asked = settings(split, *METHODS, **wished)
    before = answer_json(start_tune(asked, tmp_path / "before", workers=workers))
    replace_test_by_noise(split)
    after = answer_json(start_tune(asked, tmp_path / "after", workers=workers))
    found = outcomes(Journal.read(tmp_path / "before"))
    assert found == outcomes(Journal.read(tmp_path / "after"))
    assert any(status == "pruned" for _, _, _, status, *_ in found) == ("prune" in further)
    for name in ("winner", "second", "goal", "rounds", "front"):
        assert before[name] == after[name]
    for method in METHODS:
        chosen = [found["methods"][method]["chosen"] for found in (before, after)]
        assert chosen[0]["number"] == chosen[1]["number"]
    tests = [found["methods"]["ease"]["test"][0]["metrics"]["recall@20"] for found in (before, after)]
    assert tests[0] != tests[1]  # it was the test part


def test_what_chance_showed_is_measured_in_every_epoch_and_at_the_end(split: Path, tmp_path: Path) -> None:
    add_what_chance_showed(split)
    held = [Constraint.parse("shown_ndcg@3>=0.01")]
    asked = settings(split, "lightgcn", objective=Objective("shown_auc"), constraints=held, trials=1)
    folder = tmp_path / "t"
    folder.mkdir()
    search = Search.begin(folder, asked, Search.prepared(asked))
    assert search.run(Limits())
    trial = search.journal.trials["lightgcn", 0]
    assert trial.metrics is not None
    assert trial.curve is not None
    found = trial.metrics["shown_auc"]
    assert found is not None
    assert 0 < found < 1
    at_best = Curve.from_json(trial.curve).best_until(trial.epochs)
    assert at_best is not None
    assert at_best["shown_auc"] == pytest.approx(found, rel=1e-6)
    assert "shown_ndcg@3" in trial.metrics


def test_without_such_a_part_the_sentence_says_what_to_add(split: Path) -> None:
    asked = settings(split, "lightgcn", objective=Objective("shown_auc"))
    with pytest.raises(DataError, match=r"shown_auc rests on what chance showed, .* add a part valid_negative"):
        Search.prepared(asked)


def test_the_test_part_is_not_in_memory_while_searching(split: Path) -> None:
    spec = resolve(str(split), "mostpop")
    loaded = load_data(spec)
    assert loaded.split.test is not None
    secret = loaded.split.test.fingerprint
    del loaded
    data = load_search_data(spec)
    gc.collect()
    alive = [each for each in gc.get_objects() if type(each) is Interactions]
    assert any(each is data.train for each in alive)
    assert secret not in [each.fingerprint for each in alive]


def test_a_finished_search_is_not_tested_again(split: Path, tmp_path: Path) -> None:
    asked = settings(split, "mostpop", "ease", trials=2)
    first = answer_json(start_tune(asked, tmp_path / "t"))
    metrics = tmp_path / "t" / "runs" / "ease-seed1" / "metrics.json"
    written = metrics.stat().st_mtime_ns
    assert answer_json(resume_tune(tmp_path / "t")) == first
    assert metrics.stat().st_mtime_ns == written


def test_the_preset_and_the_command_give_the_chosen_model_again(split: Path, tmp_path: Path) -> None:
    asked = settings(split, "lightgcn", trials=2, objective=Objective("recall@5"))
    answer = start_tune(asked, tmp_path / "t")
    found = answer_json(answer)["methods"]["lightgcn"]
    spec = resolve(str(split), "lightgcn", presets=[found["preset"]], device="cpu", threads=1)
    assert tuned_on(found["preset"], "lightgcn") == str(split)
    assert spec.config == asked.spec("lightgcn", found["chosen"]["values"]).config
    assert spec.train == asked.spec("lightgcn", found["chosen"]["values"]).train
    words = found["command"].split()
    assert words[:2] == ["caged", "train"]
    outcome = caged(*words[1:], "--no-report", "--json", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["metrics"]["recall@20"] == found["test"][0]["metrics"]["recall@20"]


def test_a_search_goes_on_elsewhere_with_its_journal_and_users(split: Path, tmp_path: Path) -> None:
    """Three machines, of which only these small files come along."""
    asked = settings(split, "lightgcn", "ease", trials=3, seeds=2)
    whole = start_tune(asked, tmp_path / "whole")
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    with pytest.raises(NothingChosen):
        start_tune(asked, first, stop_requested=lambda: journal_has(first, b'"end"', 1))
    carry(first, second)
    part = resume_tune(second, stop_requested=lambda: journal_has(second, b'"tested"', 2))
    assert (part.complete, len(part.tested), part.tests.left) == (True, 2, 1)
    carry(second, third)
    answer = resume_tune(third)
    assert outcomes(Journal.read(third)) == outcomes(Journal.read(tmp_path / "whole"))
    assert [path.name for path in (third / "runs").iterdir()] == ["lightgcn-seed2"]  # the others were tested
    for method in ("lightgcn", "ease"):
        values = [[run.metrics for run in found.tested[method]] for found in (whole, answer)]
        assert values[0] == values[1]
    assert answer.leads == whole.leads
    assert all(lead.users is not None for lead in answer.leads)
    assert len(answer.calls) == 3
    assert told_tune(third).leads == whole.leads


def carry(here: Path, there: Path) -> None:
    there.mkdir()
    shutil.copy(here / "journal.jsonl", there)
    if (here / "users").exists():
        shutil.copytree(here / "users", there / "users")


def journal_has(folder: Path, event: bytes, count: int) -> bool:
    return (folder / "journal.jsonl").read_bytes().count(event) >= count


def test_a_budget_also_ends_the_tests_and_finish_does_not(split: Path, tmp_path: Path) -> None:
    asked = settings(split, "mostpop", "ease", trials=2)
    clock = iter([0.0, *[10.0] * 1000])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "monotonic", lambda: next(clock))
        part = start_tune(asked, tmp_path / "t", budget=5.0)  # the trials need no time, the tests have none left
    assert (part.complete, part.tests.left) == (True, 2)
    done = resume_tune(tmp_path / "t", finish=True)
    assert done.tests.left == 0


def test_defaults_are_tested_where_they_are_asked_for_and_differ(split: Path, tmp_path: Path) -> None:
    space = tmp_path / "space.toml"
    space.write_text("[ease]\nmethod.ridge = [5.0]\n")
    asked = settings(split, "mostpop", "ease", trials=2, space_file=space, objective=Objective("recall@5"))
    before = start_tune(asked, tmp_path / "t")
    assert before.tests.default == {}
    answer = resume_tune(tmp_path / "t", test_defaults=True)
    assert answer.choice.methods[1].trial is not None
    chosen = answer.choice.methods[1].trial.number
    tested = sorted(path.name for path in (tmp_path / "t" / "runs").iterdir())
    assert ("ease-default-seed1" in tested) == (chosen == 1)
    assert answer.tests.default["mostpop"] == answer.tests.tuned["mostpop"]
    (run,) = answer.tests.default["ease"]
    assert {"recall@5", "recall@20"} <= (run.metrics or {}).keys()  # the objective is tested, too
    assert len(resume_tune(tmp_path / "t").calls) == 2  # a call that finds nothing to do leaves no trace


@pytest.mark.slow
def test_kill_9_loses_no_trial_and_doubles_none(split: Path, tmp_path: Path) -> None:
    """A process of its own, killed wherever it is once some trials are made."""
    sets = [part for text in TINY for part in ("--set", text)]
    arguments = ["--methods", "lightgcn,ease", "--trials", "6", "--epochs", "20", "--seeds", "1", "--out", "killed"]
    process = spawn("tune", "--data", split, *arguments, *sets, "--device", "cpu", "--threads", "1", cwd=tmp_path)
    journal = tmp_path / "killed" / "journal.jsonl"
    while process.poll() is None and (not journal.is_file() or journal.read_bytes().count(b"\n") < 6):
        time.sleep(0.01)
    assert process.poll() is None
    process.kill()
    ended(process)
    resume_tune(tmp_path / "killed")
    start_tune(settings(split, "lightgcn", "ease", trials=6, epochs=20), tmp_path / "whole")
    assert outcomes(Journal.read(tmp_path / "killed")) == outcomes(Journal.read(tmp_path / "whole"))
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    ends = [(line["method"], line["trial"]) for line in lines if line["event"] == "end"]
    assert sorted(ends) == [(method, number) for method in ("ease", "lightgcn") for number in range(6)]


class Processes:
    """A search of its own with two workers, and whoever belongs to it."""

    def __init__(self, split: Path, folder: Path) -> None:
        self.split, self.folder = split, folder
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        arguments = ["--methods", "lightgcn,ips", "--trials", "12", "--epochs", "200", "--seeds", "1"]
        sets = [part for text in (*TINY, "train.patience=none") for part in ("--set", text)]
        new = ["--data", self.split, *arguments, *sets, "--device", "cpu", "--threads", "1", "--out", self.folder]
        again = ["--resume", self.folder] if (self.folder / "journal.jsonl").is_file() else new
        self.process = spawn("tune", *again, "--workers", "2", cwd=self.folder.parent)
        return self.process

    def begun(self) -> int:
        path = self.folder / "journal.jsonl"
        return path.read_bytes().count(b'"event": "start"') if path.is_file() else 0

    def workers(self) -> list[int]:
        assert self.process is not None
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parent = int((path / "stat").read_text(errors="replace").rpartition(") ")[2].split()[1])
                if parent == self.process.pid and b"spawn_main" in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
        return found


@pytest.fixture
def processes(split: Path, tmp_path: Path) -> Iterator[Processes]:
    made = Processes(split, tmp_path / "killed")
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.communicate()


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.02)


@pytest.mark.slow
def test_twenty_kills_of_search_or_worker_lose_no_trial_and_double_none(
    processes: Processes, split: Path, tmp_path: Path
) -> None:
    chance, kills = random.Random(7), {"search": 0, "worker": 0}
    process = processes.start()
    while sum(kills.values()) < 20:
        before = processes.begun()
        wait_for(lambda before=before: processes.begun() > before)  # type: ignore[misc]
        time.sleep(chance.random())
        workers = processes.workers()
        assert process.poll() is None, "the search was over before it was killed often enough"
        if chance.random() < 0.5:
            kills["search"] += 1
            process.kill()
            ended(process)
            wait_for(lambda workers=workers: all(map(is_gone, workers)), 5)  # type: ignore[misc]
            process = processes.start()
        else:
            kills["worker"] += 1
            os.kill(chance.choice(workers), signal.SIGKILL)
    assert ended(process).code == 0

    asked = settings(split, "lightgcn", "ips", trials=12, epochs=200, fixed=(*TINY, "train.patience=none"))
    start_tune(asked, tmp_path / "whole")
    assert outcomes(Journal.read(tmp_path / "killed")) == outcomes(Journal.read(tmp_path / "whole"))
    lines = [json.loads(line) for line in (tmp_path / "killed" / "journal.jsonl").read_text().splitlines()]
    ends = [(line["method"], line["trial"]) for line in lines if line["event"] == "end"]
    assert sorted(ends) == [(method, number) for method in ("ips", "lightgcn") for number in range(12)]


@pytest.mark.slow
def test_ctrl_c_stops_workers_too_and_leaves_no_process(processes: Processes) -> None:
    process = processes.start()
    wait_for(lambda: processes.begun() > 2)
    workers = processes.workers()
    assert len(workers) == 2
    for pid in (process.pid, *workers):  # as a terminal does
        os.kill(pid, signal.SIGINT)
    outcome = ended(process)
    assert outcome.code == 130
    assert "Traceback" not in outcome.err
    assert "caged tune --resume" in outcome.err
    assert all(map(is_gone, workers))
    trials = Journal.read(processes.folder).trials.values()
    assert {trial.status for trial in trials} <= {"complete", "queued"}
    assert sum(trial.kills for trial in trials) == 0
