"""Categories of the listed items, such as genres: how different they are within a list, and how far from the history.

The groups of a `Family` are the categories; an item may have one, several or none. An item without a category says
nothing and is left out; a user of whom nothing is left has NaN.

The examples have two categories; the items are of the first, of the second, of both, and of none.
"""

from __future__ import annotations

import numpy as np

from caged.data.families import NO_GROUP, Family
from caged.data.ids import Array
from caged.evaluation import bias


def intra_list_diversity(items: Array, family: Family, k: int) -> Array:
    """1 - the mean cosine of all pairs of listed items, each as the vector that has 1 for each of its categories.

    For items of one category that is the share of pairs whose categories differ. No pair is looked at: with s the sum
    of the n items as vectors of length 1, all pairs together have (|s|^2 - n) / (n (n - 1)). Undefined for n < 2.

    >>> family = Family("genre", ("a", "b"), np.array([[0, 1, 0, -1], [-1, -1, 1, -1]], dtype=np.int8))
    >>> intra_list_diversity(np.array([[0, 1, 3], [2, 0, -1], [3, 0, -1]]), family, 3).round(6).tolist()
    [1.0, 0.292893, nan]
    """
    rows, listed = bias.listed_pairs(items, k)
    number = family_counts(family)[listed]
    rows, listed, number = rows[number > 0], listed[number > 0], number[number > 0]
    sums = _amounts(rows, listed, 1 / np.sqrt(number), family, len(items))
    known = np.bincount(rows, minlength=len(items))
    alike = np.full(len(items), np.nan)
    np.divide(np.square(sums).sum(axis=1) - known, known * (known - 1), out=alike, where=known > 1)
    return np.asarray(np.clip(1 - alike, 0.0, 1.0))


def category_shares(rows: Array, items: Array, family: Family, count: int) -> Array:
    """Share of each category among the items of each of `count` rows, an item of several being split evenly.

    >>> family = Family("genre", ("a", "b"), np.array([[0, 1, 0, -1], [-1, -1, 1, -1]], dtype=np.int8))
    >>> category_shares(np.array([0, 0, 1, 2]), np.array([0, 2, 1, 3]), family, 3).tolist()
    [[0.75, 0.25], [0.0, 1.0], [nan, nan]]
    """
    number = family_counts(family)[items]
    rows, items, number = rows[number > 0], items[number > 0], number[number > 0]
    sums = _amounts(rows, items, 1 / number, family, count)
    shares = np.full(sums.shape, np.nan)
    known = np.bincount(rows, minlength=count)[:, None]
    np.divide(sums, known, out=shares, where=known > 0)
    return shares


def family_counts(family: Family) -> Array:
    """How many categories each item has."""
    return np.asarray(np.count_nonzero(family.labels != NO_GROUP, axis=0))


def _amounts(rows: Array, items: Array, weights: Array, family: Family, count: int) -> Array:
    """(count, categories): the weights of the items of each row, added to each of their categories."""
    size = len(family.groups)
    sums = np.zeros(count * size)
    for labels in family.labels:
        label = labels[items].astype(np.int64)
        has = label != NO_GROUP
        sums += np.bincount(rows[has] * size + label[has], weights=weights[has], minlength=count * size)
    return sums.reshape(count, size)
