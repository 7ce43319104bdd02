"""Accuracy of lists: one value per user, from which places of the list were hits.

Every function takes `hits`, a boolean table (n, width) whose column r - 1 says whether the item at rank r is relevant,
`relevant`, the number R of relevant items of each user, and the cut-off k. Places beyond a short list are misses.
A user without relevant items has no accuracy: the value is NaN. To restrict a metric to a group of items, restrict
`hits` and `relevant` to it; ranks stay those of the full list.

The examples are one user with four relevant items and hits at ranks 1 and 4.
"""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array
from caged.errors import ConfigError

PERSISTENCE = 0.8  # of the reader of rbp: how likely the next item is looked at
IDEAL_DEPTH = 100  # ndcg_hits100 looks for the hits of its ideal in this many places


def recall(hits: Array, relevant: Array, k: int) -> Array:
    """Hits in the first k over R. Not capped: with R > k it cannot reach 1.

    >>> recall(np.array([[True, False, False, True]]), np.array([4]), 3).tolist()
    [0.25]
    """
    return _over(_hit_counts(hits, k), relevant, relevant)


def precision(hits: Array, relevant: Array, k: int) -> Array:
    """Hits in the first k over k, also for lists shorter than k.

    >>> precision(np.array([[True, False, False, True]]), np.array([4]), 5).tolist()
    [0.4]
    """
    return _over(_hit_counts(hits, k), k, relevant)


def f1(hits: Array, relevant: Array, k: int) -> Array:
    """2PR / (P + R) of a user's precision and recall, which is 2 hits / (k + R); 0 without a hit.

    >>> f1(np.array([[True, False, False, True]]), np.array([4]), 4).tolist()
    [0.5]
    """
    return _over(2 * _hit_counts(hits, k), k + relevant, relevant)


def r_precision(hits: Array, relevant: Array, k: int) -> Array:
    """Hits in the first R places over R. Places beyond k, or beyond the list, are misses: with R > k it is the recall.

    >>> r_precision(np.array([[True, False, False, True]]), np.array([2]), 4).tolist()
    [0.5]
    """
    top = hits[:, :k]
    counted = top & (np.arange(top.shape[1]) < relevant[:, None])
    return _over(_hit_counts(counted, k), relevant, relevant)


def hit(hits: Array, relevant: Array, k: int) -> Array:
    """1 if one of the first k is relevant, else 0.

    >>> hit(np.array([[True, False, False, True], [False] * 4]), np.array([4, 1]), 3).tolist()
    [1.0, 0.0]
    """
    return _over(_hit_counts(hits, k) > 0, 1, relevant)


def mrr(hits: Array, relevant: Array, k: int) -> Array:
    """1 over the rank of the first hit if that is at most k, else 0.

    >>> mrr(np.array([[False, True, False, True], [False] * 4]), np.array([4, 1]), 3).tolist()
    [0.5, 0.0]
    """
    top = hits[:, :k]
    if top.shape[1] == 0:
        return _over(np.zeros(len(hits)), 1, relevant)
    return _over(_hit_counts(hits, k) > 0, top.argmax(axis=1) + 1, relevant)


def average_precision(hits: Array, relevant: Array, k: int) -> Array:
    """`map` of one user: the sum over hits at ranks r <= k of (hits in the first r) / r, over min(k, R).

    >>> average_precision(np.array([[True, False, False, True]]), np.array([4]), 4).tolist()
    [0.375]
    """
    top = hits[:, :k]
    precision_at = np.cumsum(top, axis=1) / np.arange(1, top.shape[1] + 1)
    return _over((top * precision_at).sum(axis=1), np.minimum(relevant, k), relevant)


def rank_biased_precision(hits: Array, relevant: Array, k: int) -> Array:
    """(1 - p) sum_{r <= k} h_r p^(r - 1) with p = `PERSISTENCE`.

    What lies beyond k could add up to p^k, the residual; it is left out, so a list of k hits has 1 - p^k.

    >>> rank_biased_precision(np.array([[True, False, False, True]]), np.array([4]), 4).round(6).tolist()
    [0.3024]
    """
    top = hits[:, :k]
    weights = (1 - PERSISTENCE) * PERSISTENCE ** np.arange(top.shape[1])
    return _over(np.einsum("ij,j->i", top.astype(np.float64), weights), 1, relevant)


def serendipity(unexpected_hits: Array, relevant: Array, k: int) -> Array:
    """Hits in the first k that are not among the k most popular items new to the user, over k; their number is given.

    >>> serendipity(np.array([1, 0, 0]), np.array([4, 2, 0]), 4).tolist()
    [0.25, 0.0, nan]
    """
    return _over(unexpected_hits, k, relevant)


def ndcg(hits: Array, relevant: Array, k: int) -> Array:
    """DCG over the best DCG that R relevant items allow, with the discount D(r) = 1 / log2(r + 1).

    sum_{r <= k} h_r D(r) / sum_{r <= min(k, R)} D(r); a short list does not shorten the ideal.

    >>> ndcg(np.array([[True, False, False, True]]), np.array([4]), 3).round(6).tolist()
    [0.469279]
    """
    return _over(_dcg(hits, k), _ideal_dcg(relevant, k), relevant)


def ndcg_hits100(hits: Array, relevant: Array, k: int) -> Array:
    """NDCG whose ideal knows only the hits that the list itself finds; for comparison with published tables.

    sum_{r <= k} h_r D(r) / sum_{r <= min(k, F)} D(r) with F = hits in the first 100 places of the stored list,
    0 if F = 0, k <= 100. It rewards a list that finds little: never below `ndcg`, and one hit at rank 1 scores 1.

    >>> ndcg_hits100(np.array([[True, False, False, True]]), np.array([4]), 3).round(6).tolist()
    [0.613147]
    """
    if k > IDEAL_DEPTH:
        raise ConfigError(f"ndcg_hits100 has k = {k}; allowed are 1..{IDEAL_DEPTH}, use ndcg for longer lists")
    found = _hit_counts(hits, IDEAL_DEPTH)
    # Without a hit the DCG is 0, whatever it is divided by.
    return _over(_dcg(hits, k), _ideal_dcg(np.maximum(found, 1), k), relevant)


def _over(numerator: Array, denominator: Array | int, relevant: Array) -> Array:
    """The quotient for users with a relevant item, NaN for the others."""
    values = np.full(len(relevant), np.nan)
    np.divide(numerator, denominator, out=values, where=relevant > 0)
    return values


def _hit_counts(hits: Array, k: int) -> Array:
    # Over rows this short, einsum takes a third of the time of count_nonzero and sum.
    return np.asarray(np.einsum("ij->i", hits[:, :k].astype(np.int32)).astype(np.int64))


def _discounts(places: int) -> Array:
    return 1.0 / np.log2(np.arange(2, places + 2))


def _dcg(hits: Array, k: int) -> Array:
    top = hits[:, :k]
    return np.asarray(np.einsum("ij,j->i", top.astype(np.float64), _discounts(top.shape[1])))


def _ideal_dcg(relevant: Array, k: int) -> Array:
    best = np.concatenate(([0.0], np.cumsum(_discounts(k))))
    return best[np.minimum(relevant, k)]
