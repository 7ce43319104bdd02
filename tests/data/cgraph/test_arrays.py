"""Arrays that grow on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caged.data.cgraph.arrays import GrowingArray, mapped, user_blocks


@pytest.mark.parametrize("pieces", [[], [[]], [[1, 2], [], [3]], [list(range(1000))] * 3])
def test_what_is_appended_is_what_is_read(tmp_path: Path, pieces: list[list[int]]) -> None:
    with GrowingArray(tmp_path / "it.npy", np.int32) as array:
        for piece in pieces:
            array.append(np.array(piece, dtype=np.int64))
    wanted = np.array([value for piece in pieces for value in piece], dtype=np.int32)
    np.testing.assert_array_equal(np.load(tmp_path / "it.npy"), wanted)
    assert mapped(tmp_path / "it.npy").dtype == np.int32
    np.testing.assert_array_equal(mapped(tmp_path / "it.npy"), wanted)


def test_blocks_hold_every_user_once() -> None:
    offsets = np.concatenate(([0], np.cumsum(np.random.default_rng(0).integers(0, 9, 200))))
    blocks = user_blocks(offsets, 11)
    assert [first for first, _ in blocks] == [0, *(last for _, last in blocks[:-1])]
    assert blocks[-1][1] == 200
    assert all(offsets[last] - offsets[first] <= 11 or last == first + 1 for first, last in blocks)
