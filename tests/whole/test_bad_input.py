"""Bad input: one clear sentence, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.cli.invoke import (
    Outcome,
    caged,
    contents,
    ended,
    refused,
    refused_without_a_trace,
    spawn,
    tiny,
    train,
    training,
)
from tests.conftest import Pair, write_log

# ---------------------------------------------------------------- logs

ROWS = "a,x\na,y\na,z\nb,x\nb,y\nb,z\nc,x\nc,y\nc,z\n"
BAD_LOGS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "misnamed column": (
        b"userid,item_id\n1,2\n",
        ("no column 'user_id'", "'userid', 'item_id'", "did you mean 'userid'?"),
    ),
    "missing column": (b"user_id,when\n1,2\n", ("no column 'item_id'", "found: 'user_id', 'when'", "--item-column")),
    "missing header": (b"1,2\n3,4\n", ("log.csv", "header line")),
    "other separator": (b"user_id;item_id\n1;2\n", ("log.csv", "single column", "commas")),
    "empty": (b"", ("is empty",)),
    "only a header": (b"user_id,item_id\n", ("holds no interactions",)),
    "one user": (b"user_id,item_id\na,x\na,y\na,z\n", ("1 user", "two users and two items")),
    "one item": (b"user_id,item_id\na,x\nb,x\nc,x\n", ("1 item", "two users and two items")),
    "too few per user": (b"user_id,item_id\na,x\nb,y\nc,z\n", ("no user has 3 or more interactions",)),
    "not UTF-8 but UTF-16": ("user_id,item_id\nann,x\n".encode("utf-16"), ("not UTF-8", "iconv -f utf-16")),
    "not UTF-8": ("user_id,item_id\nJosé,x\n".encode("latin1"), ("not UTF-8", "0xe9")),
    "ragged": (b"user_id,item_id\na,x\na,y,z\n", ("line 3", "3 fields, expected 2")),
    "rating not a number": (b"user_id,item_id,rating\na,x,good\n", ("'good'", "data row 1")),
    "rating nan": (b"user_id,item_id,rating\na,x,1\nb,y,nan\n", ("finite", "data row 2")),
    "rating inf": (b"user_id,item_id,rating\na,x,inf\nb,y,1\n", ("finite", "data row 1")),
    "rating missing": (b"user_id,item_id,rating\na,x,\nb,y,1\n", ("is empty", "data row 1")),
    "negative id": (b"user_id,item_id\n-4,1\n2,3\n", ("-4", "negative")),
    "overflowing id": (b"user_id,item_id\n1,99999999999999999999\n2,3\n", ("99999999999999999999", "2**63")),
    "empty id": (b"user_id,item_id\n,x\nb,y\n", ("is empty", "data row 1")),
}


@pytest.mark.parametrize("case", BAD_LOGS)
def test_bad_logs(case: str, tmp_path: Path) -> None:
    content, words = BAD_LOGS[case]
    (tmp_path / "log.csv").write_bytes(content)
    refused_without_a_trace(tmp_path, training("log.csv"), *words)


def test_bad_lightgcn_text(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("0 1 2\n1 -7 2\n")
    refused_without_a_trace(tmp_path, training("log.txt"), "line 2", "-7", "negative")


def test_truncated_parquet(tmp_path: Path, pairs: list[Pair]) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"user_id": [user for user, _ in pairs], "item_id": [item for _, item in pairs]}), whole)
    (tmp_path / "log.parquet").write_bytes(whole.read_bytes()[:-100])
    refused_without_a_trace(tmp_path, training("log.parquet"), "log.parquet", "truncated")


def test_truncated_gzip(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(f"user_id,item_id\n{ROWS}".encode())[:-6])
    refused_without_a_trace(tmp_path, training("log.csv.gz"), "log.csv.gz", "truncated")


def test_a_file_that_is_not_there_suggests_one_that_is(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(f"user_id,item_id\n{ROWS}")
    refused_without_a_trace(tmp_path, training("event.csv"), "does not exist", "did you mean 'events.csv'?")


def test_unknown_dataset(tmp_path: Path) -> None:
    refused_without_a_trace(tmp_path, training("gowala"), "unknown dataset 'gowala'", "did you mean 'gowalla'?")


def test_train_and_test_must_not_overlap(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "train.csv").write_text(f"user_id,item_id\n{ROWS}")
    (tmp_path / "parts" / "test.csv").write_text("user_id,item_id\nb,y\nc,w\n")
    refused_without_a_trace(tmp_path, training("parts"), "train and test share 1 interactions", "'b'", "'y'")


def test_a_folder_without_a_test_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "train.csv").write_text(f"user_id,item_id\n{ROWS}")
    refused_without_a_trace(tmp_path, training("parts"), "no test file", "found: train.csv")


def test_duplicates_are_merged_and_counted(tmp_path: Path, pairs: list[Pair]) -> None:
    log = write_log(tmp_path / "log.csv", [*pairs, *pairs[:17]])
    outcome = train(log, tmp_path / "run")
    assert "17 duplicate rows were merged" in outcome.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["dataset"]["merged_duplicates"] == 17
    outcome = train(log, tmp_path / "again", "--json")
    assert "17 duplicate rows were merged" in outcome.err
    assert json.loads(outcome.out)["run"]["dataset"]["merged_duplicates"] == 17


# ---------------------------------------------------------------- names and values

BAD_OPTIONS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "unknown key": (["--set", "train.epoch=3"], ("unknown key 'train.epoch'", "did you mean 'train.epochs'?")),
    "unknown method key": (
        ["--set", "method.layer=3"],
        ("unknown key 'method.layer'", "did you mean 'method.layers'?"),
    ),
    "unknown section": (["--set", "trian.epochs=3"], ("unknown section 'trian'", "did you mean 'train'?")),
    "no value": (["--set", "train.epochs"], ("section.key=value",)),
    "text for a number": (["--set", "train.epochs=abc"], ("train.epochs is 'abc'", "a whole number")),
    "negative number": (["--set", "train.epochs=-1"], ("train.epochs is -1", ">= 1")),
    "zero learning rate": (["--set", "train.learning_rate=0"], ("train.learning_rate is 0.0", "> 0")),
    "infinite": (["--set", "method.l2=inf"], ("method.l2 is 'inf'", "finite")),
    "unknown sampler": (
        ["--set", "train.sampler=user_eqal"],
        ("train.sampler is 'user_eqal'", "did you mean 'user_equal'?"),
    ),
    "unknown preset": (["--preset", "movies"], ("unknown preset 'movies'", "did you mean 'movie'?")),
    "missing preset file": (["--preset", "mine.toml"], ("cannot read preset file mine.toml",)),
    "unknown protocol": (["--protocol", "honets"], ("unknown protocol 'honets'", "did you mean 'honest'?")),
    "unknown device": (["--device", "gpu"], ("unknown device 'gpu'", "auto, cpu, cuda")),
    "negative seed": (["--seed", "-1"], ("seed is -1",)),
    "huge seed": (["--seed", str(2**63)], ("2^63",)),
    "seed that is no number": (["--seed", "x"], ("--seed", "caged train --help")),
    "no threads": (["--threads", "0"], ("threads is 0", "from 1 to")),
    "k beyond the catalogue": (["--set", "eval.k=20,41"], ("k is 41", "1..40")),
    "k of zero": (["--set", "eval.k=0"], ("eval.k is 0", ">= 1")),
    "no such rating column": (["--rating-column", "stars"], ("no column 'stars'",)),
    "ratings needed": (["--min-rating", "3"], ("no rating column", "--rating-column")),
    "one column twice": (["--item-column", "user_id"], ("cannot be user and item at once",)),
    "variant without record": (["--variant", "x"], ("--record",)),
    "bad variant": (["--record", "results", "--variant", "a/b"], ("variant 'a/b'", "letters")),
    "paper on a log": (["--protocol", "paper"], ("log.csv", "LightGCN text")),
    "unknown option": (["--metod", "x"], ("--metod", "caged train --help")),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options(case: str, tmp_path: Path, pairs: list[Pair]) -> None:
    write_log(tmp_path / "log.csv", pairs)
    options, words = BAD_OPTIONS[case]
    refused_without_a_trace(tmp_path, training("log.csv", *options), *words)


def test_unknown_method(tmp_path: Path, log_csv: Path) -> None:
    arguments = training(str(log_csv), method="lightgnc")
    refused_without_a_trace(tmp_path, arguments, "unknown method 'lightgnc'", "did you mean 'lightgcn'?")


def test_a_method_without_options_says_so(tmp_path: Path, log_csv: Path) -> None:
    arguments = training(str(log_csv), "--set", "method.layers=2", method="mostpop")
    refused_without_a_trace(tmp_path, arguments, "unknown key 'method.layers'", "nothing to set")


def test_data_and_method_are_needed(tmp_path: Path) -> None:
    refused_without_a_trace(tmp_path, ["train", "--method", "lightgcn"], "give --data and --method")
    refused_without_a_trace(tmp_path, ["train", "--data", "x.csv"], "give --data and --method")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], ("no such command 'trian'", "'train'")),
        (["methods", "show", "lightgnc"], ("did you mean 'lightgcn'?",)),
        (["recommend"], ("missing argument", "caged recommend --help")),
        (["results", "pack", "nowhere"], ("nowhere does not exist",)),
        (["results", "unpack", "nowhere.tar.gz"], ("nowhere.tar.gz does not exist",)),
    ],
)
def test_other_commands(arguments: list[str], words: tuple[str, ...], tmp_path: Path) -> None:
    refused_without_a_trace(tmp_path, arguments, *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[train\n", ("not valid TOML",)),
        ("[trian]\nepochs = 3\n", ("unknown section in preset", "did you mean 'train'?")),
        ("train = 3\n", ("'train' in preset", "must be a table")),
        ("[train]\nepoch = 3\n", ("unknown key 'train.epoch'", "did you mean 'train.epochs'?")),
        ("[train]\npatience = 'much'\n", ("train.patience is 'much'",)),
        ("[backbone]\nembeding_size = 3\n", ("unknown key 'backbone.embeding_size'", "backbone.embedding_size")),
        ("[methods.lightgnc]\nlayers = 3\n", ("unknown method in preset", "did you mean 'lightgcn'?")),
        ("[methods]\nlightgcn = 3\n", ("[methods.lightgcn]",)),
        ("[methods.mostpop]\nlayers = 3\n", ("unknown key 'methods.mostpop.layers'",)),
    ],
)
def test_bad_presets(text: str, words: tuple[str, ...], tmp_path: Path, log_csv: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    refused_without_a_trace(tmp_path, training(str(log_csv), "--preset", "mine.toml"), *words)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("command", ["train", "recommend", "evaluate"])
def test_a_device_that_is_not_there(command: str, tmp_path: Path, log_csv: Path, finished_run: Path) -> None:
    arguments = {
        "train": training(str(log_csv), "--device", "cuda"),
        "recommend": ["recommend", str(finished_run), "--all-users", "--device", "cuda"],
        "evaluate": ["evaluate", str(finished_run), "--device", "cuda"],
    }
    refused_without_a_trace(tmp_path, arguments[command], "no CUDA device", "--device cpu")


# ---------------------------------------------------------------- output


def test_unwritable_places(tmp_path: Path, log_csv: Path, finished_run: Path) -> None:
    (tmp_path / "file").touch()  # below a file nobody may write, not even root
    refused_without_a_trace(tmp_path, training(str(log_csv), out="file/run"), "file/run", "Not a directory")
    refused_without_a_trace(tmp_path, training(str(log_csv), out="file"), "output folder file is a file")
    arguments = training(str(log_csv), "--record", "file/results")
    refused_without_a_trace(tmp_path, arguments, "cannot write records below file")
    arguments = ["recommend", str(finished_run), "--all-users", "-o", "file/recs.csv"]
    refused_without_a_trace(tmp_path, arguments, "cannot write --out file/recs.csv")


def test_a_folder_that_is_not_empty(tmp_path: Path, log_csv: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    refused_without_a_trace(tmp_path, training(str(log_csv), out="run"), "run is not empty")


FULL_DISK = """
import json, resource, sys
from pathlib import Path
from tests.cli.invoke import caged, contents
outcomes = {}
for name, case in json.loads(sys.argv[1]).items():
    resource.setrlimit(resource.RLIMIT_FSIZE, (case["limit"], resource.RLIM_INFINITY))
    outcome = caged(*case["arguments"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    outcomes[name] = {"code": outcome.code, "err": outcome.err}
print(json.dumps(outcomes))
"""


def test_a_disk_that_fills_up(tmp_path: Path, log_csv: Path, finished_run: Path) -> None:
    """The size of every file is limited, so that the write of a chosen file fails, for real."""

    def case(limit: int, name: str, *options: str) -> dict[str, object]:
        return {"limit": limit, "arguments": training(str(log_csv), *options, out=str(tmp_path / name))}

    wide = ("--set", "method.embedding_size=256")
    state = ("--set", "train.checkpoint_seconds=0")
    cases = {
        "training_data.safetensors": case(5500, "a"),
        "state-1.safetensors": case(200_000, "b", *wide, *state),
        "model.safetensors": case(60_000, "c", *wide),
        "history.jsonl": case(8_000, "d", "--set", "train.epochs=40"),
        "recommendations.parquet": case(9_500, "e"),
    }
    recs = tmp_path / "recs.parquet"
    cases["recs.parquet"] = {
        "limit": 5_000,
        "arguments": ["recommend", str(finished_run), "--all-users", "-o", str(recs)],
    }
    script = [sys.executable, "-c", FULL_DISK, json.dumps(cases)]
    root = Path(__file__).parents[2]
    done = subprocess.run(script, cwd=root, capture_output=True, text=True, check=True)
    outcomes = json.loads(done.stdout.splitlines()[-1])
    for file, outcome in outcomes.items():
        refused(Outcome(outcome["code"], "", outcome["err"]), "could not write", file, "File too large", "free space")
    assert not recs.exists()
    for name in "abcde":
        left = contents(tmp_path / name)
        assert not [path for path in left if path.endswith(".tmp")]
        assert set(left) <= {"run.json", "history.jsonl", "recommendations.parquet", "checkpoint"} | {
            f"checkpoint/{kept}" for kept in ("training_data.safetensors", "model.safetensors", "checkpoint.json")
        }
        run = json.loads(left["run.json"] or b"")
        assert run["status"] == "failed"
        assert "File too large" in run["error"]
        for line in (left.get("history.jsonl") or b"").decode().splitlines():
            json.loads(line)
    # With space again, the run goes on; what a resumed run ends with is compared in test_resume.
    assert caged("train", "--resume", tmp_path / "d").code == 0


# ---------------------------------------------------------------- run folders


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def set_status(run: Path, status: str) -> None:
    content = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**content, "status": status}))


@pytest.mark.parametrize("file", ["model.safetensors", "training_data.safetensors", "checkpoint.json"])
@pytest.mark.parametrize("damage", [cut, Path.unlink])
def test_a_damaged_checkpoint(file: str, damage: Callable[[Path], None], run: Path) -> None:
    damage(run / "checkpoint" / file)
    for command in (["recommend", "run", "--all-users"], ["evaluate", "run"]):
        refused_without_a_trace(run.parent, command, file)


def test_a_damaged_training_state(run: Path) -> None:
    """The manifest of an interrupted run names a state that is cut off."""
    set_status(run, "interrupted")
    state = run / "checkpoint" / "state-1.safetensors"
    (run / "checkpoint" / "model.safetensors").rename(state)
    cut(state)
    manifest = {"tensors": state.name, "finished": False, "progress": {"epochs_in_total": 1}, "scalars": {}}
    (run / "checkpoint" / "checkpoint.json").write_text(json.dumps(manifest))
    refused(caged("train", "--resume", run), "state-1.safetensors", "truncated")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ("truncated",)),
        ("[]", ("another format",)),
        ('{"format": 99}', ("another format",)),
        ('{"format": 1}', ("lacks 'status'",)),
    ],
)
def test_a_damaged_run_json(content: str | None, words: tuple[str, ...], run: Path) -> None:
    if content is None:
        cut(run / "run.json")
    else:
        (run / "run.json").write_text(content)
    for command in (["train", "--resume", "run"], ["evaluate", "run"]):
        refused_without_a_trace(run.parent, command, "run.json", *words)


def test_a_specification_that_is_incomplete(run: Path) -> None:
    """In a run from before there were checksums."""
    content = json.loads((run / "run.json").read_text())
    del content["spec"]["config"]["train"], content["checksums"]
    (run / "run.json").write_text(json.dumps({**content, "status": "interrupted"}))
    refused_without_a_trace(run.parent, ["train", "--resume", "run"], "run.json", "incomplete", "'train'")


def test_resume_needs_a_run(run: Path) -> None:
    (run.parent / "empty").mkdir()
    refused_without_a_trace(run.parent, ["train", "--resume", "empty"], "empty is not a run folder")
    refused_without_a_trace(run.parent, ["train", "--resume", "missing"], "missing is not a run folder")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spec", {"seed": 2}),
        ("dataset", {"name": "another"}),
        ("hardware", {"device": "cuda"}),
        ("threads", 2),
        ("save_weights", True),
    ],
)
def test_an_edited_run_json(key: str, value: Any, run: Path) -> None:
    content = json.loads((run / "run.json").read_text())
    edited = {**content[key], **value} if isinstance(value, dict) else value
    (run / "run.json").write_text(json.dumps({**content, key: edited, "status": "interrupted"}))
    for command in (["train", "--resume", "run"], ["evaluate", "run"], ["compare", "run", "run"]):
        refused_without_a_trace(run.parent, command, "run.json", f"'{key}'", "was edited", "start a new run")


def test_data_that_moved_is_no_edit(run: Path, log_csv: Path) -> None:
    content = json.loads((run / "run.json").read_text())
    moved = shutil.copy(log_csv, run.parent / "elsewhere.csv")
    (run / "run.json").write_text(json.dumps({**content, "data_path": str(moved)}))
    assert caged("evaluate", run).code == 0


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("left", [None, 1])
def test_a_history_that_is_not_there(left: int | None, finished: bool, log_csv: Path, tmp_path: Path) -> None:
    """A checkpoint of epoch n comes with n lines, in the middle of training and between training and testing."""
    folder, stops = tmp_path / "run", iter([False, True] if not finished else [False, False, False, True])
    more = ("--set", "train.epochs=3", "--set", "train.checkpoint_seconds=0")
    with mock.patch("caged.cli.progress.StopOnCtrlC.__call__", side_effect=stops):
        arguments = ("--data", log_csv, "--method", "lightgcn", "--out", folder, *tiny("lightgcn"), *more)
        assert caged("train", *arguments).code == 130
    history = folder / "history.jsonl"
    whole = history.read_text()
    assert len(whole.splitlines()) == (3 if finished else 2)
    if left is None:
        history.unlink()
    else:
        history.write_text("".join(whole.splitlines(keepends=True)[:left]))
    found = "is missing" if left is None else "has 1 lines"
    refused(caged("train", "--resume", folder), "history.jsonl", found, f"epoch {3 if finished else 2}", "restore")
    history.write_text(whole)
    assert caged("train", "--resume", folder).code == 0
    assert len(history.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "option",
    [
        ("--data", "log.csv"),
        ("--method", "lightgcn"),
        ("--preset", "movie"),
        ("--set", "train.epochs=9"),
        ("--protocol", "honest"),
        ("--seed", "1"),
        ("--device", "cpu"),
        ("--threads", "1"),
        ("--out", "other"),
        ("--user-column", "u"),
        ("--item-column", "i"),
        ("--rating-column", "r"),
        ("--timestamp-column", "t"),
        ("--min-rating", "3"),
        ("--validate-on", "source=explore"),
    ],
    ids=lambda option: option[0],
)
def test_resume_takes_no_other_options(option: tuple[str, str], run: Path) -> None:
    set_status(run, "interrupted")
    refused_without_a_trace(run.parent, ["train", "--resume", "run", *option], f"leave {option[0]} out")


def test_resume_and_evaluate_need_the_data_of_the_run(tmp_path: Path, pairs: list[Pair]) -> None:
    log = write_log(tmp_path / "log.csv", pairs)
    train(log, tmp_path / "run")
    set_status(tmp_path / "run", "interrupted")
    write_log(log, pairs[1:])
    refused_without_a_trace(tmp_path, ["train", "--resume", "run"], "the data of run changed")
    refused_without_a_trace(tmp_path, ["evaluate", "run"], "the data of run changed")
    log.unlink()
    refused_without_a_trace(tmp_path, ["train", "--resume", "run"], "log.csv does not exist")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--users", "u01,nobody"], ("1 of the users", "'nobody'", "skip")),
        (["--users", " , "], ("no user id",)),
        ([], ("--users, --users-file, --all-users and --history",)),
        (["--users", "u01", "--all-users"], ("exactly one",)),
        (["--users-file", "missing.txt"], ("missing.txt",)),
        (["--all-users", "-k", "41"], ("k is 41", "1..40")),
        (["--all-users", "-k", "0"], ("k is 0",)),
        (["--all-users", "--unknown", "skipp"], ("did you mean 'skip'?",)),
        (["--all-users", "-o", "recs.xlsx"], (".parquet or .csv",)),
    ],
)
def test_recommend(arguments: list[str], words: tuple[str, ...], tmp_path: Path, finished_run: Path) -> None:
    refused_without_a_trace(tmp_path, ["recommend", str(finished_run), *arguments], *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-k", "5,41"], ("k is 41", "1..40")),
        (["-k", "five"], ("eval.k is 'five'",)),
        (["--part", "tets"], ("unknown part 'tets'", "did you mean 'test'?")),
    ],
)
def test_evaluate(arguments: list[str], words: tuple[str, ...], tmp_path: Path, finished_run: Path) -> None:
    refused_without_a_trace(tmp_path, ["evaluate", str(finished_run), *arguments], *words)


def test_a_run_that_is_not_finished_cannot_recommend(run: Path) -> None:
    manifest = json.loads((run / "checkpoint" / "checkpoint.json").read_text())
    (run / "checkpoint" / "checkpoint.json").write_text(json.dumps({**manifest, "finished": False}))
    refused_without_a_trace(run.parent, ["recommend", "run", "--all-users"], "not finished", "--resume run")


# ---------------------------------------------------------------- as a process


def test_verbose_adds_the_traceback(tmp_path: Path, log_csv: Path) -> None:
    outcome = caged(*training(str(log_csv), "--set", "train.epochs=-1", "-v"), cwd=tmp_path)
    assert outcome.code == 2
    assert "Traceback" in outcome.err
    assert "train.epochs is -1" in outcome.error


def test_a_real_process_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,item_id\na,x\n")
    before = contents(tmp_path)
    arguments = training("log.csv")
    outcome = ended(spawn(*arguments, cwd=tmp_path))
    refused(outcome, "no column 'user_id'", "did you mean 'user'?")
    assert outcome == caged(*arguments, cwd=tmp_path)
    assert contents(tmp_path) == before
