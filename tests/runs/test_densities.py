"""Inverse item popularity, and its densities as a record keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from caged.runs.densities import BINS, Moment, inverse_item_popularity, recorded_densities
from tests.cli.invoke import train

USERS = np.array([0, 1, 1])


def test_inverse_item_popularity_of_lightgcn_is_the_inverse_root_of_the_item_degree() -> None:
    """Users 0 and 1 have items {0} and {0, 1}: weights 1/sqrt(1*2), 1/sqrt(2*2), 1/sqrt(2*1)."""
    weights = np.array([2**-0.5, 0.5, 2**-0.5])
    found = inverse_item_popularity(weights, USERS, 2)
    np.testing.assert_allclose(found, [2**-0.5, 2**-0.5, 1.0])


def test_a_density_counts_what_lies_within_the_axis_of_the_paper() -> None:
    weights = np.array([0.105, 0.105 * 2**-0.5, 3.0])  # 0.105, 0.105 and 3 sqrt 2
    (found,) = recorded_densities([Moment("after", 3, weights)], USERS, 2)
    assert (found["name"], found["updates"]) == ("after", 3)
    assert found["mean"] == pytest.approx((0.21 + 3 * 2**0.5) / 3, abs=1e-5)
    assert found["above"] == pytest.approx(1 / 3, abs=1e-5)
    assert len(found["values"]) == BINS
    assert found["values"][10] == pytest.approx(2 / 3 * BINS, abs=1e-4)
    assert sum(found["values"]) / BINS == pytest.approx(1 - found["above"], abs=1e-4)


def test_a_record_holds_them_where_weights_were_saved(log_csv: Path, tmp_path: Path) -> None:
    options = ("train.epochs=4", "train.batch_size=64", "method.embedding_size=4", "method.without=update_condition")
    chosen = tuple(part for value in options for part in ("--set", value))
    train(log_csv, tmp_path / "run", *chosen, "--save-weights", "--record", tmp_path / "results", method="caged")
    (record,) = (tmp_path / "results").rglob("seed1.json")
    before, *_, after = json.loads(record.read_text())["densities"]
    assert (before["name"], before["updates"], after["name"]) == ("before", 0, "after")
    assert before["above"] == 0.0
    assert sum(before["values"]) / BINS == pytest.approx(1, abs=1e-3)
    assert before["mean"] != after["mean"]
    weights = json.loads((tmp_path / "run" / "weights" / "densities.json").read_text())
    assert weights[0] == before
