"""`caged explain`: the weights behind a user's vector, and what each history item adds to a score."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import caged as library
from tests.cli.invoke import caged, train
from tests.conftest import Pair, write_log

CAGED = (
    "--set",
    "train.epochs=3",
    "--set",
    "method.embedding_size=4",
    "--set",
    "method.eps=0.2",
    "--set",
    "method.lam=3",
)


@pytest.fixture(scope="module")
def run(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained") / "run"
    train(log_csv, folder, *CAGED, "--set", "train.learning_rate=0.05", method="caged")
    return folder


def explained(folder: Path, *arguments: str) -> dict:
    outcome = caged("explain", folder, "--device", "cpu", "--json", *arguments)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_the_history_with_both_weights(run: Path) -> None:
    model = library.load(run, device="cpu")
    train_part = model.artefact.train
    found = explained(run, "--user", "u07")
    assert found["user_id"] == "u07"
    user = int(train_part.user_ids.rows(pa.array(["u07"], pa.large_string()))[0])
    mine = train_part.users == user
    assert len(found["items"]) == mine.sum()
    assert [item["weight"] for item in found["items"]] == sorted((i["weight"] for i in found["items"]), reverse=True)
    by_id = {item["item_id"]: item for item in found["items"]}
    weights = model.artefact.method.weights.to_user
    for edge in mine.nonzero()[0]:
        row = train_part.items[edge]
        item = by_id[train_part.item_ids.values[int(row)].as_py()]
        degree = int(train_part.item_degrees[row])
        assert item["degree"] == degree
        assert (
            item["popularity_rank"]
            == 1 + (train_part.item_degrees > degree).sum() + (train_part.item_degrees[:row] == degree).sum()
        )
        assert item["lightgcn_weight"] == pytest.approx(1 / math.sqrt(mine.sum() * degree))
        assert item["weight"] == pytest.approx(weights[int(edge)].item())
        assert item["ratio"] == pytest.approx(item["weight"] / item["lightgcn_weight"])
    assert any(abs(item["ratio"] - 1) > 0.05 for item in found["items"])
    assert found["item_id"] is found["score"] is None


def test_contributions_and_the_own_part_add_up_to_the_score(run: Path) -> None:
    model = library.load(run, device="cpu")
    found = explained(run, "--user", "u07", "--item", "i39")
    [score] = [
        row["score"]
        for row in model.recommend(["u07"], k=40, exclude_seen=False).to_pylist()
        if row["item_id"] == "i39"
    ]
    assert found["score"] == pytest.approx(score, abs=1e-5)
    contributions = [item["contribution"] for item in found["items"]]
    assert contributions == sorted(contributions, reverse=True)
    assert found["own"] + sum(contributions) == pytest.approx(score, abs=1e-5)
    encoder = model.artefact.method.encoder
    own = torch.dot(encoder.users[7], model.artefact.method.scorer().vectors.items[39]) / 4  # a_0 of three layers
    assert found["own"] == pytest.approx(own.item(), abs=1e-5)


@pytest.mark.parametrize("kept", ["0", "0.5"])
def test_shares_of_a_cosine_are_divided_by_lengths(log_csv: Path, tmp_path: Path, kept: str) -> None:
    options = ("train.epochs=2", "method.embedding_size=4", f"method.item_lengths={kept}")
    train(log_csv, tmp_path / "run", *(word for option in options for word in ("--set", option)), method="softmax")
    found = explained(tmp_path / "run", "--user", "u07", "--item", "i39")
    method = library.load(tmp_path / "run", device="cpu").artefact.method
    encoder, ranked = method.encoder, method.scorer().vectors
    assert found["score"] == pytest.approx(torch.dot(ranked.users[7], ranked.items[39]).item(), abs=1e-6)
    own = torch.dot(encoder.users[7], ranked.items[39]) / 4 / encoder().users[7].norm()
    assert found["own"] == pytest.approx(own.item(), abs=1e-5)


def test_lightgcn_leans_on_its_own_weights(finished_run: Path) -> None:
    found = explained(finished_run, "--user", "u00")
    assert {item["ratio"] for item in found["items"]} == {1.0}


def test_the_table_is_for_people(run: Path) -> None:
    outcome = caged("explain", run, "--user", "u07", "--item", "i39", "-n", "3", "--device", "cpu")
    title, header, *rows = outcome.out.strip().splitlines()
    assert title.startswith("history of user u07")
    assert "score of i39" in title
    assert "contribution" in header
    assert "title" not in header
    assert len(rows) == 3
    assert "--rows 0 shows all" in outcome.err
    everything = caged("explain", run, "--user", "u07", "-n", "0", "--device", "cpu")
    assert len(everything.out.strip().splitlines()) == 2 + len(explained(run, "--user", "u07")["items"])


def test_titles_of_an_item_table(pairs: list[Pair], tmp_path: Path) -> None:
    data = tmp_path / "shop"
    write_log(data / "train.csv", [pair for number, pair in enumerate(pairs) if number % 5])
    write_log(data / "test.csv", pairs[::5])
    ids = sorted({item for _, item in pairs})
    pq.write_table(pa.table({"item_id": ids, "title": [f"The {item}" for item in ids]}), data / "items.parquet")
    train(data, tmp_path / "run", *CAGED, method="caged")
    found = explained(tmp_path / "run", "--user", "u01", "--item", "i03")
    assert all(item["title"] == f"The {item['item_id']}" for item in found["items"])
    assert found["item_title"] == "The i03"
    shown = caged("explain", tmp_path / "run", "--user", "u01", "--device", "cpu").out
    assert "The i" in shown
    shutil.rmtree(data)  # titles are a courtesy
    assert explained(tmp_path / "run", "--user", "u01")["items"][0]["title"] is None


def test_bad_input(run: Path, log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "popular", method="mostpop")
    train(log_csv, tmp_path / "flat", "--set", "method.layers=0")
    cases = {
        ("--user", "nobody"): (run, ("user 'nobody' does not occur", "'u00'")),
        ("--user", "u07", "--item", "nothing"): (run, ("item 'nothing' does not occur", "'i00'")),
        ("--user", "u00", "--rows", "-1"): (run, ("--rows is -1",)),
        ("--user", "u00"): (tmp_path / "popular", ("'mostpop' aggregates nothing", "caged or lightgcn")),
        ("--user", "u01"): (tmp_path / "flat", ("method.layers=0",)),
        ("--user", "u02"): (tmp_path / "absent", ("holds no trained model",)),
    }
    for arguments, (folder, words) in cases.items():
        outcome = caged("explain", folder, *arguments, "--device", "cpu")
        assert outcome.code == 2, arguments
        for word in words:
            assert word in outcome.error


def test_integer_ids(tmp_path: Path, pairs: list[Pair]) -> None:
    log = write_log(tmp_path / "log.csv", [(str(int(user[1:])), str(int(item[1:]))) for user, item in pairs])
    train(log, tmp_path / "run")
    assert explained(tmp_path / "run", "--user", "7", "--item", "12")["item_id"] == 12
    outcome = caged("explain", tmp_path / "run", "--user", "ann", "--device", "cpu")
    assert "user 'ann' does not occur" in outcome.error


def test_what_was_taken_out_afterwards_is_no_part_of_the_score(run: Path, tmp_path: Path) -> None:
    assert caged("adjust", run, "--strength", "0.5", "-k", "5", "-o", tmp_path / "adjusted").code == 0
    asked = ("--user", "u07", "--item", "i03", "--json", "--device", "cpu")
    before, after = (caged("explain", folder, *asked) for folder in (run, tmp_path / "adjusted"))
    assert json.loads(before.out)["score"] == json.loads(after.out)["score"]
    assert "popularity was taken out" in after.err
    assert "popularity was taken out" not in before.err
