"""The best of many scores, exactly, and in the order that lists have everywhere."""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array

GROUP = 32  # columns whose maximum stands for them
SMALLEST = np.finfo(np.float32).min  # that is finite


def largest(scores: Array, k: int) -> list[Array]:
    """Columns of the k largest finite scores of every row: score descending, then the smaller column.

    >>> [row.tolist() for row in largest(np.array([[0.5, 0.9, -np.inf, 0.9, 0.5]], dtype=np.float32), 3)]
    [[1, 3, 0]]
    """
    rows, count = scores.shape
    k = min(k, count)
    if k <= 0 or rows == 0:
        return [np.empty(0, dtype=np.int64)] * rows
    places = np.sort(_reaching(scores, k))  # so that equal scores keep the order of their columns
    owner, columns = np.divmod(places, count)
    columns = columns[np.lexsort((-scores.ravel()[places], owner))]
    ends = np.cumsum(np.bincount(owner, minlength=rows)).tolist()
    return [columns[start : min(end, start + k)] for start, end in zip([0, *ends], ends, strict=False)]


def _reaching(scores: Array, k: int) -> Array:
    """Flat places of the k largest finite scores of every row and of few others, in any order.

    Of groups of columns, k have a maximum that reaches the k-th largest maximum, so at least k scores reach it, and
    whatever does is in such a group. Group g holds the columns g, g + G, g + 2G, ...: all maxima are one quick pass.
    """
    rows, count = scores.shape
    groups = count // GROUP
    if 2 * k > groups:
        return np.flatnonzero(scores >= _kth(scores, k))
    grouped = count - count % GROUP
    maxima = scores[:, :grouped].reshape(rows, GROUP, groups).max(axis=1)
    enough = _kth(maxima, k)
    owner, group = np.nonzero(maxima >= enough)
    members = (owner * count + group)[:, None] + groups * np.arange(GROUP)
    reached = members[scores.ravel()[members] >= enough[owner]]
    if grouped == count:
        return np.asarray(reached)
    owner, column = np.nonzero(scores[:, grouped:] >= enough)
    return np.concatenate((reached, owner * count + grouped + column))


def _kth(values: Array, k: int) -> Array:
    """(rows, 1): the k-th largest of each row, or the smallest finite number where fewer are finite."""
    place = values.shape[1] - k
    return np.asarray(np.maximum(np.partition(values, place, axis=1)[:, place : place + 1], SMALLEST))
