"""Popularity of the listed items: one value per user with a list, NaN for the others.

`items` is the padded table of `Lists` (-1 behind the last item); of it the first k places count, and means divide by
the number l of items that are there. Degrees d come from training; H(u) is the profile, the training items of a user.

The examples use four items with degrees 4, 2, 1, 0, of which only the first is popular, and two lists.
"""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import SECTIONS


def arp(items: Array, degrees: Array, k: int) -> Array:
    """Average recommendation popularity: the mean of d_i over the list.

    >>> arp(np.array([[0, 2, 3], [1, -1, -1]]), np.array([4, 2, 1, 0]), 2).tolist()
    [2.5, 2.0]
    """
    return _list_mean(items, degrees, k)


def profile_popularity(users: Array, items: Array, degrees: Array, user_count: int) -> Array:
    """The mean of d_i over the profile, from training pairs; NaN without a profile.

    >>> users, items, degrees = np.array([0, 0, 2]), np.array([0, 1, 0]), np.array([2, 1])
    >>> profile_popularity(users, items, degrees, 3).tolist()
    [1.5, nan, 2.0]
    """
    total = np.bincount(users, weights=degrees[items], minlength=user_count)
    return _divide(total, np.bincount(users, minlength=user_count))


def popularity_lift(listed: Array, profile: Array) -> Array:
    """(a - b) / b per user, a = mean d over the list (`arp`), b = mean d over the profile.

    >>> popularity_lift(np.array([2.5, 2.0]), np.array([2.0, np.nan])).tolist()
    [0.25, nan]
    """
    return (listed - profile) / profile


def tail_share(items: Array, niche: Array, k: int) -> Array:
    """Share of the list that is niche (also known as APLT).

    >>> tail_share(np.array([[0, 2, 3], [1, -1, -1]]), np.array([False, True, True, True]), 2).tolist()
    [0.5, 1.0]
    """
    return _list_mean(items, niche, k)


def aclt(items: Array, niche: Array, k: int) -> Array:
    """Number of niche items in the list; k * tail_share where the list is full.

    >>> aclt(np.array([[0, 2, 3], [1, -1, -1]]), np.array([False, True, True, True]), 3).tolist()
    [2.0, 1.0]
    """
    total = _list_sum(items, niche, k)
    return np.where(list_lengths(items, k) > 0, total, np.nan)


def novelty(items: Array, degrees: Array, trained_users: int, k: int) -> Array:
    """Mean of -log2(max(d_i, 1) / M) over the list, in bits; M = users with a training interaction.

    >>> novelty(np.array([[0, 2, 3], [1, -1, -1]]), np.array([4, 2, 1, 0]), 4, 2).tolist()
    [1.0, 1.0]
    """
    if trained_users == 0:
        return np.full(len(items), np.nan)
    return _list_mean(items, -np.log2(np.maximum(degrees, 1) / trained_users), k)


def list_sections(items: Array, section: Array, k: int) -> Array:
    """Shares of head, middle and tail in the list: (n, 3).

    >>> list_sections(np.array([[0, 2, 3, 1], [1, -1, -1, -1]]), np.array([0, 1, 2, 2]), 4).tolist()
    [[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]]
    """
    return section_shares(*listed_pairs(items, k), section, len(items))


def section_shares(rows: Array, items: Array, section: Array, count: int) -> Array:
    """Shares of head, middle and tail among the items of each of `count` rows; NaN for a row without items.

    >>> section_shares(np.array([0, 0, 2]), np.array([0, 3, 3]), np.array([0, 1, 2, 2]), 3).tolist()
    [[0.5, 0.0, 0.5], [nan, nan, nan], [0.0, 0.0, 1.0]]
    """
    counts = label_counts(rows, section[items], count, len(SECTIONS))
    return _divide(counts, counts.sum(axis=1, keepdims=True))


def upd(profile: Array, listed: Array) -> Array:
    """User popularity deviation: `jensen_shannon` of the shares of head, middle and tail in profile and list.

    >>> upd(np.array([[0.5, 0.5, 0.0]]), np.array([[0.0, 2 / 3, 1 / 3]])).round(6).tolist()
    [0.425284]
    """
    return jensen_shannon(profile, listed)


def jensen_shannon(one: Array, other: Array) -> Array:
    """Divergence (base 2, not its root) of each row of shares from that of the other; NaN where either is.

    KL(p, m) / 2 + KL(q, m) / 2 with m = (p + q) / 2; 0 log 0 = 0.

    >>> jensen_shannon(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]])).tolist()
    [1.0, 0.0]
    """
    middle = (one + other) / 2
    return (_kl(one, middle) + _kl(other, middle)) / 2


