"""Items like others are those that a comparison with every item gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from caged.products.serve import ServedModel
from caged.products.serve.nearest import nearest
from tests.products.serve.small_model import small_model

COUNT = 300
ROWS, COUNTS = [7, 0, 299, 7], [5, 1, 299, 2]


def catalogue() -> ServedModel:
    return small_model(pa.table({"item_id": np.arange(COUNT), "degree": np.ones(COUNT, dtype=np.int64)}))


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_vectors_are_compared_by_cosine(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caged.products.serve.search.SCORES_AT_ONCE", at_once * COUNT)
    monkeypatch.setattr("caged.products.serve.search.TOGETHER", 1)
    model = catalogue()
    vectors = model.item_vectors.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    for row, count, best in zip(ROWS, COUNTS, nearest(model, ROWS, COUNTS), strict=True):
        cosines = vectors @ vectors[row] / lengths / lengths[row]
        order = np.argsort(-cosines)
        wanted = order[order != row][:count]
        assert best.rows.tolist() == wanted.tolist()
        np.testing.assert_allclose(best.scores, cosines[wanted], atol=1e-6)


def test_an_item_without_a_direction_is_like_nothing() -> None:
    model = catalogue()
    model.arrays["item_vectors"][[3, 9]] = 0
    nothing, other = nearest(model, [3, 4], [5, COUNT])
    assert nothing.rows.tolist() == [0, 1, 2, 4, 5]
    assert np.array_equal(nothing.scores, np.zeros(5))
    assert other.scores[other.rows == 9].tolist() == [0]


def test_weights_between_items_are_taken_as_they_are() -> None:
    model = catalogue()
    weights = np.random.default_rng(1).standard_normal((COUNT, COUNT)).astype(np.float32)
    kind = replace(model.manifest, kind="item_weights")
    of_weights = replace(model, manifest=kind, arrays={"item_weights": weights})
    for row, count, best in zip(ROWS, COUNTS, nearest(of_weights, ROWS, COUNTS), strict=True):
        order = np.argsort(-weights[row])
        assert best.rows.tolist() == order[order != row][:count].tolist()
        assert np.array_equal(best.scores, weights[row, best.rows])


def test_neighbours_are_those_with_a_similarity() -> None:
    model = catalogue()
    draw = np.random.default_rng(2)
    neighbours = np.stack([draw.choice(COUNT, 4, replace=False) for _ in range(COUNT)])
    similarities = np.sort(draw.random((COUNT, 4)).astype(np.float32))[:, ::-1].copy()
    similarities[:, 2:] = 0  # fewer than there is room for
    kind = replace(model.manifest, kind="neighbours")
    arrays = {"neighbours": neighbours, "similarities": similarities}
    for row, best in zip(ROWS, nearest(replace(model, manifest=kind, arrays=arrays), ROWS, [10] * 4), strict=True):
        wanted = [item for item in neighbours[row, :2].tolist() if item != row]
        assert best.rows.tolist() == wanted
        assert best.scores.tolist() == [similarities[row, place] for place in (0, 1) if neighbours[row, place] != row]
