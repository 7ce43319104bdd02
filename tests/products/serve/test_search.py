"""The best of many scores, against a sort of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from caged.products.serve.search import largest


@pytest.mark.parametrize("items", [1, 5, 64, 1000, 5003])
@pytest.mark.parametrize("k", [1, 3, 20, 100])
@pytest.mark.parametrize("values", [3, 10**6])
@pytest.mark.parametrize("hidden", [0.2, 0.99])
def test_it_is_a_sort(items: int, k: int, values: int, hidden: float) -> None:
    """With few different values nearly everything is a tie, also at the cut."""
    draw = np.random.default_rng(items * k + values)
    for _ in range(5):
        scores = draw.integers(0, values, items).astype(np.float32)
        scores[draw.random(items) < hidden] = -np.inf
        wanted = [row for row in np.lexsort((np.arange(items), -scores)) if np.isfinite(scores[row])][:k]
        other = draw.random(items).astype(np.float32)
        both = np.stack([other, scores], axis=1)
        found = largest(both, [k, k])
        assert [best.rows.tolist() for best in found] == [np.lexsort((np.arange(items), -other))[:k].tolist(), wanted]
        assert all(np.array_equal(both[best.rows, column], best.scores) for column, best in enumerate(found))


def test_signs_do_not_matter() -> None:
    """Nothing is both above and below zero: -0.0 equals 0.0."""
    scores = np.array([-0.0, -3e38, 1e-40, 0.0, -1e-40, 3e38, -0.0, -1.0, 2.0], dtype=np.float32)
    (best,) = largest(scores[:, None], [len(scores)])
    assert best.rows.tolist() == [5, 8, 2, 0, 3, 6, 4, 7, 1]
    assert np.array_equal(best.scores, scores[best.rows])


def test_nothing_is_left() -> None:
    nothing = np.full((100, 2), -np.inf, dtype=np.float32)
    assert [best.rows.tolist() for best in largest(nothing, [5, 5])] == [[], []]
    assert largest(nothing[:, :0], []) == []
    assert [best.rows.tolist() for best in largest(nothing, [0, 0])] == [[], []]
    assert [best.scores.tolist() for best in largest(nothing[:0], [5, 1])] == [[], []]


def test_everybody_gets_as_many_as_they_want() -> None:
    scores = np.random.default_rng(5).standard_normal((500, 4)).astype(np.float32)
    wanted = [np.argsort(-column)[:k].tolist() for column, k in zip(scores.T, (3, 0, 500, 7), strict=True)]
    assert [best.rows.tolist() for best in largest(scores, [3, 0, 500, 7])] == wanted
    assert [best.rows.tolist() for best in largest(np.asfortranarray(scores), [3, 0, 900, 7])] == wanted
