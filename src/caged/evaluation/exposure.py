"""How lists spread over the catalogue: one value for all lists.

x_i is the number of lists with item i in their first k places, X the sum of all x_i, N the size of the catalogue.
Undefined values (X = 0, an empty group) are NaN.
"""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array
from caged.evaluation.bias import list_lengths, listed_pairs

_UNDEFINED = float("nan")


def exposure(items: Array, item_count: int, k: int) -> Array:
    """x_i for every item of the catalogue, from the padded table of `Lists`.

    >>> exposure(np.array([[0, 2, 1], [0, -1, -1]]), 4, 2).tolist()
    [2, 0, 1, 0]
    """
    return np.bincount(listed_pairs(items, k)[1], minlength=item_count)


def discounted_exposure(items: Array, item_count: int, k: int) -> Array:
    """The sum of 1/log2(place + 1) over the lists that name the item in their first k.

    >>> discounted_exposure(np.array([[0, 2, 1], [0, -1, -1]]), 4, 2).round(6).tolist()
    [2.0, 0.0, 0.63093, 0.0]
    """
    top = items[:, :k]
    weights = np.broadcast_to(1.0 / np.log2(np.arange(2, top.shape[1] + 2)), top.shape)
    return _weighted(top, weights, item_count)


def unit_exposure(items: Array, item_count: int, k: int) -> Array:
    """The sum of the lists as vectors of length 1: over those that name the item, 1/sqrt(items in the list).

    >>> unit_exposure(np.array([[0, 2, 1, 3], [0, -1, -1, -1]]), 4, 4).tolist()
    [1.5, 0.5, 0.5, 0.5]
    """
    top = items[:, :k]
    lengths = np.maximum(list_lengths(items, k), 1)
    return _weighted(top, np.broadcast_to(1.0 / np.sqrt(lengths)[:, None], top.shape), item_count)


def _weighted(top: Array, weights: Array, item_count: int) -> Array:
    listed = top >= 0
    if listed.all():
        return np.bincount(top.ravel(), weights=weights.ravel(), minlength=item_count)
    return np.bincount(top[listed], weights=weights[listed], minlength=item_count)


def personalisation(unit: Array, lists: int) -> float:
    """1 - the mean cosine of all pairs of lists, from their sum s as unit vectors (`unit_exposure`).

    All pairs with a list and itself add up to |s|^2, and every list with itself to 1, so no pair is looked at:
    1 - (sum_i s_i^2 - n) / (n (n - 1)) for n lists. The cosine of two lists is the number of items in common over
    the root of the product of their lengths, hence over k where lists are full. Undefined for one list.

    >>> personalisation(np.array([1.5, 0.5, 0.5, 0.5]), 2)  # one item in common, of 4 and of 1
    0.5
    """
    if lists < 2:
        return _UNDEFINED
    alike = (float(np.square(unit).sum()) - lists) / (lists * (lists - 1))
    return min(max(1.0 - alike, 0.0), 1.0)


def coverage(exposed: Array, members: Array | None = None) -> float:
    """Share of the items (of a group, where its mask is given) with x_i > 0.

    >>> coverage(np.array([2, 0, 1, 0]))
    0.5
    >>> coverage(np.array([2, 0, 1, 0]), np.array([True, False, True, False]))
    1.0
    """
    group = exposed if members is None else exposed[members]
    if exposed.sum() == 0 or len(group) == 0:
        return _UNDEFINED
    return int(np.count_nonzero(group)) / len(group)


def entropy(exposed: Array) -> float:
    """-sum (x_i / X) log2(x_i / X) / log2 N; 1 = all items equally often.

    >>> entropy(np.array([2, 0, 0, 2]))
    0.5
    """
    total = exposed.sum()
    if total == 0 or len(exposed) < 2:
        return _UNDEFINED
    share = exposed[exposed > 0] / total
    # The maximum with 0.0 turns the -0.0 of a single exposed item into 0.0.
    return max(float(-(share * np.log2(share)).sum() / np.log2(len(exposed))), 0.0)
