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
        assert [row.tolist() for row in largest(np.stack([other, scores]), k)] == [
            np.lexsort((np.arange(items), -other))[:k].tolist(),
            wanted,
        ]


def test_nothing_is_left() -> None:
    nothing = np.full((2, 100), -np.inf, dtype=np.float32)
    assert [row.tolist() for row in largest(nothing, 5)] == [[], []]
    assert largest(nothing[:0], 5) == []
    assert [row.tolist() for row in largest(nothing, 0)] == [[], []]
