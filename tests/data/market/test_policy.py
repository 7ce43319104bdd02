"""The shop's model, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from caged.data.market import policy
from caged.data.market.config import stream
from caged.data.market.policy import ShortlistModel
from tests.data.market.small import SMALL


def dense_shortlists(clicks: np.ndarray, basis: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(3):
        basis = np.linalg.qr(clicks.T @ clicks @ basis)[0]
    scores = np.round(clicks @ basis @ basis.T, 9)
    scores[clicks > 0] = -np.inf
    items = np.arange(clicks.shape[1])
    return np.stack([np.lexsort((items, -row))[:length] for row in scores]), basis


@pytest.mark.parametrize("block_edges", [7, 1 << 18])
def test_model_equals_dense_algebra(block_edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two fits, the second starting from the first; users and items without clicks included."""
    monkeypatch.setattr(policy, "_BLOCK_EDGES", block_edges)
    model = ShortlistModel(SMALL, stream(1, "model"))
    basis = stream(1, "model").standard_normal((90, 8))
    rng = np.random.default_rng(0)
    clicks = np.zeros((120, 90))
    for _ in range(2):
        clicks[3:, :85] += rng.random((117, 85)) < 0.08
        clicks = np.minimum(clicks, 1.0)
        model.refit(np.flatnonzero(clicks), np.ones(90))
        expected, basis = dense_shortlists(clicks, basis, 20)
        assert model.shortlists is not None
        assert np.array_equal(model.shortlists, expected)
    assert model.shortlists[0].tolist() == list(range(20))  # no click, all scores equal: ties by row number


def test_model_survives_a_log_without_clicks() -> None:
    model = ShortlistModel(SMALL, stream(1, "model"))
    model.refit(np.empty(0, dtype=np.int64), np.ones(90))
    assert model.shortlists is not None
    assert (model.shortlists == np.arange(20)).all()
