"""Ranks of a run: who is one, what is refused, what is said about a rank that dies, and that a run survives it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from caged.errors import ConfigError, RunError
from caged.runs import ranks as module
from caged.runs.ranks import LOST, Place, _last_line, _verdict, check_devices, columns_of, resume_command
from caged.runs.spec import resolve
from tests.cli.invoke import caged, ended, refused, spawn

RENDEZVOUS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
KILLS = int(os.environ.get("CAGED_RANK_KILLS", "20"))


def test_a_process_alone_is_no_rank():
    assert Place.of({}) is None
    assert Place.of({"RANK": "0", "WORLD_SIZE": "1"}) is None
    assert Place.of({"RANK": "0"}) is None
    assert Place.of({"WORLD_SIZE": "8"}) is None


def test_torchrun_and_the_launcher_say_the_same():
    said = {**RENDEZVOUS, "RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert Place.of({**RENDEZVOUS, "RANK": "1", "WORLD_SIZE": "2"}) == Place(1, 2, 1, 2, launched=False)
    assert Place.of(said) == Place(3, 8, 1, 2, launched=False)
    assert Place.of({**said, "CAGED_LAUNCHED": "1"}) == Place(3, 8, 1, 2, launched=True)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"RANK": "x"}, "RANK is 'x'; it must be a whole number from 0 to 1;"),
        ({"RANK": ""}, "RANK is ''; it must be"),
        ({"RANK": "-1"}, "RANK is '-1'; it must be"),
        ({"RANK": "5"}, "RANK is '5'; it must be a whole number from 0 to 1;"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two'; it must be a whole number from 1"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0'; it must be"),
        ({"LOCAL_RANK": "y"}, "LOCAL_RANK is 'y'; it must be"),
        ({"LOCAL_WORLD_SIZE": "0"}, "LOCAL_WORLD_SIZE is '0'; it must be"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR is not set; it must be the address of the first rank"),
        ({"MASTER_PORT": None}, "MASTER_PORT is not set; it must be a whole number from 1 to 65535"),
        ({"MASTER_PORT": "70000"}, "MASTER_PORT is '70000'; it must be"),
    ],
)
def test_half_an_environment_of_ranks_is_refused(said, words):
    """Some schedulers of clusters set RANK and WORLD_SIZE for purposes of their own."""
    whole = {**RENDEZVOUS, "RANK": "0", "WORLD_SIZE": "2", **said}
    with pytest.raises(ConfigError) as told:
        Place.of({name: value for name, value in whole.items() if value is not None})
    assert words in str(told.value)
    assert "; unset RANK and WORLD_SIZE to train with one process or with --devices, or let torchrun" in str(told.value)


@pytest.mark.parametrize("method", ["advdrop", "apda", "galore", "macr", "ips_aggregation", "ease", "mostpop"])
def test_methods_that_need_all_columns_say_so(method):
    with pytest.raises(ConfigError, match=f"{method} can be trained on one device only.*adjnorm, caged, ips, lightgcn"):
        check_devices(resolve("log.csv", method), 2)
    check_devices(resolve("log.csv", method), 1)


def test_every_device_needs_a_column(tmp_path, log_csv):
    arguments = ("train", "--data", log_csv, "--method", "lightgcn", "--set", "method.embedding_size=3")
    outcome = caged(*arguments, "--devices", "4", "--out", tmp_path / "run")
    refused(outcome, "method.embedding_size is 3", "--devices is 4")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("devices", [0, -1, 5000])
def test_a_number_of_devices_is_checked(devices):
    with pytest.raises(ConfigError, match=f"--devices is {devices}; it must be from 1 to"):
        check_devices(resolve("log.csv", "lightgcn"), devices)


def test_torchrun_decides_about_the_number():
    place = Place(0, 2, 0, 2, launched=False)
    check_devices(resolve("log.csv", "lightgcn"), 1, place)
    with pytest.raises(ConfigError, match="--devices is 4, but torchrun started 2 ranks"):
        check_devices(resolve("log.csv", "lightgcn"), 4, place)


# ---------------------------------------------------------------- what is said in the end


@pytest.mark.parametrize(
    ("place", "command"),
    [
        (None, "caged train --resume 'my run'"),
        (Place(0, 4, 0, 4, launched=True), "caged train --resume 'my run' --devices 4"),
        (
            Place(0, 4, 0, 4, launched=False),
            "torchrun --nproc-per-node 4 -m caged train --resume 'my run'",
        ),
        (
            Place(0, 8, 0, 4, launched=False),
            "torchrun --nnodes 2 ... --nproc-per-node 4 -m caged train --resume 'my run'",
        ),
    ],
)
def test_a_run_goes_on_with_as_many_processes(place, command):
    assert resume_command(Path("my run"), place) == command


def test_what_run_json_says_about_a_lost_rank_is_whole(tmp_path, monkeypatch):
    """It cannot be left to whoever prints it to add the folder."""

    @contextmanager
    def lost(*_, go_on, **__):
        (tmp_path / "run.json").touch()  # which happens between meeting and losing the others
        yield go_on

    monkeypatch.setattr("caged.training.columns.connected", lost)
    spec = resolve("log.csv", "lightgcn", device="cpu")
    with columns_of(Place(0, 2, 0, 2, launched=True), spec, tmp_path) as go_on:
        assert go_on() == f"continue with: caged train --resume {tmp_path} --devices 2"
        (tmp_path / "run.json").unlink()
        assert go_on() == "the run had not begun, start it again"


@pytest.mark.parametrize("code", [0, 2, 130])
def test_what_the_first_rank_said_is_enough(code, tmp_path):
    failed = {0: code} if code else {}
    assert _verdict(failed, [code, LOST], ["", ""], tmp_path) == code


def test_a_killed_rank_is_named(tmp_path):
    with pytest.raises(RunError) as told:
        _verdict({2: -signal.SIGKILL}, [LOST, None, -signal.SIGKILL, LOST], [""] * 4, tmp_path)
    assert str(told.value) == "rank 2 of 4 was killed by SIGKILL; the run had not begun, start it again"


def test_a_rank_that_fails_by_itself_is_quoted(tmp_path):
    (tmp_path / "run.json").touch()
    with pytest.raises(RunError) as told:
        _verdict({1: 2}, [LOST, 2], ["", "memory ran out"], tmp_path)
    assert (
        str(told.value)
        == f"rank 1 of 2 ended: memory ran out; continue with: caged train --resume {tmp_path} --devices 2"
    )


def test_ranks_that_lose_each_other_are_told(tmp_path):
    with pytest.raises(RunError, match="the 2 ranks lost each other"):
        _verdict({0: LOST}, [LOST, LOST], ["", ""], tmp_path)


def test_the_last_line_of_a_rank_counts(tmp_path):
    said = tmp_path / "said"
    said.write_text("warning: this\nerror: that is wrong\n\n")
    with said.open() as handle:
        assert _last_line(handle) == "that is wrong"


# ---------------------------------------------------------------- killed

TRAINING = (
    *("--method", "lightgcn", "--device", "cpu", "--threads", "1", "--no-report"),
    *("--set", "train.patience=none", "--set", "train.batch_size=128", "--set", "method.embedding_size=6"),
    *("--set", "train.checkpoint_seconds=0", "--set", "train.epochs=60"),
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="the ranks of a launcher are found in /proc")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, log_csv):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    outcome = caged("train", "--data", log_csv, "--out", folder, *TRAINING)
    assert outcome.code == 0, outcome.err
    return folder


def ranks_of(launcher):
    """Process numbers of the ranks, in order: they were started one after the other."""
    try:
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text(encoding="ascii")
        return [int(number) for number in children.split()]
    except FileNotFoundError:
        return []


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


def killed_and_resumed(log, folder, choice, *, devices, resumed_on):
    """Kill one of the ranks at a random moment after the first checkpoint; resume; how it was told."""
    process = spawn("train", "--data", log, "--out", folder, *TRAINING, "--devices", str(devices), cwd=folder.parent)
    deadline = time.monotonic() + 120
    while not (folder / "checkpoint" / "checkpoint.json").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "there is no checkpoint after two minutes"
        time.sleep(0.01)
    ranks = ranks_of(process)
    assert len(ranks) == devices
    time.sleep(choice.random())
    chosen = choice.randrange(devices)
    os.kill(ranks[chosen], signal.SIGKILL)
    outcome = ended(process)
    deadline = time.monotonic() + 10
    while any(map(alive, ranks)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, ranks))
    if chosen:  # else nobody is left to write it down
        assert json.loads((folder / "run.json").read_text())["error"] == (
            "another rank of this run ended, or has not answered for too long, see what it said; "
            f"continue with: caged train --resume {folder} --devices {devices}"
        )
    if resumed_on == 1:
        again = caged("train", "--resume", folder)
    else:
        again = ended(spawn("train", "--resume", folder, "--devices", str(resumed_on), cwd=folder.parent))
    assert again.code == 0, again.err
    return outcome, chosen


def assert_told(outcome, chosen, devices, folder):
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.error == (
        f"error: rank {chosen} of {devices} was killed by SIGKILL; continue with: caged train --resume {folder} "
        f"--devices {devices}"
    )
    assert "Traceback" not in outcome.err


def assert_ended_alike(folder, undisturbed):
    mine, theirs = (load_file(path / "checkpoint" / "model.safetensors") for path in (folder, undisturbed))
    assert mine.keys() == theirs.keys()
    for name, value in theirs.items():
        torch.testing.assert_close(mine[name], value, atol=1e-5, rtol=0)


@linux
def test_a_killed_rank_ends_the_run_which_goes_on_alone(log_csv, tmp_path, undisturbed):
    folder = tmp_path / "run"
    outcome, chosen = killed_and_resumed(log_csv, folder, random.Random(1), devices=2, resumed_on=1)
    assert_told(outcome, chosen, 2, folder)
    assert_ended_alike(folder, undisturbed)


@linux
@pytest.mark.slow
def test_a_rank_may_die_at_any_moment(log_csv, tmp_path, undisturbed):
    choice = random.Random(2)
    for number in range(KILLS):
        folder, devices = tmp_path / f"run{number}", choice.choice((2, 3, 4))
        resumed_on = choice.choice((1, 2))
        outcome, chosen = killed_and_resumed(log_csv, folder, choice, devices=devices, resumed_on=resumed_on)
        assert_told(outcome, chosen, devices, folder)
        assert_ended_alike(folder, undisturbed)


def training_on_two(log, folder):
    """With its first checkpoint written."""
    process = spawn("train", "--data", log, "--out", folder, *TRAINING, "--devices", "2", cwd=folder.parent)
    while not (folder / "checkpoint" / "checkpoint.json").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


@linux
@pytest.mark.slow
def test_ctrl_c_ends_all_ranks_after_an_epoch(log_csv, tmp_path):
    folder = tmp_path / "run"
    process = training_on_two(log_csv, folder)
    ranks = ranks_of(process)
    process.send_signal(signal.SIGINT)
    outcome = ended(process)
    assert outcome.code == 130
    assert f"stopped; continue with: caged train --resume {folder} --devices 2\n" in outcome.err
    assert not any(map(alive, ranks))


@linux
@pytest.mark.parametrize("which", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_whatever_asks_a_run_to_end_is_an_interruption(which, log_csv, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    folder = tmp_path / "run"
    process = training_on_two(log_csv, folder)
    assert any((tmp_path / "temporary").glob("caged-ranks-*"))
    ranks = ranks_of(process)
    for one in (*ranks, process.pid):  # as a system that shuts down tells all of them
        os.kill(one, which)
    outcome = ended(process)
    assert outcome.code == 130, outcome.err
    assert f"stopped; continue with: caged train --resume {folder} --devices 2\n" in outcome.err
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    assert not any(map(alive, ranks))
    assert not any((tmp_path / "temporary").glob("caged-ranks-*"))


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_before_a_rank_could_hear_of_it(which, tmp_path, monkeypatch):
    """It arrives while Python starts, which ends it by the signal."""

    def watched(ranks):
        signal.raise_signal(which)
        return {0: ranks[0].wait()}

    sleeping = [sys.executable, "-S", "-c", "import signal, time; signal.signal(2, signal.SIG_DFL); time.sleep(60)"]
    monkeypatch.setattr(module, "_watch", watched)
    monkeypatch.setattr(module, "_started", lambda *_: subprocess.Popen(sleeping, start_new_session=True))
    assert module.launch(2, [], tmp_path) == 130


def test_an_end_before_there_is_a_rank(tmp_path, monkeypatch):
    """Nothing stays behind, and the first rank is told as soon as it is there."""

    def started(rank, *_):
        if rank == 0:
            signal.raise_signal(signal.SIGTERM)
        sleeping = "import signal, time; signal.signal(2, signal.SIG_DFL); time.sleep(60)"
        return subprocess.Popen([sys.executable, "-S", "-c", sleeping], start_new_session=True)

    monkeypatch.setattr(module, "_started", started)
    monkeypatch.setattr(module, "GRACE", 0.0)
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    assert module.launch(2, [], tmp_path / "run") == 130
    assert list(tmp_path.iterdir()) == []


@linux
@pytest.mark.slow
def test_ranks_end_with_their_launcher(log_csv, tmp_path):
    folder = tmp_path / "run"
    process = training_on_two(log_csv, folder)
    ranks = ranks_of(process)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while any(map(alive, ranks)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, ranks))


@linux
@pytest.mark.slow
@pytest.mark.parametrize("method", ["lightgcn", "caged"])
def test_a_refit_is_the_same_on_two_ranks(method, log_csv, tmp_path):
    options = ("--data", log_csv, "--method", method, "--device", "cpu", "--no-report", "--refit")
    small = ("--set", "train.epochs=4", "--set", "method.embedding_size=6", "--set", "train.batch_size=128")
    for devices in ("1", "2"):
        process = spawn("train", *options, *small, "--out", tmp_path / devices, "--devices", devices, cwd=tmp_path)
        assert ended(process).code == 0
    assert_ended_alike(tmp_path / "2", tmp_path / "1")