def pru(owners: Array, degrees: Array, positions: Array, count: int, k: int) -> Array:
    """Popularity-rank correlation over a user's relevant items: -Spearman(d_i, position), positive = popular first.

    One entry per relevant pair: the row `owners` of its user among `count`, the degree of the item, and its rank in
    the list (any number above k where it is not in the first k; all of these count as k + 1). Average ranks for ties.
    NaN where a user has fewer than two relevant items, or all degrees or all positions are equal.

    >>> pru(np.array([0, 0, 0, 1]), np.array([9, 5, 1, 7]), np.array([1, 3, 2, 1]), 2, 3).tolist()
    [0.5, nan]
    """
    centred_degree = _centred_ranks(owners, degrees, count)
    centred_position = _centred_ranks(owners, np.minimum(positions, k + 1), count)

    def per_user(values: Array) -> Array:
        return np.bincount(owners, weights=values, minlength=count)

    # Centred ranks are multiples of 1/2, so these sums are exact and equal values give exactly zero.
    covariance = per_user(centred_degree * centred_position)
    variances = per_user(centred_degree**2) * per_user(centred_position**2)
    return _divide(-covariance, np.sqrt(variances))


def popular_reach(rows: Array, positions: Array, count: int, k: int) -> Array:
    """Per row, where the k-th most popular item stands that the row lacks, counted from 0 in order of popularity.

    One entry per item that a row has: its row among `count`, and its position in the order of popularity.

    >>> popular_reach(np.array([0, 0, 1]), np.array([5, 1, 0]), 3, 2).tolist()
    [2, 2, 1]
    """
    order = np.lexsort((positions, rows))
    row, position = rows[order], positions[order]
    sizes = np.bincount(row, minlength=count)
    had_before = np.arange(len(row)) - (np.cumsum(sizes) - sizes)[row]
    # An item moves the k-th one by a place if fewer than k that the row lacks are more popular than it.
    moves = position - had_before < k
    return k - 1 + np.bincount(row[moves], minlength=count)


def list_lengths(items: Array, k: int) -> Array:
    """How many of the first k places are taken.

    >>> list_lengths(np.array([[0, 2, 3], [1, -1, -1]]), 2).tolist()
    [2, 1]
    """
    top = items[:, :k]
    if top.size and top[:, -1].min() >= 0:  # padding is on the right, so all lists are full
        return np.full(len(top), top.shape[1])
    return np.asarray(np.count_nonzero(top >= 0, axis=1))


def listed_pairs(items: Array, k: int) -> tuple[Array, Array]:
    """(row, item) of everything listed in the first k places, in order.

    >>> [part.tolist() for part in listed_pairs(np.array([[0, 2, 3], [1, -1, -1]]), 2)]
    [[0, 0, 1], [0, 2, 1]]
    """
    top = items[:, :k]
    listed = top >= 0
    if listed.all():
        return np.repeat(np.arange(len(top)), top.shape[1]), top.ravel()
    rows, columns = np.nonzero(listed)
    return rows, items[rows, columns]


def label_counts(rows: Array, labels: Array, count: int, label_count: int) -> Array:
    """Table (count, label_count): how often each label occurs in each row.

    >>> label_counts(np.array([0, 0, 1]), np.array([1, 1, 0]), 2, 3).tolist()
    [[0, 2, 0], [1, 0, 0]]
    """
    cells = rows.astype(np.int64) * label_count + labels
    return np.bincount(cells, minlength=count * label_count).reshape(count, label_count)


def _list_sum(items: Array, values: Array, k: int) -> Array:
    padded = np.append(values.astype(np.float64), 0.0)  # the padding index -1 picks this last zero
    return np.asarray(np.einsum("ij->i", padded.take(items[:, :k])))  # over rows this short, faster than `sum`


def _list_mean(items: Array, values: Array, k: int) -> Array:
    return _divide(_list_sum(items, values, k), list_lengths(items, k))


def _divide(numerator: Array, denominator: Array) -> Array:
    """The quotient, NaN where the denominator is zero."""
    values = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=values, where=denominator > 0)
    return values


def _kl(p: Array, q: Array) -> Array:
    ratio = np.ones_like(p)
    np.divide(p, q, out=ratio, where=p != 0)  # also true for NaN, which then stays NaN
    return np.asarray((p * np.log2(ratio)).sum(axis=1))


def _centred_ranks(owners: Array, values: Array, count: int) -> Array:
    """Rank of each value among those of its owner, ties at their average, minus the mean rank."""
    if len(owners) == 0:
        return np.zeros(0)
    order = np.lexsort((values, owners))
    owner, value = owners[order], values[order]
    opens_run = np.ones(len(order), dtype=bool)
    opens_run[1:] = (owner[1:] != owner[:-1]) | (value[1:] != value[:-1])
    first = np.flatnonzero(opens_run)
    last = np.append(first[1:], len(order)) - 1
    sizes = np.bincount(owners, minlength=count)
    centre = np.cumsum(sizes) - (sizes + 1) / 2  # mean position of an owner's entries in `order`
    ranks = np.empty(len(order))
    ranks[order] = ((first + last) / 2)[np.cumsum(opens_run) - 1] - centre[owner]
    return ranks
