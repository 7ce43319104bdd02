"""The k-core on disk, in rounds."""

from __future__ import annotations

import numpy as np
import pytest

from caged.data import Interactions
from caged.data.cgraph import filtering
from caged.data.cgraph.filtering import FilteredPairs, StoredPairs, core_of, count_ascending
from caged.data.filters import k_core
from caged.progress import unreported


@pytest.mark.parametrize("block", [3, 1000])
def test_the_core_is_that_of_the_log_in_memory(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(filtering, "BLOCK_PAIRS", block)
    users, items = np.nonzero(np.random.default_rng(7).random((40, 30)) < 0.15)
    log = Interactions.from_ids(users, items)
    stored = StoredPairs(
        log.users.astype(np.int32), log.items.astype(np.int32), None, log.user_degrees, log.item_degrees, len(log)
    )
    left = FilteredPairs(stored, core_of(stored, 4, "the log", unreported))
    wanted = k_core(log, 4, 4)
    assert 0 < len(wanted) < len(log)
    assert len(left) == len(wanted)
    blocks = list(left.blocks())
    np.testing.assert_array_equal(np.concatenate([one.users for one in blocks]), wanted.users)
    np.testing.assert_array_equal(np.concatenate([one.items for one in blocks]), wanted.items)
    np.testing.assert_array_equal(left.user_degrees, wanted.user_degrees)


def test_counts_touch_only_their_own_rows() -> None:
    degrees = np.zeros(6, dtype=np.int64)
    count_ascending(degrees, np.array([2, 2, 4]))
    count_ascending(degrees, np.array([], dtype=np.int64))
    assert degrees.tolist() == [0, 0, 2, 0, 1, 0]
