"""Intervals of metrics over the choice of users.

Up to `MOST_DRAWN` users a percentile bootstrap: users are drawn with replacement, and every key is computed again from
the sums over the drawn users (`estimates`). A draw is a row of counts, how often each user came; all sums of many draws
are therefore one matrix product. Above that many users the normal approximation of the same functions.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.evaluation.estimates import WITHOUT_INTERVAL, Estimate, estimate_of
from caged.evaluation.keys import MetricKey
from caged.evaluation.measure import Moments, Report, columns_of, moments_of

MOST_DRAWN = 200_000  # users
LEVELS = (0.025, 0.975)
NORMAL_QUANTILE = 1.959964
LARGEST_UNDEFINED_SHARE = 0.05  # of the draws; above it a key gets no interval
BLOCK_COUNTS = 1 << 22  # counts of users that a product of draws has at a time


class Interval(NamedTuple):
    """95%, over the choice of users; says nothing about seeds."""

    low: float
    high: float
    method: Literal["bootstrap", "normal"]


def intervals(report: Report, *, draws: int = 1000, seed: int = 0) -> dict[str, Interval]:
    """An interval for every key of the report that has one.

    The same draws serve every key, so that intervals of related keys belong together. `coverage`, `gini` and `entropy`
    get none: drawing users with replacement loses lists, which shifts these systematically.
    """
    estimates = {
        key: estimate_of(MetricKey.parse(key), report.bucket_mass)
        for key in report.metrics
        if MetricKey.parse(key).name not in WITHOUT_INTERVAL
    }
    if len(report.users) > MOST_DRAWN or report.moments:
        found = {key: _normal(estimate, _moments(report, key, estimate)) for key, estimate in estimates.items()}
    else:
        found = _bootstrap(report, estimates, draws, seed)
    return {key: interval for key, interval in found.items() if interval is not None}


def drawn_counts(users: int, draws: int, seed: int) -> Iterator[Array]:
    """How often each of `users` is drawn, (block of draws, users), in the order of `rng.integers(0, n, size=n)`."""
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK_COUNTS // max(users, 1))
    for start in range(0, draws, block):
        counts = np.empty((min(block, draws - start), users))
        for row in counts:
            row[:] = np.bincount(generator.integers(0, users, size=users), minlength=users)
        yield counts


def percentile_interval(replicates: Array) -> Interval | None:
    """The middle 95% of the defined replicates, or None where too many are undefined."""
    defined = replicates[~np.isnan(replicates)]
    if len(replicates) - len(defined) > LARGEST_UNDEFINED_SHARE * len(replicates) or len(defined) == 0:
        return None
    low, high = np.quantile(defined, LEVELS)
    return Interval(float(low), float(high), "bootstrap")


def _bootstrap(report: Report, estimates: dict[str, Estimate], draws: int, seed: int) -> dict[str, Interval | None]:
    users = len(report.users)
    if users == 0:
        return {}
    columns = _Columns()
    places = {
        key: [columns.place(part) for part in columns_of(estimate, report)] for key, estimate in estimates.items()
    }
    table = columns.table(users)
    sums = np.concatenate([counts @ table for counts in drawn_counts(users, draws, seed)])
    return {key: percentile_interval(estimates[key].value(sums[:, place])) for key, place in places.items()}


class _Columns:
    """Distinct columns: keys share many of them, above all which users have a value."""

    def __init__(self) -> None:
        self._place: dict[bytes, int] = {}
        self._columns: list[Array] = []

    def place(self, values: Array) -> int:
        column = np.ascontiguousarray(values, dtype=np.float64)
        place = self._place.setdefault(hashlib.sha256(column.data).digest(), len(self._columns))
        if place == len(self._columns):
            self._columns.append(column)
        return place

    def table(self, rows: int) -> Array:
        return np.stack(self._columns, axis=1) if self._columns else np.empty((rows, 0))


def _moments(report: Report, key: str, estimate: Estimate) -> Moments:
    return report.moments[key] if report.moments else moments_of(estimate, report)


def _normal(estimate: Estimate, moments: Moments) -> Interval | None:
    """Value +- 1.96 standard errors; for a mean that is s / sqrt(n), for the others it is linearised."""
    value = float(estimate.value(moments.sums))
    if math.isnan(value) or moments.users < 2:
        return None
    gradient = estimate.gradient(moments.sums)
    squares = float(gradient @ moments.products @ gradient)
    reach = NORMAL_QUANTILE * math.sqrt(max(squares, 0.0) * moments.users / (moments.users - 1))
    return Interval(value - reach, value + reach, "normal")
