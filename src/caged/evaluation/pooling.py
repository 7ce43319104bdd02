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
