"""One process works on a run folder; the lock of a dead one is taken over, that of a living one is respected."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from caged import processes
from caged.errors import RunError
from caged.runs.lock import LOCK, Holder, locked
from tests.cli.invoke import caged, contents, ended, refused, spawn, tiny

LINUX = pytest.mark.skipif(not processes.BOOT.exists(), reason="processes are told apart by what Linux says about them")


def held_by(folder: Path, **changes: Any) -> Holder:
    holder = replace(Holder.this_process(), **changes)
    (folder / LOCK).write_text(json.dumps(asdict(holder)))
    return holder


def taken(folder: Path) -> bool:
    with locked(folder):
        said = json.loads((folder / LOCK).read_text())
        assert (said["pid"], said["host"]) == (os.getpid(), platform.node())
    return not (folder / LOCK).exists()


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_lock_is_there_while_the_work_goes_on_and_gone_after_it(tmp_path: Path) -> None:
    assert taken(tmp_path)
    for end in (KeyboardInterrupt, ValueError, SystemExit):
        with pytest.raises(end), locked(tmp_path):
            raise end
        assert contents(tmp_path) == {}


def test_a_second_one_hears_who_holds_it(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(RunError, match=rf"process {os.getpid()} on .* since 20.*; wait until it ends, .* delete"):
            taken(tmp_path)
        assert (tmp_path / LOCK).exists()


def test_of_a_dead_process(tmp_path: Path) -> None:
    held_by(tmp_path, pid=dead_pid())
    assert taken(tmp_path)


def test_of_a_dead_process_where_the_system_says_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "BOOT", tmp_path / "nowhere")
    held_by(tmp_path, pid=dead_pid(), process=None)
    assert taken(tmp_path)
    with locked(tmp_path), pytest.raises(RunError, match="has been working on"):
        taken(tmp_path)


@LINUX
@pytest.mark.parametrize("process", ["another boot/7", "x"])
def test_of_a_process_whose_number_was_given_to_another(tmp_path: Path, process: str) -> None:
    held_by(tmp_path, pid=os.getpid(), process=process)
    assert taken(tmp_path)


@LINUX
def test_of_a_process_that_ended_unnoticed_by_its_parent(tmp_path: Path) -> None:
    script = f"from pathlib import Path; import os, signal; from caged.runs.lock import _take; _take(Path('{LOCK}'));"
    process = subprocess.Popen([sys.executable, "-c", script + "os.kill(os.getpid(), signal.SIGKILL)"], cwd=tmp_path)
    state = Path(f"/proc/{process.pid}/stat")
    while ") Z " not in state.read_text():
        time.sleep(0.01)
    assert taken(tmp_path)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("elsewhere", [{"host": "another"}, {"namespace": "pid:[7]"}])
def test_of_a_process_that_cannot_be_asked_about(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    held_by(tmp_path, pid=dead_pid(), **elsewhere)
    with pytest.raises(RunError, match=r"if you are sure that it is gone, delete .*run\.lock"):
        taken(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_one_that_its_writer_did_not_complete(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK).write_text(content)
    assert taken(tmp_path)


@pytest.mark.parametrize("pid", ["1", 0, -1, 2**40, 1.5, None])
def test_one_with_a_number_that_no_process_has(tmp_path: Path, pid: Any) -> None:
    held_by(tmp_path, pid=pid, process=None)
    assert taken(tmp_path)


def test_one_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(RunError, match=r"could not read .*: Is a directory"):
        taken(tmp_path)


TAKE_OVER = """
import sys, time
from pathlib import Path
from caged.errors import RunError
from caged.runs.lock import locked
print("ready", flush=True); sys.stdin.readline()
try:
    with locked(Path(".")):
        print("mine", flush=True); sys.stdin.readline()
except RunError:
    print("not mine", flush=True)
"""


def test_of_many_that_find_a_dead_lock_one_takes_it(tmp_path: Path) -> None:
    held_by(tmp_path, pid=dead_pid())
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    many = [subprocess.Popen([sys.executable, "-c", TAKE_OVER], cwd=tmp_path, **pipes) for _ in range(4)]
    for process in many:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in many:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.stdout.readline() for process in many if process.stdout is not None]
    assert sorted(said) == ["mine\n", *["not mine\n"] * 3]
    for process in many:
        process.communicate("\n")


def test_two_processes_on_one_run(log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused and changes nothing; what a killed one leaves is taken over."""
    folder = tmp_path / "run"
    longer = ("--set", "train.epochs=100000", "--set", "train.patience=none", "--set", "train.checkpoint_seconds=0")
    arguments = ("train", "--data", log_csv, "--method", "lightgcn", "--out", folder, *tiny("lightgcn"), *longer)
    first = spawn(*arguments, cwd=tmp_path)
    try:
        while not (folder / "checkpoint" / "checkpoint.json").exists():
            assert first.poll() is None
            time.sleep(0.01)
        refused(caged("train", "--resume", folder), f"process {first.pid} on", "wait until it ends")
        refused(caged(*arguments), f"process {first.pid} on", "wait until it ends")
        assert json.loads((folder / "run.json").read_text())["resumed"] == 0
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGKILL)
        ended(first)
    assert (folder / LOCK).exists()
    holders = []

    def look_and_stop(*_: object) -> None:
        holders.append(json.loads((folder / LOCK).read_text())["pid"])
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("caged.models.lightgcn.LightGCN.begin_epoch", look_and_stop)
    assert caged("train", "--resume", folder).code == 130
    assert holders == [os.getpid()]
    assert json.loads((folder / "run.json").read_text())["resumed"] == 1
    assert not (folder / LOCK).exists()


def test_a_run_killed_before_it_wrote_anything_else_can_be_started_again(log_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    arguments = ("train", "--data", log_csv, "--method", "mostpop", "--out", out, *tiny("mostpop"))
    holder = held_by(out)  # this very process: alive
    refused(caged(*arguments), f"process {holder.pid} on")
    held_by(out, pid=dead_pid(), process="another")
    assert caged(*arguments).code == 0
    assert not (out / LOCK).exists()
