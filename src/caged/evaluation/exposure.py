"""How lists spread over the catalogue, and parity between popular and niche items: one value for all lists.

x_i is the number of lists with item i in their first k places, X the sum of all x_i, N the size of the catalogue.
Undefined values (X = 0, an empty group, a zero denominator) are NaN.
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


def gini(exposed: Array) -> float:
    """sum_j (2j - N - 1) x_(j) / (N X), x sorted ascending, j = 1..N; 0 = all items equally often.

    >>> gini(np.array([2, 0, 0, 2]))
    0.5
    """
    count, total = len(exposed), int(exposed.sum())
    if total == 0:
        return _UNDEFINED
    weights = 2 * np.arange(1, count + 1) - count - 1
    return int((weights * np.sort(exposed)).sum()) / (count * total)


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


def exposure_kl(bucket_exposure: Array, bucket_mass: Array) -> float:
    """sum_b p_b log2(p_b / q_b), p and q the shares of exposure and of training interactions per popularity bucket.

    0 = the lists repeat the training distribution. NaN where a bucket is exposed but holds no training interaction;
    that takes fewer than ten items with interactions beside items without.

    >>> exposure_kl(np.array([1, 0]), np.array([1, 1]))
    1.0
    """
    if bucket_exposure.sum() == 0 or bucket_mass.sum() == 0:
        return _UNDEFINED
    exposed = bucket_exposure > 0
    if bool((bucket_mass[exposed] == 0).any()):
        return _UNDEFINED
    p = bucket_exposure[exposed] / bucket_exposure.sum()
    q = bucket_mass[exposed] / bucket_mass.sum()
    return float((p * np.log2(p / q)).sum())


def exposure_rate(listed_unseen: Array, eligible: Array) -> float:
    """Listed unseen items of a group over the eligible pairs, both summed over the users with a list.

    Eligible for a user: the items of the group that the user has not seen (train, and valid when testing).

    >>> exposure_rate(np.array([1, 0]), np.array([2, 2]))
    0.25
    """
    return _pooled(listed_unseen, eligible)


def pooled_recall(hits: Array, relevant: Array) -> float:
    """Hits of a group over the relevant items of the group, both summed over users.

    >>> pooled_recall(np.array([1, 0]), np.array([1, 3]))
    0.25
    """
    return _pooled(hits, relevant)


def pop_rsp(popular_rate: float, niche_rate: float) -> float:
    """Ranking-based statistical parity: std / mean of the two exposure rates = |a - b| / (a + b); 0 = parity.

    >>> pop_rsp(0.75, 0.25)
    0.5
    """
    return _disparity(popular_rate, niche_rate)


def pop_reo(popular_recall: float, niche_recall: float) -> float:
    """Ranking-based equal opportunity: std / mean of the two pooled recalls = |a - b| / (a + b); 0 = parity.

    >>> pop_reo(0.0, 0.1)
    1.0
    """
    return _disparity(popular_recall, niche_recall)


def _pooled(numerators: Array, denominators: Array) -> float:
    total = int(denominators.sum())
    return int(numerators.sum()) / total if total else _UNDEFINED


def _disparity(a: float, b: float) -> float:
    return abs(a - b) / (a + b) if a + b > 0 else _UNDEFINED  # also NaN where either rate is
