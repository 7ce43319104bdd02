"""`caged data split`, and the options of `caged train` that say how to split and on what to validate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from caged.data import KINDS, Columns, load, split_log
from tests.cli.invoke import caged, contents, refused_without_a_trace, train, training
from tests.conftest import Pair

HEADER = "user_id,item_id,timestamp,source,device"


@pytest.fixture(scope="module")
def marked_csv(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every third interaction comes from randomised traffic."""
    times = np.random.default_rng(4).integers(0, 400, len(pairs))
    rows = [
        f"{user},{item},{time},{'explore' if number % 3 == 0 else 'popular'},{number % 2}"
        for number, ((user, item), time) in enumerate(zip(pairs, times, strict=True))
    ]
    path = tmp_path_factory.mktemp("marked") / "log.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def dataset_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "run.json").read_text())["dataset"])


@pytest.mark.parametrize("kind", KINDS)
def test_training_on_the_folder_is_training_on_the_split_log(kind: str, marked_csv: Path, tmp_path: Path) -> None:
    outcome = caged("data", "split", marked_csv, "-o", tmp_path / "split", "--kind", kind, "--seed", "3")
    assert outcome.code == 0, outcome.err
    train(tmp_path / "split", tmp_path / "folder", method="mostpop")
    options = ("--set", f"data.split={kind}", "--set", "data.split_seed=3")
    train(marked_csv, tmp_path / "log", *options, method="mostpop")
    folder, log = dataset_of(tmp_path / "folder"), dataset_of(tmp_path / "log")
    assert folder["split_fingerprint"] == log["split_fingerprint"]
    assert folder["fingerprints"] == log["fingerprints"]
    assert (log["split"]["kind"], folder["split"]["kind"]) == (kind, "given")
    manifest = json.loads((tmp_path / "split" / "manifest.json").read_text())
    assert manifest["split_fingerprint"] == log["split_fingerprint"]
    assert {key: manifest[key] for key in ("kind", "parameters", "notes")} == log["split"]
    metrics = [json.loads((tmp_path / run / "metrics.json").read_text()) for run in ("folder", "log")]
    assert metrics[0] == metrics[1]


def test_options_reach_the_split_and_columns_the_files(marked_csv: Path, tmp_path: Path) -> None:
    shares = ("--test-share", "0.15", "--valid-share", "0.05", "--max-item-share", "0.4")
    kept = ("--keep", "source", "--keep", "device", "--keep", "source")
    outcome = caged("data", "split", marked_csv, "-o", tmp_path / "s", "--kind", "intervened", *shares, *kept, "--json")
    assert outcome.code == 0, outcome.err
    printed = json.loads(outcome.out)
    assert printed.pop("folder") == str(tmp_path / "s")
    assert printed == json.loads((tmp_path / "s" / "manifest.json").read_text())
    options = {"test_share": 0.15, "valid_share": 0.05, "max_item_share": 0.4}
    assert printed["parameters"] == {"seed": 1, **options}
    assert printed["origin"] == {"source": str(marked_csv), "min_rating": None, "k_core": None, "merged_duplicates": 0}
    log = load(marked_csv, columns=Columns(keep=("source", "device"))).log
    assert log is not None
    made = split_log(log, "intervened", **options)
    for name, part in made.parts.items():
        written = pq.read_table(tmp_path / "s" / f"{name}.parquet")
        assert written.column_names == ["user_id", "item_id", "timestamp", "source", "device"]
        assert written.equals(part.to_arrow())


def test_filters_are_those_of_training(marked_csv: Path, tmp_path: Path) -> None:
    outcome = caged("data", "split", marked_csv, "-o", tmp_path / "split", "--k-core", "8", "--json")
    manifest = json.loads(outcome.out)
    assert manifest["origin"]["k_core"] == 8
    train(marked_csv, tmp_path / "run", "--set", "data.k_core=8", method="mostpop")
    dataset = dataset_of(tmp_path / "run")
    assert dataset["split_fingerprint"] == manifest["split_fingerprint"]
    assert dataset["items"] == manifest["items"] < 40


def test_the_table(marked_csv: Path, tmp_path: Path) -> None:
    outcome = caged("data", "split", marked_csv, "-o", tmp_path / "s", "--kind", "time")
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    lines = {line.split()[0]: line.split() for line in outcome.out.splitlines() if line.strip()}
    for part in ("train", "valid", "test"):
        assert lines[part][1] == str(manifest["interactions"][part])
        assert lines[part][2] == f"{manifest['item_gini'][part]:.4f}"
        assert manifest["fingerprints"][part].startswith(lines[part][3])
    assert f"users without training: {manifest['notes']['users_without_training']}" in outcome.err


