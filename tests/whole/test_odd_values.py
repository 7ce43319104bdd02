"""Values that are allowed one by one and make no sense here: one sentence, or the obvious meaning."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from caged.models.itemknn import ItemKNN
from caged.runs.execute import resume
from caged.runs.folder import RunFolder
from tests.cli.invoke import caged, refused, refused_without_a_trace, tiny, train


def options(*values: str) -> list[str]:
    return [part for value in values for part in ("--set", value)]


# ---------------------------------------------------------------- sizes


def test_a_batch_larger_than_the_log_is_the_whole_log(log_csv: Path, tmp_path: Path) -> None:
    for name, size in (("huge", "99999999999"), ("large", "100000")):
        train(log_csv, tmp_path / name, *options(f"train.batch_size={size}"))
    one, other = ((tmp_path / name / "metrics.json").read_bytes() for name in ("huge", "large"))
    assert one == other


def test_memory_that_nobody_has_is_not_asked_for(log_csv: Path, tmp_path: Path) -> None:
    sizes = options("method.embedding_size=999999999999", "train.epochs=1")
    arguments = ["train", "--data", str(log_csv), "--method", "lightgcn", "--out", "run", *sizes]
    refused_without_a_trace(
        tmp_path, arguments, "training with the final test needs about", "free", "method.embedding_size="
    )


def test_memory_that_runs_out(log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caged.runs.planning.fitting.free_memory", lambda device: None)  # as if nobody knew
    sizes = options("method.embedding_size=999999999999", "train.epochs=1")
    outcome = caged("train", "--data", log_csv, "--method", "lightgcn", "--out", tmp_path / "run", *sizes)
    refused(outcome, "memory ran out", "method.embedding_size", "more memory")
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["status"] == "failed"
    assert run["error"].startswith("memory ran out")


@pytest.mark.parametrize("threads", ["0", "100000"])
def test_threads_that_no_machine_has(threads: str, log_csv: Path, tmp_path: Path) -> None:
    arguments = ["train", "--data", str(log_csv), "--method", "lightgcn", "--threads", threads]
    refused_without_a_trace(tmp_path, arguments, f"threads is {threads}", "from 1 to")


def test_a_list_length_twice(log_csv: Path, tmp_path: Path) -> None:
    arguments = ["train", "--data", str(log_csv), "--method", "mostpop", "--out", "run", "--set", "eval.k=20,10,20"]
    refused_without_a_trace(tmp_path, arguments, "eval.k is 20, 10, 20", "once")


# ---------------------------------------------------------------- stopping


def test_ctrl_c_in_a_closed_form_stops_and_can_be_resumed(
    log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = ItemKNN.fit_closed_form

    def interrupted(self: ItemKNN) -> None:
        fit(self)
        signal.raise_signal(signal.SIGINT)

    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(ItemKNN, "fit_closed_form", interrupted)
        outcome = caged("train", "--data", log_csv, "--method", "itemknn", "--out", folder, *tiny("itemknn"))
    assert outcome.code == 130
    assert "--resume" in outcome.err
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    assert not (folder / "metrics.json").exists()
    assert resume(RunFolder.read(folder)).run.status == "finished"


def test_the_epoch_that_is_named_belongs_to_the_last_stage(log_csv: Path, tmp_path: Path) -> None:
    sizes = options("train.epochs=3", "method.embedding_size=4", "method.finetune_epochs=2")
    outcome = train(log_csv, tmp_path / "run", *sizes, method="galore")
    trained = json.loads((tmp_path / "run" / "run.json").read_text())["training"]
    assert (trained["stage"], trained["stage_epochs"], trained["epochs"]) == ("finetune", 2, 5)
    said = (
        f"epoch {trained['best_epoch']} of 2 in stage finetune" if trained["best_epoch"] else "start of stage finetune"
    )
    assert said in outcome.out + outcome.err


# ---------------------------------------------------------------- damaged run folders


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.mark.parametrize("content", ["{}", "[]", '{"tensors": "model.safetensors", "finished": true}'])
def test_a_manifest_of_something_else(content: str, run: Path) -> None:
    (run / "checkpoint" / "checkpoint.json").write_text(content)
    for command in (["recommend", "run", "--all-users"], ["evaluate", "run"], ["explain", "run", "--user", "u01"]):
        refused_without_a_trace(run.parent, command, "checkpoint.json", "not what caged writes")


def test_a_run_json_of_something_else(run: Path) -> None:
    (run / "run.json").write_text("[]")
    refused_without_a_trace(run.parent, ["explain", "run", "--user", "u01"], "run.json")


def test_a_damaged_end_of_the_history_is_cut_off(log_csv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(log_csv, folder)
    described = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**described, "status": "interrupted"}))
    (folder / "checkpoint" / "checkpoint.json").unlink()  # as if nothing had been saved yet
    (folder / "history.jsonl").write_bytes(b'{"epoch": 1, \xff\xfe')
    assert resume(RunFolder.read(folder)).run.status == "finished"
    assert [json.loads(line)["epoch"] for line in (folder / "history.jsonl").read_text().splitlines()] == [1, 2]


# ---------------------------------------------------------------- users


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """A run on a log with integer ids."""
    rows = [f"{user},{(user * 7 + step * 3) % 20}" for user in range(12) for step in range(8)]
    (tmp_path / "log.csv").write_text("user_id,item_id\n" + "\n".join(rows) + "\n")
    train(tmp_path / "log.csv", tmp_path / "run", "--set", "eval.k=3", method="mostpop")
    return tmp_path / "run"


@pytest.mark.parametrize("stranger", ["99999999999999999999999", "007", "\u0663"])
def test_users_that_are_no_ids_of_the_log_are_unknown(stranger: str, numbered: Path) -> None:
    outcome = caged("recommend", numbered, "--users", f"1,{stranger}", "--unknown", "skip", "-k", "2", "--json")
    assert outcome.code == 0, outcome.err
    assert {row["user_id"] for row in json.loads(outcome.out)} == {1}
    assert outcome.err == "note: skipped 1 unknown user\n"


def test_a_byte_order_mark_is_no_part_of_a_user(numbered: Path, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_bytes("\ufeff1\n2\n".encode())
    outcome = caged("recommend", numbered, "--users-file", tmp_path / "users.txt", "-k", "2", "--json")
    assert {row["user_id"] for row in json.loads(outcome.out)} == {1, 2}


# ---------------------------------------------------------------- audit


def test_evidence_of_no_test(log_csv: Path, numbered: Path) -> None:
    recs = numbered / "recommendations.parquet"
    log = numbered.parent / "log.csv"
    refused(caged("audit", recs, "--train", log, "-k", "3", "--evidence", "oracle"), "evidence is 'oracle'", "no test")
    refused(caged("audit", recs, "--train", log, "-k", "3", "--evidence", "none"), "unknown evidence 'none'")


def test_validate_on_a_column_that_is_not_there(log_csv: Path, tmp_path: Path) -> None:
    arguments = ["train", "--data", str(log_csv), "--method", "mostpop", "--out", "run", "--validate-on", "source=a"]
    refused_without_a_trace(tmp_path, arguments, "no column 'source'", "--validate-on")
