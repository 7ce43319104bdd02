"""The second order of the pairs, block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caged.data.cgraph import by_item
from caged.data.cgraph.arrays import offsets_of
from caged.progress import unreported


@pytest.mark.parametrize("block", [1, 5, 1000])
def test_users_ascend_within_their_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(by_item, "BLOCK_PAIRS", block)
    held = np.random.default_rng(4).random((30, 12)) < 0.3
    held[4] = False
    held[:, 7] = False  # an item that nobody has
    items = np.nonzero(held)[1]
    offsets = by_item.write_by_item(
        offsets_of(held.sum(1)), items.astype(np.int32), held.sum(0), tmp_path / "it.npy", unreported, "train"
    )
    wanted_items, wanted_users = np.nonzero(held.T)
    np.testing.assert_array_equal(np.load(tmp_path / "it.npy"), wanted_users)
    np.testing.assert_array_equal(offsets, offsets_of(np.bincount(wanted_items, minlength=12)))


def test_a_part_without_pairs(tmp_path: Path) -> None:
    none = np.zeros(0, dtype=np.int32)
    offsets = by_item.write_by_item(
        np.zeros(4, np.int64), none, np.zeros(2, np.int64), tmp_path / "it.npy", unreported, "valid"
    )
    assert offsets.tolist() == [0, 0, 0]
    assert np.load(tmp_path / "it.npy").shape == (0,)
