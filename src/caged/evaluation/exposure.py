"""How lists spread over the catalogue: one value for all lists.

x_i is the number of lists with item i in their first k places, X the sum of all x_i, N the size of the catalogue.
Undefined values (X = 0, an empty group) are NaN.
"""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array
from caged.evaluation.bias import listed_pairs

_UNDEFINED = float("nan")


def exposure(items: Array, item_count: int, k: int) -> Array:
    """x_i for every item of the catalogue, from the padded table of `Lists`.

    >>> exposure(np.array([[0, 2, 1], [0, -1, -1]]), 4, 2).tolist()
    [2, 0, 1, 0]
    """
    return np.bincount(listed_pairs(items, k)[1], minlength=item_count)


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
