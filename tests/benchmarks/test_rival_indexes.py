"""What turns products into distances."""

from __future__ import annotations

import numpy as np

from benchmarks.rival_indexes import lengthened, with_zero


def test_the_nearest_is_the_one_with_the_largest_product() -> None:
    draw = np.random.default_rng(1)
    table = (draw.standard_normal((200, 6)) * draw.random((200, 1))).astype(np.float32)
    queries = draw.standard_normal((5, 6)).astype(np.float32)
    stored, asked = lengthened(table), with_zero(queries)
    assert np.allclose(np.linalg.norm(stored, axis=1), np.linalg.norm(table, axis=1).max(), atol=1e-5)
    distances = np.linalg.norm(asked[:, None] - stored[None], axis=2)
    assert (distances.argmin(axis=1) == (queries @ table.T).argmax(axis=1)).all()
