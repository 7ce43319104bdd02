"""The spread from sums is that of the scores themselves."""

from __future__ import annotations

import numpy as np
import pytest

from caged.products.serve import moments
from caged.products.serve.moments import Moments


@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_it_is_the_standard_deviation_of_the_scores(shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "AT_ONCE", 64)
    draw = np.random.default_rng(1)
    vectors = (draw.standard_normal((301, 5)) + shift).astype(np.float32)
    person, had = draw.standard_normal(5).astype(np.float32), np.array([3, 50, 300])
    scores = np.delete(vectors.astype(np.float64) @ person, had)
    found = Moments.of(vectors).spread(person, vectors[had])
    assert found.dtype == np.float32
    assert found == pytest.approx(scores.std(), rel=1e-6)


def test_nothing_is_left() -> None:
    vectors = np.ones((2, 3), dtype=np.float32)
    assert Moments.of(vectors).spread(vectors[0], vectors) == 0
    assert Moments.of(vectors).spread(vectors[0], vectors[:1]) == 0
