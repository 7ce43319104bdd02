"""The bootstrap: intervals over the choice of users, from users drawn with replacement.

A draw is a row of counts, how often each user came. The sums of many draws are therefore one matrix product, and draws
with the same number of users and the same seed are the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from caged.data.ids import Array

DRAWS, SEED = 1000, 0
MOST_DRAWN = 200_000  # users; above it the normal approximation is as good
LEVELS = (0.025, 0.975)
NORMAL_QUANTILE = 1.959964
LARGEST_UNDEFINED_SHARE = 0.05  # of the draws; above it there is no interval
FEW_USERS = 500  # below it the middle 95% of the draws is too narrow and not skewed enough
BLOCK_COUNTS = 1 << 22  # counts of users that a product of draws has at a time


class Interval(NamedTuple):
    """95%, over the choice of users; says nothing about seeds."""

    low: float
    high: float
    method: Literal["bootstrap", "normal"]


def replicates(statistics: Callable[[Array], Array], users: int, *, draws: int = DRAWS, seed: int = SEED) -> Array:
    """What `statistics` makes of every draw of `users`, a row per draw.

    It gets how often each user came, (some of the draws, users), and gives a row for each of these draws.

    >>> values = np.array([1.0, 1.0, 4.0])
    >>> replicates(lambda counts: counts @ values / 3, 3, draws=4).tolist()
    [2.0, 1.0, 1.0, 3.0]
    """
    return np.concatenate([statistics(counts) for counts in _drawn_counts(users, draws, seed)])


def percentile_interval(replicated: Array, levels: tuple[float, float] = LEVELS) -> Interval | None:
    """The middle 95% of the defined replicates, or what lies between `levels`; None where too many are undefined."""
    defined = _defined(replicated)
    if defined is None:
        return None
    low, high = np.quantile(defined, levels)
    return Interval(float(low), float(high), "bootstrap")


def corrected_interval(replicated: Array, value: float, levels: tuple[float, float] = LEVELS) -> Interval | None:
    """For a value that any noise pushes away from its truth, such as a divergence.

    The draws lie above the value by the bias that the value has itself, so both are taken off: twice from the
    percentiles of the draws, once from the value +- its standard error. It reaches as far as the further of the two.
    """
    defined = _defined(replicated)
    if defined is None:
        return None
    bias, reach = float(defined.mean()) - value, NORMAL_QUANTILE * float(defined.std())
    low, high = (float(bound) - 2 * bias for bound in np.quantile(defined, levels))
    return Interval(min(low, value - bias - reach), max(high, value - bias + reach), "bootstrap")


def length_interval(drawn: Array, vector: Array, levels: tuple[float, float] = LEVELS) -> Interval | None:
    """For the length of a vector, such as a spread: near zero noise in any direction makes it longer.

    Each draw says how long the true vector is if its noise is what was observed: the draw's noise along the vector is
    added, and what lies across it is taken off the square. Too many undefined draws: None.

    >>> draws = np.array([[0.8, 0.1], [1.0, -0.1], [1.2, 0.0]])
    >>> length_interval(draws, np.array([1.0, 0.0]), (0.0, 1.0))[:2]
    (0.794987437106..., 1.2)
    """
    undefined = np.isnan(drawn).any(axis=1)
    if undefined.mean() > LARGEST_UNDEFINED_SHARE or undefined.all():
        return None
    length = float(np.linalg.norm(vector))
    noise = drawn[~undefined] - vector
    along = noise @ (vector / length)
    across = np.square(noise).sum(axis=1) - np.square(along)
    lengths = along + np.sqrt(np.maximum(length**2 - across, 0.0))
    low, high = np.quantile(lengths, levels)
    return Interval(max(float(low), 0.0), max(float(high), 0.0), "bootstrap")


def levels_for(influence: Array, users: int) -> tuple[float, float]:
    """Which quantiles of the draws bound the interval, from what each user does to the value.

    For few users the outer ones of Student's t instead of the normal, moved to the side to which the users are skewed
    (Efron's BCa with the bias and the acceleration of a mean); else 2.5% and 97.5%.

    >>> levels_for(np.zeros(600), 600)
    (0.025, 0.975)
    >>> [round(level, 4) for level in levels_for(np.array([-1.0, 1.0] * 5), 10)]
    [0.0086, 0.9914]
    """
    if not 1 < users < FEW_USERS:
        return LEVELS
    squares = float(np.square(influence).sum())
    acceleration = float((influence**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0
    reach = math.sqrt(users / (users - 1)) * _student_quantile(users - 1)
    return _skewed_level(-reach, acceleration), _skewed_level(reach, acceleration)


def _skewed_level(quantile: float, acceleration: float) -> float:
    moved = acceleration + quantile
    room = 1 - acceleration * moved
    return NormalDist().cdf(acceleration + moved / room) if room > 0 else float(quantile > 0)


def _student_quantile(degrees: int) -> float:
    """97.5%, from the expansion around the normal one; right to 0.01 from four degrees of freedom on."""
    z = NORMAL_QUANTILE
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def _defined(replicated: Array) -> Array | None:
    defined = replicated[~np.isnan(replicated)]
    too_few = len(replicated) - len(defined) > LARGEST_UNDEFINED_SHARE * len(replicated) or len(defined) == 0
    return None if too_few else defined


def normal_interval(value: float, error: float) -> Interval:
    """The value +- 1.96 standard errors."""
    reach = NORMAL_QUANTILE * error
    return Interval(value - reach, value + reach, "normal")


def _drawn_counts(users: int, draws: int, seed: int) -> Iterator[Array]:
    """(some draws, users), in the order of `rng.integers(0, n, size=n)`."""
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK_COUNTS // max(users, 1))
    for start in range(0, draws, block):
        counts = np.empty((min(block, draws - start), users))
        for row in counts:
            row[:] = np.bincount(generator.integers(0, users, size=users), minlength=users)
        yield counts
