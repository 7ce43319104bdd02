"""The pairs of a part once more, by item: the transposition of a sparse matrix that need not fit into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from caged.data.cgraph.arrays import offsets_of, user_blocks
from caged.data.ids import Array
from caged.progress import ProgressReport

BLOCK_PAIRS = 1 << 24


def write_by_item(
    user_offsets: Array, items: Array, item_degrees: Array, path: Path, progress: ProgressReport, what: str
) -> Array:
    """Write the users of every item, ascending, as a `.npy` file; the offsets of the items.

    Each block of users is transposed in memory by a counting sort. Its piece of every item then goes behind those of
    the blocks before, so that a block passes over the file once, from front to back.
    """
    offsets = offsets_of(item_degrees)
    if len(items) == 0:
        np.save(path, np.empty(0, dtype=np.int32))
        return offsets
    by_item = np.lib.format.open_memmap(path, mode="w+", dtype=np.int32, shape=(len(items),))
    free = offsets[:-1].copy()  # the next place of every item
    for first, last in user_blocks(user_offsets, BLOCK_PAIRS):
        begin, end = int(user_offsets[first]), int(user_offsets[last])
        progress(f"sorting by item: {what}", end / len(items))
        block = sparse.csr_matrix(
            (np.ones(end - begin, dtype=np.int8), items[begin:end], user_offsets[first : last + 1] - begin),
            shape=(last - first, len(item_degrees)),
        ).tocsc()
        counts = np.diff(block.indptr).astype(np.int64)
        place = np.repeat(free - block.indptr[:-1], counts) + np.arange(end - begin)
        by_item[place] = block.indices + np.int32(first)
        free += counts
    by_item.flush()
    return offsets
