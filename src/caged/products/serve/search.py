"""The best of many scores, exactly, and in the order that lists have everywhere."""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array

GROUP = 32  # columns whose maximum stands for them
SMALLEST = float(np.finfo(np.float32).min)  # that is finite


def largest(scores: Array, k: int) -> Array:
    """Rows of the k largest finite scores of one user: score descending, then the smaller row number.

    The k-th largest score is found among the members of the groups with the k largest maxima; whatever reaches it is
    sorted. Group g holds the places g, g + G, g + 2G, ..., so that all maxima are one vectorised pass.

    >>> largest(np.array([0.5, 0.9, -np.inf, 0.9, 0.5], dtype=np.float32), 3).tolist()
    [1, 3, 0]
    """
    k = min(k, len(scores))
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    reached = np.flatnonzero(scores >= max(_kth(scores, k), SMALLEST))
    order = np.lexsort((reached, -scores[reached]))
    return np.asarray(reached[order[:k]])


def _kth(scores: Array, k: int) -> float:
    groups = len(scores) // GROUP
    if k * 2 > groups:
        return float(np.partition(scores, len(scores) - k)[len(scores) - k])
    table = scores[: GROUP * groups].reshape(GROUP, groups)
    best = np.argpartition(table.max(axis=0), groups - k)[groups - k :]
    members = np.concatenate((table[:, best].ravel(), scores[GROUP * groups :]))
    return float(np.partition(members, len(members) - k)[len(members) - k])
