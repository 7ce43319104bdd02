"""What `caged train` writes: the run folder, and the record beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

import caged as library
from tests.cli.invoke import caged, contents, refused_without_a_trace, tiny, train
from tests.conftest import ITEMS, USERS, Pair, write_log

FILES = {
    "run.json",
    "history.jsonl",
    "metrics.json",
    "per_user.parquet",
    "sums.parquet",
    "recommendations.parquet",
    "report.html",
    "checkpoint",
    "checkpoint/checkpoint.json",
    "checkpoint/model.safetensors",
    "checkpoint/training_data.safetensors",
}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("method", ["lightgcn", "mostpop"])
def test_exactly_these_files(method: str, log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", method=method)
    assert set(contents(tmp_path / "run")) == FILES


def test_the_default_folder_is_named_after_data_method_and_seed(log_csv: Path, tmp_path: Path) -> None:
    outcome = caged("train", "--data", log_csv, "--method", "mostpop", "--seed", "3", cwd=tmp_path)
    assert outcome.code == 0
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"log-mostpop-3"}


def test_run_json(finished_run: Path, log_csv: Path) -> None:
    run = read(finished_run / "run.json")
    assert (run["format"], run["status"], run["resumed"], run["record"]) == (1, "finished", 0, None)
    assert run["command"].startswith(f"caged train --data {log_csv} --method lightgcn")
    method = run["spec"]["config"]["method"]
    chosen = {name: value for name, value in method.items() if value is not None}
    assert (chosen.pop("loss"), chosen.pop("table_init")) == ("bpr", "normal")
    assert chosen == {"embedding_size": 4, "layers": 3, "l2": 1e-4, "layer_scale": 1.0}
    assert run["spec"]["config"]["train"]["epochs"] == 2
    assert (run["spec"]["seed"], run["spec"]["protocol"]) == (1, "honest")
    assert run["versions"]["torch"] == torch.__version__
    assert run["versions"]["caged"] == library.__version__
    assert run["hardware"]["device"] in {"cpu", "cuda"}
    assert run["threads"] == 1
    assert run["data_path"] == str(log_csv.resolve())
    assert set(run["seconds"]) == {"train", "evaluate", "total"}
    assert all(seconds > 0 for seconds in run["seconds"].values())
    assert run["started"] <= run["ended"]
    assert run["training"]["epochs"] == 2
    assert run["training"]["best_epoch"] in {1, 2}
    assert run["training"]["monitor"] == "recall@20"
    assert "state" not in run["training"]  # lightgcn is its tables


def test_run_json_says_what_a_method_found_beside_its_tables(log_csv: Path, tmp_path: Path) -> None:
    small = ("--set", "train.epochs=2", "--set", "method.embedding_size=4")
    train(log_csv, tmp_path / "run", *small, "--set", "method.c_candidates=0,3", method="macr")
    found = read(tmp_path / "run" / "run.json")["training"]["state"]
    assert [c for c, _ in found["scanned"]] == [0.0, 3.0]
    assert found["c"] == max(found["scanned"], key=lambda tried: tried[1])[0]


def test_run_json_describes_the_split(finished_run: Path, log_csv: Path) -> None:
    dataset = read(finished_run / "run.json")["dataset"]
    data = library.Interactions.read(log_csv)
    expected = library.split(data, seed=1)
    assert (dataset["name"], dataset["users"], dataset["items"]) == ("log", USERS, ITEMS)
    assert expected.valid is not None
    both = library.Interactions.joined([expected.train, expected.valid])
    named = {**expected.parts, "development": both}
    assert dataset["fingerprints"] == {name: part.fingerprint for name, part in named.items()}
    assert dataset["split_fingerprint"] == expected.fingerprint
    assert sum(dataset["interactions"].values()) == len(data)


def test_history_has_one_line_per_epoch(finished_run: Path) -> None:
    lines = [json.loads(line) for line in (finished_run / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    for line in lines:
        assert set(line["loss"]) == {"total", "bpr", "l2"}
        assert set(line["validation"]) == {"recall@20", "ndcg@20"}
        assert set(line["seconds"]) == {"begin_epoch", "train", "validate", "end_epoch"}
    best = max(line["validation"]["recall@20"] for line in lines)
    assert lines[-1]["best"] == read(finished_run / "run.json")["training"]["best_validation"] == best


def test_metrics_json(finished_run: Path) -> None:
    stored = read(finished_run / "metrics.json")
    assert stored["protocol"] == "honest"
    assert {"recall@20", "ndcg@20", "recall@20/niche", "arp@20", "tail_share@20", "gini@20"} <= set(stored["metrics"])
    assert set(stored["users"]) == set(stored["metrics"])
    assert stored["users"]["recall@20"] == stored["counts"]["users_relevant"]


def test_the_means_of_the_users_are_the_metrics(finished_run: Path) -> None:
    metrics = read(finished_run / "metrics.json")["metrics"]
    table = pq.read_table(finished_run / "per_user.parquet")
    names = [name for name in table.column_names if name not in ("user_id", "user_group")]
    assert {"recall@20", "ndcg@20", "recall@20/niche", "arp@20", "tail_share@20"} <= set(names)
    for name in names:
        assert float(np.nanmean(table[name].to_numpy())) == pytest.approx(metrics[name], abs=1e-12)


def test_recommendations(finished_run: Path, log_csv: Path) -> None:
    table = pq.read_table(finished_run / "recommendations.parquet")
    assert table.column_names == ["user_id", "item_id", "score", "rank"]
    split = library.split(library.Interactions.read(log_csv), seed=1)
    assert split.valid is not None
    assert split.test is not None
    seen: dict[str, set[str]] = {}
    for part in (split.train, split.valid):
        for row in part.to_arrow().to_pylist():
            seen.setdefault(row["user_id"], set()).add(row["item_id"])
    lists: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        lists.setdefault(row["user_id"], []).append(row)
    assert set(lists) == set(split.test.to_arrow()["user_id"].to_pylist())
    for user, rows in lists.items():
        assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
        # The whole catalogue less what was seen: it is smaller than 100.
        assert {row["item_id"] for row in rows} == set(split.train.item_ids.values.to_pylist()) - seen[user]


def test_the_stored_model_gives_the_stored_lists(finished_run: Path) -> None:
    stored = pq.read_table(finished_run / "recommendations.parquet").to_pylist()
    again = library.load(finished_run).recommend(k=ITEMS).to_pylist()
    by_user = {row["user_id"] for row in stored}
    assert [row for row in again if row["user_id"] in by_user] == stored


def test_integer_ids_stay_integers(pairs: list[Pair], tmp_path: Path) -> None:
    numbers = [(str(1000 + int(user[1:])), str(7 * int(item[1:]))) for user, item in pairs]
    train(write_log(tmp_path / "log.csv", numbers), tmp_path / "run", method="mostpop")
    table = pq.read_table(tmp_path / "run" / "recommendations.parquet")
    assert set(table["user_id"].to_pylist()) <= {int(user) for user, _ in numbers}
    assert set(table["item_id"].to_pylist()) == {int(item) for _, item in numbers}


def test_equal_runs_are_equal_and_another_seed_is_not(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "same")
    train(log_csv, tmp_path / "other", "--seed", "2")
    first, same, other = (
        load_file(run / "checkpoint" / "model.safetensors")
        for run in (finished_run, tmp_path / "same", tmp_path / "other")
    )
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)
    assert read(finished_run / "metrics.json") == read(tmp_path / "same" / "metrics.json")
    # The split has its own seed.
    fingerprints = [
        read(run / "run.json")["dataset"]["split_fingerprint"] for run in (finished_run, tmp_path / "other")
    ]
    assert fingerprints[0] == fingerprints[1]


# ---------------------------------------------------------------- output


def test_results_go_to_stdout_and_the_rest_to_stderr(log_csv: Path, tmp_path: Path) -> None:
    outcome = train(log_csv, tmp_path / "run")
    assert "recall@20" in outcome.out
    assert "protocol honest" in outcome.out
    assert outcome.err.splitlines() == [f"run folder: {tmp_path / 'run'}", f"page: {tmp_path / 'run/report.html'}"]
    assert "captured by popularity" in outcome.out.split("\n\n")[0]  # the verdict comes first


def test_json_output_is_what_the_folder_holds(log_csv: Path, tmp_path: Path) -> None:
    outcome = train(log_csv, tmp_path / "run", "--json")
    printed = json.loads(outcome.out)
    assert printed["folder"] == str(tmp_path / "run")
    assert printed["protocol"] == "honest"
    assert printed["metrics"] == read(tmp_path / "run" / "metrics.json")["metrics"]
    assert printed["run"] == read(tmp_path / "run" / "run.json")
    assert outcome.err == ""


# ---------------------------------------------------------------- the paper protocol


def test_paper_warns_and_labels_everything(released: Path, tmp_path: Path) -> None:
    record = tmp_path / "results"
    outcome = train(released, tmp_path / "run", "--protocol", "paper", "--record", record)
    assert "warning: protocol 'paper' selects the epoch on the test part" in outcome.err
    assert "protocol paper" in outcome.out
    assert read(tmp_path / "run" / "metrics.json")["protocol"] == "paper"
    run = read(tmp_path / "run" / "run.json")
    assert run["spec"]["protocol"] == "paper"
    assert run["spec"]["config"]["method"]["layers"] == 2
    assert run["spec"]["config"]["train"]["sampler"] == "user_equal"
    assert set(run["dataset"]["interactions"]) == {"train", "test"}
    for name in ("per_user.parquet", "recommendations.parquet"):
        assert pq.read_schema(tmp_path / "run" / name).metadata[b"protocol"] == b"paper"
    [stored] = record.rglob("*.json")
    assert stored.relative_to(record).parts[1:] == ("paper", "lightgcn", "seed1.json")
    assert read(stored)["protocol"] == "paper"
    again = caged("evaluate", tmp_path / "run")
    assert "protocol paper" in again.out
    assert "warning: protocol 'paper'" in again.err
    assert json.loads(caged("evaluate", tmp_path / "run", "--json").out)["protocol"] == "paper"


def test_paper_selects_on_test(released: Path, tmp_path: Path) -> None:
    train(released, tmp_path / "run", "--protocol", "paper", "--set", "train.epochs=4")
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    best = max(line["validation"]["recall@20"] for line in history)
    assert read(tmp_path / "run" / "metrics.json")["metrics"]["recall@20"] == best


def test_a_change_of_what_the_protocol_owns_is_said(released: Path, tmp_path: Path) -> None:
    outcome = train(released, tmp_path / "run", "--protocol", "paper", "--set", "method.layers=1")
    assert "protocol 'paper' is changed by: method.layers=1 instead of 2" in outcome.err


def test_parts_whose_ids_do_not_match_are_refused(log_csv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    header, *lines = log_csv.read_text().splitlines()
    (folder / "train.csv").write_text("\n".join([header, *lines]))
    (folder / "test.csv").write_text("\n".join([header, *(f"other {line}" for line in lines)]))
    arguments = ["train", "--data", str(folder), "--method", "mostpop", "--out", str(tmp_path / "run")]
    refused_without_a_trace(tmp_path, arguments, "test has no user in common with train")


def test_little_in_common_is_said_when_training_and_evaluating(released: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    shutil.copytree(released, folder)
    strangers = "".join(f"{user} 1 2\n" for user in range(100, 140))
    (folder / "test.txt").write_text((folder / "test.txt").read_text() + strangers)
    words = "only 30 of the 70 users of test (42.9%) are in train"
    assert words in train(folder, tmp_path / "run", method="mostpop").err
    assert words in caged("evaluate", tmp_path / "run").err


def test_ids_as_text_are_recorded_and_used_again(pairs: list[Pair], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [("None" if user == "u00" else user, item) for user, item in pairs])
    arguments = ["train", "--data", str(log), "--method", "mostpop", "--out", str(tmp_path / "run")]
    refused_without_a_trace(tmp_path, arguments, "'user_id' is 'None', which stands for a missing value", "--ids text")
    train(log, tmp_path / "run", "--ids", "text", method="mostpop")
    assert read(tmp_path / "run" / "run.json")["spec"]["config"]["data"]["ids"] == "text"
    assert caged("evaluate", tmp_path / "run").code == 0
    assert "None" in caged("recommend", tmp_path / "run", "--users", "None", "-k", "1").out


def test_times_in_several_units_are_said_and_recorded(pairs: list[Pair], tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    times = [1_700_000_000, 1_700_000_000_000]
    lines = [f"{user},{item},{times[place % 2]}" for place, (user, item) in enumerate(pairs)]
    log.write_text("\n".join(["user_id,item_id,timestamp", *lines]))
    outcome = train(log, tmp_path / "run", method="mostpop")
    (note,) = read(tmp_path / "run" / "run.json")["dataset"]["notes"]
    assert "mixes units" in note
    assert f"note: {note}" in outcome.err
    for command in (
        ["info", log],
        ["split", log, "-o", tmp_path / "split"],
        ["import", log, "-o", tmp_path / "imported"],
    ):
        done = caged("data", *command)
        assert "mixes units" in done.out + done.err


def test_paper_counts_up_to_the_largest_id(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "train.txt").write_text(
        "".join(f"{user} {user % 5} {user % 7} {user % 11} 30\n" for user in range(12)) + "12 20\n"
    )
    (folder / "test.txt").write_text("".join(f"{user} 20 21\n" for user in range(12)))
    train(folder, tmp_path / "paper", "--protocol", "paper", method="mostpop")
    assert read(tmp_path / "paper" / "run.json")["dataset"]["items"] == 31


# ---------------------------------------------------------------- records


def test_a_record_is_run_and_metrics_without_this_machine(log_csv: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    train(log_csv, tmp_path / "run", "--record", root, "--variant", "wide")
    path = root / "log" / "honest" / "lightgcn-wide" / "seed1.json"
    assert {found for found in root.rglob("*") if found.is_file()} == {path, path.with_suffix(".users.parquet")}
    record, run = read(path), read(tmp_path / "run" / "run.json")
    assert run["record"] == str(path)
    assert record["metrics"] == read(tmp_path / "run" / "metrics.json")["metrics"]
    assert record["protocol"] == "honest"
    assert record["status"] == "finished"
    assert record["command"].startswith("caged train --data log.csv --method lightgcn --out run ")
    assert record["spec"]["source"] == "log.csv"
    same = ("dataset", "versions", "hardware", "threads", "seconds", "started", "ended", "training")
    assert {key: record[key] for key in same} == {key: run[key] for key in same}
    text = path.read_text()
    assert str(tmp_path) not in text
    assert str(log_csv.parent) not in text
    assert '"/' not in text
    assert " /" not in text


def test_a_failed_run_is_listed(log_csv: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    arguments = ["train", "--data", log_csv, "--method", "lightgcn", "--out", tmp_path / "run", "--record", root]
    outcome = caged(*arguments, "--set", "train.learning_rate=1e30", "--set", "train.epochs=5")
    assert outcome.code == 2
    assert "train.learning_rate=1e+30; lower the learning rate" in outcome.error
    record = read(root / "log" / "honest" / "lightgcn" / "seed1.json")
    assert record["status"] == "failed"
    assert record["error"] in outcome.error
    assert record["metrics"] is None
    assert record["protocol"] == "honest"
    assert read(tmp_path / "run" / "run.json")["status"] == "failed"
    assert not (tmp_path / "run" / "metrics.json").exists()


def test_an_unforeseen_error_is_listed_too(log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError(f"in {tmp_path}/deep/file.py")

    monkeypatch.setattr("caged.models.lightgcn.LightGCN.loss", broken)
    with pytest.raises(ZeroDivisionError):
        train(log_csv, tmp_path / "run", "--record", tmp_path / "results")
    record = read(tmp_path / "results" / "log" / "honest" / "lightgcn" / "seed1.json")
    assert (record["status"], record["error"]) == ("failed", "ZeroDivisionError: in file.py")


# ---------------------------------------------------------------- resuming


def test_resuming_a_finished_run_is_no_failure(log_csv: Path, tmp_path: Path) -> None:
    """Loops that resume until it works come to an end; nothing is touched."""
    folder = tmp_path / "run"
    first = json.loads(train(log_csv, folder, "--json").out)
    before = contents(folder)
    outcome = caged("train", "--resume", folder)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"the run in {folder} is already finished; nothing to do\n"
    again = caged("train", "--resume", folder, "--json")
    assert again.code == 0
    assert json.loads(again.out) == first
    assert contents(folder) == before


@pytest.mark.parametrize("said", ["when it started", "when it was resumed", "never"])
def test_no_report_survives_a_resume(said: str, log_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    wish = ["--no-report"]
    with monkeypatch.context() as stopping:
        stopping.setattr("caged.cli.progress.StopOnCtrlC.__call__", lambda _: True)
        arguments = ("train", "--data", log_csv, "--method", "lightgcn", "--out", folder, *tiny("lightgcn"))
        assert caged(*arguments, *(wish if said == "when it started" else [])).code == 130
        assert caged("train", "--resume", folder, *(wish if said == "when it was resumed" else [])).code == 130
    assert caged("train", "--resume", folder).code == 0
    assert (folder / "report.html").exists() == (said == "never")


# ---------------------------------------------------------------- small things that are said


@pytest.mark.parametrize("method", ["lightgcn", "mostpop"])
def test_a_log_with_few_items_trains(method: str, pairs: list[Pair], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [(user, item) for user, item in pairs if item < "i12"])
    outcome = train(log, tmp_path / "run", method=method)
    assert "note: there are 12 items, so lists are cut at k=6 instead of 20" in outcome.err
    assert "recall@6" in json.loads((tmp_path / "run" / "metrics.json").read_text())["metrics"]
    assert caged("evaluate", tmp_path / "run").code == 0
    refused_without_a_trace(
        tmp_path, ["train", "--data", "log.csv", "--method", "mostpop", "--set", "eval.k=13"], "k is 13", "1..12"
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [((), True), (("--set", "method.r=0.25"), False), (("--set", "method.self_loop=true"), False)],
)
def test_a_neutral_default_says_so(values: tuple[str, ...], said: bool, log_csv: Path, tmp_path: Path) -> None:
    small = ("--set", "train.epochs=1", "--set", "method.embedding_size=4")
    outcome = train(log_csv, tmp_path / "run", *small, *values, method="adjnorm")
    assert ("warning: adjnorm at method.r=0.5 is LightGCN; set another r" in outcome.err) == said
