"""A run that is killed at any moment and resumed ends exactly like one that was left alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caged.config import describe
from caged.models import METHODS, registered
from caged.runs.lock import LOCK
from tests.cli.invoke import caged, contents, ended, spawn, train

EPOCHS = 120
KILLS = int(os.environ.get("CAGED_KILLS", "100"))
TRAINING = (
    *("--method", "lightgcn", "--device", "cpu", "--threads", "1"),
    *("--set", "train.patience=none", "--set", "train.batch_size=128", "--set", "method.embedding_size=16"),
)
RESULTS = ("metrics.json", "per_user.parquet", "recommendations.parquet")


def options(data: Path, folder: Path, epochs: int = EPOCHS, checkpoint_seconds: int = 0) -> list[str]:
    values = ("--set", f"train.epochs={epochs}", "--set", f"train.checkpoint_seconds={checkpoint_seconds}")
    return ["train", "--data", str(data), "--out", str(folder), *TRAINING, *values]


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def history(folder: Path, name: str = "history.jsonl") -> list[dict[str, Any]]:
    """The lines of the history without their times; half a line at the end of a killed run is left out."""
    path = folder / name
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    lines = [json.loads(line) for line in whole.splitlines()]
    return [without_times(line) for line in lines]


def without_times(value: Any) -> Any:
    """Times stand in a line itself and in what a method adds about its phases."""
    if not isinstance(value, dict):
        return value
    return {key: without_times(inner) for key, inner in value.items() if not key.endswith("seconds")}


def assert_ended_alike(resumed: Path, undisturbed: Path) -> None:
    assert set(contents(resumed)) == set(contents(undisturbed))  # no leftovers either
    for name in (*RESULTS, "checkpoint/model.safetensors", "checkpoint/checkpoint.json"):
        assert (resumed / name).read_bytes() == (undisturbed / name).read_bytes(), name
    assert history(resumed) == history(undisturbed)
    runs = [read(folder / "run.json") for folder in (resumed, undisturbed)]
    assert [run["status"] for run in runs] == ["finished", "finished"]
    assert runs[0]["training"] == runs[1]["training"]


def wait_for(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the process did not get there in a minute"
        time.sleep(0.01)


def kill(process: subprocess.Popen[str], folder: Path) -> int:
    """SIGKILL; returns the epoch of the last complete checkpoint, 0 if there is none."""
    process.send_signal(signal.SIGKILL)
    assert ended(process).code in {-signal.SIGKILL, 0}  # 0: it was done already
    manifest = folder / "checkpoint" / "checkpoint.json"
    progress = read(manifest)["progress"] if manifest.exists() else {"epochs": 0}
    kept = progress.get("epochs_in_total", progress.get("epochs"))  # of a training state, or of a finished model
    print(f"killed pid {process.pid} in epoch {len(history(folder)) + 1}, last checkpoint after epoch {kept}")
    return int(kept)


def test_killed_before_the_first_checkpoint_and_in_either_training_of_a_refit(log_csv: Path, tmp_path: Path) -> None:
    chance, epochs = random.Random(22), 100
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    # The last epoch is the best, or nearly so: both trainings are long enough to be killed in.
    refit = ("--refit", "--no-report", "--set", "train.learning_rate=0.0005")
    process = spawn(*options(log_csv, folder, epochs), *refit, cwd=tmp_path)
    wait_for(process, (folder / "run.json").exists)
    assert kill(process, folder) == 0  # before the first checkpoint

    phases = []
    for name, target in (("history.jsonl", 10), ("history_refit.jsonl", 3)):
        process = spawn("train", "--resume", folder, cwd=tmp_path)
        wait_for(process, lambda file=name, goal=target: len(history(folder, file)) >= goal)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.02))  # an epoch takes about 10 ms: anywhere within one
        kept = kill(process, folder)
        assert process.returncode == -signal.SIGKILL
        phases.append((read(folder / "checkpoint" / "checkpoint.json").get("replays"), 0 < kept < epochs))
    assert phases == [(False, True), (True, True)]

    assert caged("train", "--resume", folder).code == 0
    assert caged(*options(log_csv, undisturbed, epochs), *refit).code == 0
    assert_ended_alike(folder, undisturbed)
    assert [line["epoch"] for line in history(folder)] == list(range(1, epochs + 1))
    assert history(folder, "history_refit.jsonl") == history(undisturbed, "history_refit.jsonl")
    assert read(folder / "run.json")["resumed"] == 3


@pytest.mark.slow
def test_killed_at_random_moments(log_csv: Path, tmp_path: Path) -> None:
    chance = random.Random(20)
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    process = spawn(*options(log_csv, folder), cwd=tmp_path)
    reached = 0
    kills = 3
    for _ in range(kills):
        target = reached + chance.randint(5, 40)
        wait_for(process, lambda goal=target: len(history(folder)) >= goal)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.02))
        now = kill(process, folder)
        assert process.returncode == -signal.SIGKILL
        assert reached < now < EPOCHS
        reached = now
        process = spawn("train", "--resume", folder, cwd=tmp_path)

    outcome = ended(process)
    assert outcome.code == 0, outcome.err
    assert ended(spawn(*options(log_csv, undisturbed), cwd=tmp_path)).code == 0
    assert_ended_alike(folder, undisturbed)
    assert [line["epoch"] for line in history(folder)] == list(range(1, EPOCHS + 1))
    assert read(folder / "run.json")["resumed"] == kills


@pytest.mark.slow
def test_killed_many_times_after_random_times(log_csv: Path, tmp_path: Path) -> None:
    """Kills come by the clock, so they also hit the first steps, evaluation and the writing of results."""
    chance = random.Random(21)
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    assert ended(spawn(*options(log_csv, undisturbed, epochs=600), cwd=tmp_path)).code == 0
    process = spawn(*options(log_csv, folder, epochs=600), cwd=tmp_path)
    wait_for(process, (folder / "run.json").exists)
    kill(process, folder)
    for number in range(1, 13):
        process = spawn("train", "--resume", folder, cwd=tmp_path)
        wait_for(process, lambda count=number: read(folder / "run.json")["resumed"] == count)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 4))
        kill(process, folder)
        if read(folder / "run.json")["status"] == "finished":
            break
    else:
        assert ended(spawn("train", "--resume", folder, cwd=tmp_path)).code == 0
    assert read(folder / "run.json")["resumed"] > 2
    assert_ended_alike(folder, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_killed_at_any_moment_it_works(method: str, log_csv: Path, tmp_path: Path) -> None:
    """CAGED_KILLS of them (100) are dealt out over the methods; every run that was killed ends like the undisturbed."""
    mine = KILLS // len(METHODS) + (list(METHODS).index(method) < KILLS % len(METHODS))
    chance = random.Random(f"kills of {method}")
    undisturbed = tmp_path / "undisturbed"
    assert ended(spawn(*method_options(log_csv, undisturbed, method), cwd=tmp_path)).code == 0
    work = read(undisturbed / "run.json")["seconds"]["total"]
    kills = runs = 0
    while kills < mine:
        runs += 1
        folder = tmp_path / f"killed-{runs}"
        while not is_finished(folder):
            again = (folder / "run.json").exists()
            if not again:
                shutil.rmtree(folder, ignore_errors=True)  # killed before there was a run to resume
            resumed = ["train", "--resume", str(folder), "--no-report"]
            process = spawn(*(resumed if again else method_options(log_csv, folder, method)), cwd=tmp_path)
            while process.poll() is None and not holds(process.pid, folder):
                time.sleep(0.001)
            if kills < mine:
                time.sleep(chance.uniform(0, work))
                process.send_signal(signal.SIGKILL)
            outcome = ended(process)
            assert outcome.code in {0, -signal.SIGKILL}, outcome.err
            kills += outcome.code == -signal.SIGKILL
        (folder / LOCK).unlink(missing_ok=True)  # killed after the last word of run.json
        assert_ended_alike(folder, undisturbed)
    print(f"{method}: {kills} kills, {runs} runs")


def method_options(data: Path, folder: Path, method: str) -> list[str]:
    """Some seconds of work, with a checkpoint after every epoch where there are any."""
    values = {"train.epochs": 25, "train.patience": "none", "train.batch_size": 128, "train.checkpoint_seconds": 0}
    if "embedding_size" in {option.name for option in describe(registered(method).config)}:
        values["method.embedding_size"] = 8
    chosen = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    where = ["--data", str(data), "--out", str(folder), "--device", "cpu", "--threads", "1"]
    return ["train", "--method", method, *where, "--no-report", *chosen]


def is_finished(folder: Path) -> bool:
    return (folder / "run.json").exists() and read(folder / "run.json")["status"] == "finished"


def holds(pid: int, folder: Path) -> bool:
    try:
        return bool(json.loads((folder / LOCK).read_text())["pid"] == pid)
    except (FileNotFoundError, ValueError):
        return False


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_run_that_goes_on(log_csv: Path, tmp_path: Path, which: signal.Signals) -> None:
    undisturbed, folder, records = tmp_path / "undisturbed", tmp_path / "stopped", tmp_path / "results"
    # No checkpoint is due: the one that is resumed from is the one that Ctrl-C asked for.
    long = {"epochs": 150, "checkpoint_seconds": 1000}
    process = spawn(*options(log_csv, folder, **long), "--record", records, cwd=tmp_path)
    wait_for(process, lambda: len(history(folder)) >= 5)
    process.send_signal(which)
    outcome = ended(process)
    print(f"stopped pid {process.pid} after epoch {len(history(folder))}")
    assert (outcome.code, outcome.out) == (130, "")
    assert "stopping after this epoch" in outcome.err
    assert "caged train --resume" in outcome.err
    assert "Traceback" not in outcome.err
    assert read(folder / "run.json")["status"] == "interrupted"
    [record] = records.rglob("*.json")
    assert (read(record)["status"], read(record)["metrics"]) == ("interrupted", None)
    stopped_at = len(history(folder))
    assert 5 <= stopped_at < 150
    assert read(folder / "checkpoint" / "checkpoint.json")["progress"]["epochs_in_total"] == stopped_at

    assert caged("train", "--resume", folder).code == 0
    assert caged(*options(log_csv, undisturbed, **long)).code == 0
    assert_ended_alike(folder, undisturbed)
    assert [line["epoch"] for line in history(folder)] == list(range(1, 151))
    # The record that the run started with is kept up to date without being named again.
    assert read(record)["status"] == "finished"
    assert read(record)["metrics"] == read(folder / "metrics.json")["metrics"]


def test_a_second_ctrl_c_stops_at_once(log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("caged.models.lightgcn.LightGCN.begin_epoch", twice)
    outcome = caged(*options(log_csv, tmp_path / "run", epochs=3))
    assert outcome.code == 130
    assert "interrupted" in outcome.err
    assert "Traceback" not in outcome.err
    assert read(tmp_path / "run" / "run.json")["status"] == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


# ---------------------------------------------------------------- moments that a kill seldom hits


@pytest.fixture(params=["lightgcn", "mostpop"])
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def runs(method: str, log_csv: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A finished run, and a copy whose `run.json` says that it is still running."""
    train(log_csv, tmp_path / "undisturbed", method=method)
    folder = Path(shutil.copytree(tmp_path / "undisturbed", tmp_path / "killed"))
    run = read(folder / "run.json")
    del run["training"]
    (folder / "run.json").write_text(json.dumps({**run, "status": "running", "seconds": {}}))
    return tmp_path / "undisturbed", folder


