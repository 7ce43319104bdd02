"""`caged export`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.cli.invoke import caged, refused, train


def test_vectors_reproduce_the_scores_of_recommend(finished_run: Path, tmp_path: Path) -> None:
    outcome = caged("export", "vectors", finished_run, "-o", tmp_path / "vectors", "--device", "cpu")
    assert (outcome.code, outcome.out) == (0, "")
    assert "60 user vectors and 40 item vectors of 4 numbers" in outcome.err
    users, items = (pq.read_table(tmp_path / "vectors" / f"{kind}.parquet").to_pylist() for kind in ("users", "items"))
    vectors = {row["user_id"]: row["vector"] for row in users}
    of_items = {row["item_id"]: row["vector"] for row in items}
    asked = caged("recommend", finished_run, "--users", "u33,u02", "-k", "7", "--json", "--device", "cpu")
    for row in json.loads(asked.out):
        score = np.float32(vectors[row["user_id"]]) @ np.float32(of_items[row["item_id"]])
        assert score == pytest.approx(row["score"], abs=1e-6)


def test_json_and_refusals(finished_run: Path, log_csv: Path, tmp_path: Path) -> None:
    said = caged("export", "vectors", finished_run, "-o", tmp_path / "vectors", "--json")
    assert json.loads(said.out) == {"folder": str(tmp_path / "vectors"), "users": 60, "items": 40, "width": 4}
    refused(caged("export", "vectors", finished_run, "-o", tmp_path / "vectors"), "is not empty")
    train(log_csv, tmp_path / "ease", method="ease")
    refused(caged("export", "vectors", tmp_path / "ease", "-o", tmp_path / "none"), "ease has no vectors")
    assert not (tmp_path / "none").exists()