BAD_SPLITS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "unknown kind": (["--kind", "tmie"], ("unknown kind of split 'tmie'", "did you mean 'time'?")),
    "share of another kind": (["--test-share", "0.3"], ("'random' has no test_share", "time, intervened")),
    "share too large": (["--kind", "time", "--test-share", "1.5"], ("test_share is 1.5", "between 0 and 1")),
    "nothing left": (["--kind", "time", "--test-share", "0.9", "--valid-share", "0.1"], ("leave nothing",)),
    "empty core": (["--k-core", "99"], ("leaves nothing",)),
    "negative seed": (["--seed", "-1"], ("--seed",)),
    "no times": (["--kind", "leave_last_out", "--timestamp-column", "when"], ("no column 'when'",)),
    "unknown column": (["--keep", "sauce"], ("no column 'sauce'", "did you mean 'source'?")),
    "kept ids": (["--keep", "item_id"], ("column 'item_id' cannot be kept",)),
    "filled folder": (["-o", "filled"], ("filled is not empty",)),
    "a file": (["-o", "filled/mine.txt"], ("is a file",)),
    "folder below a file": (["-o", "filled/mine.txt/s"], ("cannot write to output folder",)),
}


@pytest.mark.parametrize("case", BAD_SPLITS)
def test_bad_splits(case: str, marked_csv: Path, tmp_path: Path) -> None:
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "mine.txt").write_text("mine")
    options, words = BAD_SPLITS[case]
    refused_without_a_trace(tmp_path, ["data", "split", str(marked_csv), "-o", "split", *options], *words)


def test_bad_sources(released: Path, log_csv: Path, tmp_path: Path) -> None:
    split = ["data", "split", "-o", "split"]
    refused_without_a_trace(tmp_path, [*split, str(released)], "is split into train, test already")
    refused_without_a_trace(tmp_path, [*split, "nowhere.csv"], "nowhere.csv does not exist")
    refused_without_a_trace(
        tmp_path, [*split, str(log_csv), "--kind", "time"], "needs timestamps", "--timestamp-column"
    )


# ---------------------------------------------------------------- training with another split or validation


@pytest.mark.parametrize("by_folder", [False, True])
def test_validation_on_marked_traffic(by_folder: bool, marked_csv: Path, tmp_path: Path) -> None:
    data = marked_csv
    if by_folder:
        caged("data", "split", marked_csv, "-o", tmp_path / "split", "--keep", "source")
        data = tmp_path / "split"
    train(data, tmp_path / "usual", method="mostpop")
    outcome = train(
        data, tmp_path / "chosen", "--validate-on", "source=explore", "--set", "train.validation=yes", method="mostpop"
    )
    usual, chosen = dataset_of(tmp_path / "usual"), dataset_of(tmp_path / "chosen")
    assert chosen["fingerprints"]["test"] == usual["fingerprints"]["test"]
    held_out, candidates = chosen["interactions"]["valid"], usual["interactions"]["valid"]
    assert 0 < held_out < candidates
    assert chosen["interactions"]["train"] == usual["interactions"]["train"] + candidates - held_out
    assert chosen["split"]["parameters"]["validate_on"] == "source=explore"
    assert chosen["split"]["notes"]["validation_candidates"] == candidates
    assert f"validation: the {held_out} of {candidates} held-out interactions with source=explore" in outcome.err


def test_a_marked_run_can_be_evaluated_again(marked_csv: Path, tmp_path: Path) -> None:
    train(marked_csv, tmp_path / "run", "--validate-on", "source=explore", "--set", "data.split=time")
    before = json.loads((tmp_path / "run" / "metrics.json").read_text())["metrics"]
    outcome = caged("evaluate", tmp_path / "run", "--json")
    assert outcome.code == 0, outcome.err
    again = json.loads(outcome.out)["metrics"]
    assert again["recall@20"] == before["recall@20"]


BAD_TRAINING: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "no value": (["--validate-on", "source"], ("--validate-on 'source'", "COLUMN=VALUE")),
    "unknown value": (["--validate-on", "source=explor"], ("values found: 'explore', 'popular'", "did you mean")),
    "unknown column": (["--validate-on", "sauce=explore"], ("no column 'sauce'", "did you mean 'source'?")),
    "unknown split": (["--set", "data.split=tmie"], ("data.split is 'tmie'", "did you mean 'time'?")),
    "validation on paper": (["--protocol", "paper", "--validate-on", "source=explore"], ("'paper' fixes the split",)),
    "split on paper": (["--protocol", "paper", "--set", "data.split=time"], ("'paper' fixes the split",)),
}


@pytest.mark.parametrize("case", BAD_TRAINING)
def test_bad_training(case: str, marked_csv: Path, tmp_path: Path) -> None:
    options, words = BAD_TRAINING[case]
    refused_without_a_trace(tmp_path, training(str(marked_csv), *options), *words)


def test_a_folder_is_not_split_again(marked_csv: Path, tmp_path: Path) -> None:
    caged("data", "split", marked_csv, "-o", tmp_path / "split")
    arguments = training("split", "--set", "data.split=time")
    refused_without_a_trace(tmp_path, arguments, "data.split is 'time'", "split into train, valid, test already")
    assert "split/train.parquet" in contents(tmp_path)
