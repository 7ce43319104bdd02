"""Functions of sums over users, each with its gradient, by which an interval is linearised.

`sums` are (..., m): what the users add to m columns, of any number of selections of users; the gradient is that of one
selection. The last column counts the users behind the value and may be read or not. An undefined value is NaN.

Every value stays the same if all sums are doubled. By Euler's theorem the linearised contributions of the users then
add up to zero, so that their squares give the variance without centring.
"""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array


def ratio(sums: Array) -> Array:
    """The first sum over the second; with values and ones as columns, that is a mean.

    >>> ratio(np.array([[1.0, 4.0], [0.0, 0.0]])).tolist()
    [0.25, nan]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[..., 1] > 0, sums[..., 0] / sums[..., 1], np.nan)


def ratio_gradient(sums: Array) -> Array:
    gradient = np.zeros(len(sums))
    gradient[:2] = np.array([1.0, -float(ratio(sums))]) / sums[1]
    return gradient


def relative_gap(sums: Array) -> Array:
    """(A - B) / B, A and B the first two sums: a ratio of means where the columns are values of the same users.

    >>> float(relative_gap(np.array([6.0, 4.0, 2.0])))
    0.5
    """
    return ratio(sums) - 1


def disparity(sums: Array) -> Array:
    """|a - b| / (a + b) of the ratios a and b of the first and of the second two sums; equal to std / mean.

    >>> float(disparity(np.array([3.0, 4.0, 1.0, 4.0, 9.0])))
    0.5
    """
    return np.abs(signed_disparity(sums))


def signed_disparity(sums: Array) -> Array:
    """(a - b) / (a + b): `disparity` before its sign is dropped; positive where the first ratio is ahead.

    >>> float(signed_disparity(np.array([1.0, 4.0, 3.0, 4.0, 9.0])))
    -0.5
    """
    a, b = ratio(sums[..., :2]), ratio(sums[..., 2:4])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a + b > 0, (a - b) / (a + b), np.nan)


def signed_disparity_gradient(sums: Array) -> Array:
    a, b = float(ratio(sums[:2])), float(ratio(sums[2:4]))
    slope = 2 / (a + b) ** 2
    gradient = np.zeros(len(sums))
    gradient[:2], gradient[2:4] = slope * b * ratio_gradient(sums[:2]), -slope * a * ratio_gradient(sums[2:4])
    return gradient


def spread(sums: Array) -> Array:
    """Standard deviation over mean of the ratios of all sums but the last, two by two: `disparity` of several groups.

    A group whose ratio is undefined is left out; with fewer than two groups, or a mean of 0, so is the value.

    >>> spread(np.array([[3.0, 4.0, 1.0, 4.0, 0.0, 0.0, 9.0], [1.0, 4.0, 2.0, 4.0, 3.0, 4.0, 9.0]])).round(6).tolist()
    [0.5, 0.408248]
    """
    apart = deviations(sums)
    known = np.count_nonzero(~np.isnan(apart), axis=-1)
    return np.where(known > 1, np.sqrt(np.nansum(np.square(apart), axis=-1)), np.nan)


def spread_gradient(sums: Array) -> Array:
    apart, length = np.nan_to_num(deviations(sums)), float(spread(sums))
    if length == 0:  # at the bottom of a valley there is no slope
        return np.zeros(len(sums))
    return np.asarray(apart @ deviations_gradient(sums) / length)


def deviations(sums: Array) -> Array:
    """(..., groups): how far each ratio is from their mean, over that mean, scaled so that its length is `spread`.

    >>> deviations(np.array([3.0, 4.0, 1.0, 4.0, 9.0])).round(6).tolist()
    [0.353553, -0.353553]
    """
    rates, known, mean = _rates(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean > 0, (rates / mean - 1) / np.sqrt(known), np.nan)


def deviations_gradient(sums: Array) -> Array:
    """(groups, sums); zeros for groups that are left out."""
    rates, known, mean = _rates(sums)
    groups = len(rates)
    of_rates = np.zeros((groups, len(sums)))
    for group in np.flatnonzero(~np.isnan(rates)):
        of_group = slice(2 * group, 2 * group + 2)
        of_rates[group, of_group] = ratio_gradient(sums[of_group])
    by_rate = (np.eye(groups) / mean - (rates / (known * mean**2))[:, None]) / np.sqrt(known)
    return np.asarray(np.nan_to_num(by_rate) @ of_rates)


def _rates(sums: Array) -> tuple[Array, Array, Array]:
    """The ratio of each group, how many are defined, and their mean; the last two (..., 1)."""
    rates = ratio(sums[..., :-1].reshape(*sums.shape[:-1], -1, 2))
    known = np.count_nonzero(~np.isnan(rates), axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return rates, known, np.asarray(np.nansum(rates, axis=-1, keepdims=True) / known)


def divergence(sums: Array, mass: Array) -> Array:
    """sum_b p_b log2(p_b / q_b) of the shares of all sums but the last and of `mass`; 0 where both are spread alike.

    Undefined where a part without mass has a share.

    >>> divergence(np.array([[2.0, 0.0, 1.0], [1.0, 1.0, 1.0]]), np.array([5, 5])).tolist()
    [1.0, 0.0]
    """
    share, logs = _shares_and_logs(sums, mass)
    total = (share * logs).sum(axis=-1)
    return np.where(np.isfinite(total), total, np.nan)


def divergence_gradient(sums: Array, mass: Array) -> Array:
    logs = _shares_and_logs(sums, mass)[1]
    return np.append((logs - divergence(sums, mass)) / sums[:-1].sum(), 0.0)


def _shares_and_logs(sums: Array, mass: Array) -> tuple[Array, Array]:
    """p and log2(p/q), 0 where p is 0, infinite where there is no mass."""
    parts = sums[..., :-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = parts / parts.sum(axis=-1, keepdims=True)
        return share, np.where(share > 0, np.log2(share / (mass / max(mass.sum(), 1))), 0.0)