@pytest.mark.parametrize("missing", [RESULTS, RESULTS[:1], ()], ids=["all results", "metrics", "nothing"])
def test_killed_after_training(missing: tuple[str, ...], runs: tuple[Path, Path]) -> None:
    undisturbed, folder = runs
    for name in missing:
        (folder / name).unlink()
    model = (folder / "checkpoint" / "model.safetensors").stat().st_mtime_ns
    assert caged("train", "--resume", folder).code == 0
    assert_ended_alike(folder, undisturbed)
    assert (folder / "checkpoint" / "model.safetensors").stat().st_mtime_ns == model  # not trained again


def test_killed_before_anything_was_kept(runs: tuple[Path, Path]) -> None:
    undisturbed, folder = runs
    for name in [*RESULTS, "history.jsonl"]:
        (folder / name).unlink()
    shutil.rmtree(folder / "checkpoint")
    assert caged("train", "--resume", folder).code == 0
    assert_ended_alike(folder, undisturbed)


def test_killed_while_writing(runs: tuple[Path, Path]) -> None:
    """Temporary files, a model that no manifest names, and half a line of history."""
    undisturbed, folder = runs
    for name in RESULTS:
        (folder / name).unlink()
    (folder / ".metrics.json.0a1b2c3d.tmp").write_text("{")
    (folder / "checkpoint" / ".model.safetensors.0a1b2c3d.tmp").write_text("x")
    (folder / "checkpoint" / ".tmphc6uTQ").write_text("x")  # safetensors writes through one of its own
    (folder / "checkpoint" / "checkpoint.json").unlink()
    with (folder / "history.jsonl").open("a") as handle:
        handle.write('{"stage": "tr')
    assert caged("train", "--resume", folder).code == 0
    assert_ended_alike(folder, undisturbed)


def test_a_failed_run_can_be_resumed_and_recorded_elsewhere(
    log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("caged.runs.execute.evaluate_part", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            caged(*options(log_csv, tmp_path / "run", epochs=3))
    assert read(tmp_path / "run" / "run.json")["status"] == "failed"
    assert caged("train", "--resume", tmp_path / "run", "--record", tmp_path / "results").code == 0
    run = read(tmp_path / "run" / "run.json")
    assert run["status"] == "finished"
    assert "error" not in run
    [record] = (tmp_path / "results").rglob("*.json")
    assert read(record)["status"] == "finished"


def test_resume_from_another_folder(log_csv: Path, tmp_path: Path) -> None:
    """The data was named relative to a folder that is no longer the current one."""
    arguments = options(Path(log_csv.name), tmp_path / "run", epochs=3)
    assert caged(*arguments, cwd=log_csv.parent).code == 0
    run = read(tmp_path / "run" / "run.json")
    assert run["spec"]["source"] == "log.csv"
    (tmp_path / "run" / "run.json").write_text(json.dumps({**run, "status": "interrupted"}))
    assert caged("train", "--resume", "run", cwd=tmp_path).code == 0
