"""The bootstrap: intervals over the choice of users, from users drawn with replacement.

A draw is a row of counts, how often each user came. The sums of many draws are therefore one matrix product, and draws
with the same number of users and the same seed are the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from caged.data.ids import Array

DRAWS, SEED = 1000, 0
MOST_DRAWN = 200_000  # users; above it the normal approximation is as good
LEVELS = (0.025, 0.975)
NORMAL_QUANTILE = 1.959964
LARGEST_UNDEFINED_SHARE = 0.05  # of the draws; above it there is no interval
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


def percentile_interval(replicated: Array) -> Interval | None:
    """The middle 95% of the defined replicates, or None where too many are undefined."""
    defined = replicated[~np.isnan(replicated)]
    if len(replicated) - len(defined) > LARGEST_UNDEFINED_SHARE * len(replicated) or len(defined) == 0:
        return None
    low, high = np.quantile(defined, LEVELS)
    return Interval(float(low), float(high), "bootstrap")


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
