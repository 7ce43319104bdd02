"""Intervals of metrics over the choice of users.

Up to `MOST_DRAWN` users a percentile bootstrap: every key is computed again from the sums over the users drawn; for
few users the percentiles are those of `levels_for`. Above that many users the normal approximation of the same
functions. A key whose users hardly differ has no interval: who is drawn says nothing about users that were never seen.
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
    corrected_interval,
    length_interval,
    levels_for,
    normal_interval,
    percentile_interval,
    replicates,
)
from caged.evaluation.formulas import Vector
from caged.evaluation.measure import Moments, Report, columns_of, moments_of
from caged.evaluation.metrics import MetricKey, OfSums, with_sums

LEAST_DIFFERING = 5  # users
FEW_DIFFER = f"fewer than {LEAST_DIFFERING} of the users behind the value differ in it"
OFTEN_UNDEFINED = "more than 5% of the draws leave it undefined"


def intervals(report: Report, *, draws: int = DRAWS, seed: int = SEED) -> dict[str, Interval]:
    """An interval for every key of the report that has one.

    The same draws serve every key, so that intervals of related keys belong together.
    """
    return {key: one for key, one in found_intervals(report, draws, seed).items() if isinstance(one, Interval)}


def found_intervals(report: Report, draws: int = DRAWS, seed: int = SEED) -> dict[str, Interval | str]:
    """For every key that is defined and follows from sums over users: its interval, or why there is none."""
    formulas = with_sums(report.keys)
    if len(report.users) > MOST_DRAWN or report.moments:
        normal = {key: _normal(report, key, formula) for key, formula in formulas.items()}
        return {key: one for key, one in normal.items() if one is not None}
    found = _bootstrap(report, formulas, draws, seed)
    return {key: one for key, one in found.items() if one is not None}


def _bootstrap(
    report: Report, formulas: dict[MetricKey, OfSums], draws: int, seed: int
) -> dict[MetricKey, Interval | str | None]:
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
        key: _of_draws(formulas[key], table[:, place], sums[:, place], report.bucket_mass)
        for key, place in places.items()
    }


def _of_draws(formula: OfSums, added: Array, drawn: Array, mass: Array) -> Interval | str | None:
    """From what each user adds and the sums of each draw; None where the value is undefined."""
    formula, everybody = formula.fitted(added.shape[1]), added.sum(axis=0)
    resampled = formula.signed or formula.value
    value = float(resampled(everybody, mass))
    if math.isnan(value):
        return None
    influence = added @ formula.gradient(everybody, mass)
    if _differing(influence[added[:, -1] > 0]) < LEAST_DIFFERING:
        return FEW_DIFFER
    levels = levels_for(influence, int(everybody[-1]))
    if formula.vector is not None:
        vector = formula.vector.of_sums(everybody)
        known = ~np.isnan(vector)
        found = length_interval(formula.vector.of_sums(drawn)[:, known], vector[known], levels)
    elif formula.biased:
        found = corrected_interval(resampled(drawn, mass), value, levels)
    else:
        found = percentile_interval(resampled(drawn, mass), levels)
    return OFTEN_UNDEFINED if found is None else _allowed(formula, found)


def _differing(influence: Array) -> int:
    """Users whose influence is not that of most."""
    if len(influence) == 0:
        return 0
    rounding = 1e-12 * float(np.abs(influence).max())
    return int(np.count_nonzero(np.abs(influence - np.median(influence)) > rounding))


def _allowed(formula: OfSums, interval: Interval) -> Interval:
    """Of a value without its sign: folded at zero. Of a biased one: what lies below zero is cut off."""
    low, high, method = interval
    if formula.biased:
        return Interval(max(low, 0.0), max(high, 0.0), method)
    if formula.signed is None:
        return interval
    ends = sorted((abs(low), abs(high)))
    return Interval(0.0 if low <= 0 <= high else ends[0], ends[1], method)


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
    formula = formula.fitted(len(moments.sums))
    value = float((formula.signed or formula.value)(moments.sums, report.bucket_mass))
    if math.isnan(value) or moments.users < 2:
        return None
    if formula.vector is not None:
        return _normal_length(formula.vector, moments)
    gradient = formula.gradient(moments.sums, report.bucket_mass)
    squares = float(gradient @ moments.products @ gradient)
    return _allowed(formula, normal_interval(value, math.sqrt(max(squares, 0.0) * moments.users / (moments.users - 1))))


def _normal_length(formula: Vector, moments: Moments) -> Interval | None:
    """As with few users, but the draws are those of a normal distribution."""
    vector, gradient = formula.of_sums(moments.sums), formula.gradient(moments.sums)
    known = ~np.isnan(vector)
    if not vector[known].any():
        return None
    covariance = (gradient @ moments.products @ gradient.T)[np.ix_(known, known)]
    covariance *= moments.users / (moments.users - 1)
    generator = np.random.default_rng(SEED)
    drawn = generator.multivariate_normal(vector[known], covariance, DRAWS, check_valid="ignore", method="eigh")
    found = length_interval(drawn, vector[known])
    return None if found is None else found._replace(method="normal")
