"""Intervals of metrics over the choice of users.

Up to `MOST_DRAWN` users a percentile bootstrap: every key is computed again from the sums over the users drawn. Above
that many users the normal approximation of the same functions.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from caged.data.ids import Array
from caged.evaluation.bootstrap import (
    DRAWS,
    MOST_DRAWN,
    SEED,
    Interval,
    normal_interval,
    percentile_interval,
    replicates,
)
from caged.evaluation.measure import Moments, Report, columns_of, moments_of
from caged.evaluation.metrics import MetricKey, OfSums, with_sums


def intervals(report: Report, *, draws: int = DRAWS, seed: int = SEED) -> dict[str, Interval]:
    """An interval for every key of the report that has one.

    The same draws serve every key, so that intervals of related keys belong together.
    """
    formulas = with_sums(report.keys)
    if len(report.users) > MOST_DRAWN or report.moments:
        found = {key: _normal(report, key, formula) for key, formula in formulas.items()}
    else:
        found = _bootstrap(report, formulas, draws, seed)
    return {key: interval for key, interval in found.items() if interval is not None}


def _bootstrap(
    report: Report, formulas: dict[MetricKey, OfSums], draws: int, seed: int
) -> dict[MetricKey, Interval | None]:
    users = len(report.users)
    if users == 0:
        return {}
    columns = _Columns()
    places = {
        key: [columns.place(part) for part in columns_of(key, formula, report)] for key, formula in formulas.items()
    }
    table = columns.table(users)
    sums = replicates(lambda counts: counts @ table, users, draws=draws, seed=seed)
    return {
        key: percentile_interval(formulas[key].value(sums[:, place], report.bucket_mass))
        for key, place in places.items()
    }


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


def _normal(report: Report, key: MetricKey, formula: OfSums) -> Interval | None:
    """Value +- 1.96 standard errors; for a mean that is s / sqrt(n), for the others it is linearised."""
    moments: Moments = report.moments[key] if report.moments else moments_of(key, formula, report)
    value = float(formula.value(moments.sums, report.bucket_mass))
    if math.isnan(value) or moments.users < 2:
        return None
    gradient = formula.gradient(moments.sums, report.bucket_mass)
    squares = float(gradient @ moments.products @ gradient)
    return normal_interval(value, math.sqrt(max(squares, 0.0) * moments.users / (moments.users - 1)))
