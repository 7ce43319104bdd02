"""Positions within groups, without a loop over the groups."""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array


def ranks_within(groups: Array, *keys: Array) -> Array:
    """For each element its position 0..n-1 among the n elements of its group, ordered by the keys, first key first.

    >>> ranks_within(np.array([0, 1, 0, 0]), np.array([5, 1, 3, 5]), np.array([9, 0, 0, 8])).tolist()
    [2, 0, 0, 1]
    """
    order = np.lexsort((*reversed(keys), groups))
    ordered = groups[order]
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return ranks
