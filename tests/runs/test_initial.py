"""`caged train --init RUN`: fine-tuning starts from a LightGCN run, and says so; what does not fit is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from caged.runs.execute import start
from caged.runs.folder import RunFolder
from caged.training import Interrupted
from tests.cli.invoke import Outcome, caged, train
from tests.conftest import Pair, write_log

EPOCHS = ("--set", "method.finetune_epochs=3", "--set", "train.batch_size=128")
OPTIONS = (*("--method", "galore", "--device", "cpu", "--threads", "1", "--set", "method.embedding_size=4"), *EPOCHS)
RESULTS = ("metrics.json", "per_user.parquet", "recommendations.parquet")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def history(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def galore(data: Path, out: Path, *arguments: str | Path) -> Outcome:
    return caged("train", "--data", data, "--out", out, *OPTIONS, *arguments)


@pytest.fixture
def tuned(log_csv: Path, finished_run: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "tuned"
    outcome = galore(log_csv, folder, "--init", finished_run, "--record", tmp_path / "results")
    assert outcome.code == 0, outcome.err
    return folder


def test_the_first_stage_is_left_out_and_the_record_says_so(tuned: Path, finished_run: Path, tmp_path: Path) -> None:
    assert [line["stage"] for line in history(tuned)] == ["finetune"] * 3
    run = read(tuned / "run.json")
    assert run["init"]["run"] == str(finished_run)
    assert (run["init"]["method"], run["init"]["seed"]) == ("lightgcn", 1)
    assert run["init"]["config"]["train"]["epochs"] == 2
    assert run["init"]["training"] == read(finished_run / "run.json")["training"]
    [record] = (tmp_path / "results").rglob("*.json")
    assert read(record)["init"] == {**run["init"], "run": finished_run.name}  # no path of this machine


def test_it_starts_from_the_tables_of_the_run(tuned: Path, finished_run: Path) -> None:
    given = load_file(finished_run / "checkpoint" / "model.safetensors")
    kept = load_file(tuned / "init.safetensors")
    assert given.keys() == kept.keys() == {"users", "items"}
    assert all(bool((given[name] == kept[name]).all()) for name in given)
    final = load_file(tuned / "checkpoint" / "model.safetensors")
    run = read(tuned / "run.json")
    assert history(tuned)[0]["start"]["recall@20"] == run["init"]["training"]["best_validation"]
    unchanged = all(bool((given[name] == final[name]).all()) for name in given)
    assert unchanged == (run["training"]["best_epoch"] == 0)  # then no epoch was better than the start
    assert run["training"]["best_validation"] >= run["init"]["training"]["best_validation"]


def test_without_init_lightgcn_is_trained_first(log_csv: Path, tmp_path: Path) -> None:
    assert galore(log_csv, tmp_path / "run", "--set", "method.pretrain_epochs=2").code == 0
    assert [line["stage"] for line in history(tmp_path / "run")] == ["pretrain"] * 2 + ["finetune"] * 3
    assert "init" not in read(tmp_path / "run" / "run.json")


def test_the_run_is_what_the_first_stage_would_have_been(log_csv: Path, tuned: Path, tmp_path: Path) -> None:
    """Two epochs of LightGCN as a stage or as a run before it reach the same validation."""
    both = tmp_path / "both"
    assert galore(log_csv, both, "--set", "method.pretrain_epochs=2").code == 0
    best = max(line["validation"]["recall@20"] for line in history(both)[:2])
    assert best == read(tuned / "run.json")["init"]["training"]["best_validation"]


def assert_ended_alike(folder: Path, undisturbed: Path) -> None:
    assert history(folder) == history(undisturbed)
    for name in RESULTS:
        assert (folder / name).read_bytes() == (undisturbed / name).read_bytes()


def test_killed_before_anything_was_kept(tuned: Path, log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    """The run that the tables came from is gone, too."""
    source = Path(shutil.copytree(finished_run, tmp_path / "source"))
    folder = tmp_path / "killed"
    assert galore(log_csv, folder, "--init", source).code == 0
    shutil.rmtree(source)
    run = read(folder / "run.json")
    (folder / "run.json").write_text(json.dumps({**run, "status": "running", "seconds": {}}))
    for name in (*RESULTS, "history.jsonl"):
        (folder / name).unlink()
    shutil.rmtree(folder / "checkpoint")
    assert caged("train", "--resume", folder).code == 0
    assert_ended_alike(folder, tuned)


@pytest.mark.parametrize("epochs", [1, 2])
def test_stopped_while_fine_tuning(tuned: Path, finished_run: Path, tmp_path: Path, epochs: int) -> None:
    calls = iter(range(1, 10))
    folder = tmp_path / "stopped"
    with pytest.raises(Interrupted):
        start(RunFolder.read(tuned).spec, folder, init=finished_run, stop_requested=lambda: next(calls) == epochs)
    assert len(history(folder)) == epochs
    assert caged("train", "--resume", folder).code == 0
    assert_ended_alike(folder, tuned)


def test_killed_after_training(tuned: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tuned, tmp_path / "killed"))
    run = read(folder / "run.json")
    (folder / "run.json").write_text(json.dumps({**run, "status": "running", "seconds": {}}))
    (folder / "metrics.json").unlink()
    assert caged("train", "--resume", folder).code == 0
    assert (folder / "metrics.json").read_bytes() == (tuned / "metrics.json").read_bytes()


def test_the_model_recommends(tuned: Path) -> None:
    assert caged("recommend", tuned, "--users", "u01", "-k", "3", "--json").code == 0


# ---------------------------------------------------------------- what is refused


def refused(outcome: Outcome, folder: Path) -> str:
    assert outcome.code == 2
    assert not folder.exists()  # nothing half-written
    return outcome.error


def test_another_loss_is_refused_and_the_same_is_not(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    out, softmax = tmp_path / "run", ("--set", "method.loss=softmax")
    error = refused(galore(log_csv, out, "--init", finished_run, *softmax), out)
    assert "was trained with loss bpr, but this run has loss softmax" in error
    train(log_csv, tmp_path / "first", "--set", "method.embedding_size=4", method="softmax")
    assert galore(log_csv, out, "--init", tmp_path / "first", *softmax).code == 0


def test_another_split_is_refused(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    error = refused(galore(log_csv, out, "--init", finished_run, "--set", "data.split_seed=2"), out)
    assert "was trained on another split" in error


def test_another_catalogue_is_refused(pairs: list[Pair], log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    """A fingerprint names pairs, not items without any: the run says the same pairs, its identifiers say otherwise."""
    renamed = [(user, item.replace("i39", "i99")) for user, item in pairs]
    train(write_log(tmp_path / "log.csv", renamed), tmp_path / "renamed")
    changed = Path(shutil.copytree(finished_run, tmp_path / "changed"))
    name = "checkpoint/training_data.safetensors"
    shutil.copy(tmp_path / "renamed" / name, changed / name)
    manifest = read(changed / "checkpoint" / "checkpoint.json")
    del manifest["training_data"]  # as before there were checksums, which would notice first
    (changed / "checkpoint" / "checkpoint.json").write_text(json.dumps(manifest))
    out = tmp_path / "run"
    assert "has another catalogue of users and items" in refused(galore(log_csv, out, "--init", changed), out)


def test_another_width_is_refused(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    error = refused(galore(log_csv, out, "--init", finished_run, "--set", "method.embedding_size=8"), out)
    assert "has embedding_size 4, but this run has 8; use --set method.embedding_size=4" in error


def test_another_protocol_is_refused(released: Path, tmp_path: Path) -> None:
    train(released, tmp_path / "honest")
    out = tmp_path / "run"
    error = refused(galore(released, out, "--init", tmp_path / "honest", "--protocol", "paper"), out)
    assert "under protocol 'honest', but this run uses 'paper'" in error


def test_a_run_of_another_method_is_refused(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "popular", method="mostpop")
    out = tmp_path / "run"
    assert "is a run of 'mostpop'; give a run of lightgcn" in refused(
        galore(log_csv, out, "--init", tmp_path / "popular"), out
    )


def test_an_unfinished_run_is_refused(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    unfinished = Path(shutil.copytree(finished_run, tmp_path / "unfinished"))
    run = read(unfinished / "run.json")
    (unfinished / "run.json").write_text(json.dumps({**run, "status": "interrupted"}))
    out = tmp_path / "run"
    error = refused(galore(log_csv, out, "--init", unfinished), out)
    assert f"status 'interrupted'; finish it with caged train --resume {unfinished}" in error


def test_a_folder_without_a_run_is_refused(log_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert "is not a run folder" in refused(galore(log_csv, out, "--init", tmp_path / "nothing"), out)


def test_a_method_without_a_first_stage_is_refused(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    outcome = caged("train", "--data", log_csv, "--out", out, "--method", "mostpop", "--init", finished_run)
    assert "method 'mostpop' has no such stage; leave it out, or use one of: galore" in refused(outcome, out)


def test_init_together_with_resume_is_refused(tuned: Path, finished_run: Path) -> None:
    outcome = caged("train", "--resume", tuned, "--init", finished_run)
    assert outcome.code == 2
    assert "leave --init out" in outcome.error
