"""Is a difference more than chance? Tests over users, tests over seeds, effect sizes, and Holm's correction.

Two runs of one seed are compared user by user: d_u = b_u - a_u over the n users whose value is defined in both.
Several seeds are compared run by run, because users of the same run are not independent of what training did.
Undefined values go in and come out as NaN. SciPy is imported where a p-value is asked for, not before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.errors import ConfigError
from caged.evaluation.bootstrap import (
    DRAWS,
    MOST_DRAWN,
    SEED,
    Interval,
    levels_for,
    normal_interval,
    percentile_interval,
    replicates,
)

LEVEL = 0.05  # an adjusted p below this is called significant
LEAST_RUNS = 5  # per method; fewer seeds give no test
_NOTHING = 12  # decimals: differences below are rounding, not a change
_UNDEFINED = float("nan")


class PairedTest(NamedTuple):
    """Two runs compared user by user; positive differences mean that the second one is higher."""

    users: int  # with a value in both
    mean_difference: float
    relative_change: float  # percent of the first mean
    t: float
    p_t: float
    w_plus: float
    w_minus: float
    z: float
    p_wilcoxon: float
    d_z: float
    rank_biserial: float


class SeedTest(NamedTuple):
    """Two methods compared run by run."""

    mean_difference: float
    t: float
    df: float
    p: float
    hedges_g: float


# -------------------------------------------------------------------- over users


def paired_test(a: Array, b: Array) -> PairedTest:
    """Student's t and Wilcoxon's signed ranks on d_u = b_u - a_u, two-sided, with their effect sizes.

    t = mean(d) / (s / sqrt n) with n - 1 degrees of freedom. Wilcoxon after Pratt: zeros are ranked, then dropped (most
    differences of recall are zero); normal approximation with tie correction, without continuity correction. Effects:
    d_z = mean(d) / s, rank-biserial (W+ - W-) / (W+ + W-), and 100 mean(d) / mean(a) in percent. |d| below 1e-12 is
    zero. All d zero: p = 1 and no effect size; n < 2: undefined.

    >>> found = paired_test(np.array([0.0, 0.5, 0.2]), np.array([0.1, 0.5, 0.4]))
    >>> found.users, round(found.mean_difference, 6), round(found.t, 6), found.w_plus, found.w_minus
    (3, 0.1, 1.732051, 5.0, 0.0)
    """
    a, b = _both_defined(a, b)
    d = _differences(a, b)
    t, p_t, d_z = _student(d)
    return PairedTest(
        users=len(d),
        mean_difference=_mean(d),
        relative_change=_quotient(100 * _mean(d), _mean(a)),
        t=t,
        p_t=p_t,
        **_wilcoxon(d),
        d_z=d_z,
    )


def paired_interval(a: Array, b: Array, *, draws: int = DRAWS, seed: int = SEED) -> Interval | None:
    """95% interval of the mean difference b - a over the choice of users; None where there is none.

    The users are resampled `draws` times (percentile bootstrap), NaN wherever either value is; over 200,000 users the
    normal approximation is used. It says nothing about what another training seed would give.

    >>> paired_interval(np.array([0.0, 0.5, 0.25]), np.array([0.25, 0.75, 0.5]))
    Interval(low=0.25, high=0.25, method='bootstrap')
    """
    return paired_intervals(_as_floats(a)[:, None], _as_floats(b)[:, None], draws=draws, seed=seed)[0]


def paired_intervals(a: Array, b: Array, *, draws: int = DRAWS, seed: int = SEED) -> list[Interval | None]:
    """`paired_interval` of each column of two tables (users, metrics); the same draws serve every column."""
    if a.shape != b.shape:
        raise ConfigError(f"paired values have the shapes {a.shape} and {b.shape}; they need a row per user in both")
    differences = np.round(b - a, _NOTHING)
    defined = ~np.isnan(differences)
    if len(differences) == 0:
        return [None] * differences.shape[1]
    if len(differences) > MOST_DRAWN:
        return [_normal_interval(differences[defined[:, column], column]) for column in range(differences.shape[1])]
    weighted, present = np.where(defined, differences, 0.0), defined.astype(np.float64)

    def means(counts: Array) -> Array:
        total = counts @ present
        return np.asarray(np.divide(counts @ weighted, total, out=np.full(total.shape, np.nan), where=total > 0))

    drawn = replicates(means, len(differences), draws=draws, seed=seed)
    known = [_centred(differences[rows, column]) for column, rows in enumerate(defined.T)]
    return [
        percentile_interval(column, levels_for(values, len(values)))
        for column, values in zip(drawn.T, known, strict=True)
    ]


def _centred(values: Array) -> Array:
    return values - values.mean() if len(values) else values


# -------------------------------------------------------------------- over seeds


def welch_test(a: Sequence[float], b: Sequence[float]) -> SeedTest:
    """Welch's t over the values of independent runs; undefined with fewer than two runs on either side.

    >>> found = welch_test([0.110, 0.112, 0.109, 0.111, 0.113], [0.114, 0.113, 0.116, 0.115, 0.112])
    >>> round(found.t, 6), round(found.df, 6), round(found.p, 6), round(found.hedges_g, 6)
    (3.0, 8.0, 0.017072, 1.71375)
    """
    one, other = _as_floats(a), _as_floats(b)
    difference = _mean(other) - _mean(one)
    if min(len(one), len(other)) < 2:
        return SeedTest(difference, _UNDEFINED, _UNDEFINED, _UNDEFINED, hedges_g(a, b))
    parts = [_variance(values) / len(values) for values in (one, other)]
    error = math.sqrt(sum(parts))
    degrees = _quotient(
        sum(parts) ** 2, sum(part**2 / (len(v) - 1) for part, v in zip(parts, (one, other), strict=True))
    )
    t = _ratio(difference, error)
    return SeedTest(difference, t, degrees, _t_p(t, difference, degrees), hedges_g(a, b))


def seed_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """95% interval of mean(b) - mean(a) over training runs, by Welch's t; None where neither side has two runs.

    A side with one value counts as exact: that of a method which draws nothing.

    >>> low, high = seed_interval([0.110, 0.112, 0.109, 0.111, 0.113], [0.114, 0.113, 0.116, 0.115, 0.112])
    >>> round(low, 6), round(high, 6)
    (0.000694, 0.005306)
    >>> seed_interval([0.1], [0.2]) is None
    True
    """
    sides = [_as_floats(values) for values in (a, b)]
    parts = [(_variance(values) / len(values), len(values) - 1) for values in sides if len(values) > 1]
    if not parts:
        return None
    difference, variance = _mean(sides[1]) - _mean(sides[0]), sum(part for part, _ in parts)
    if math.isnan(difference + variance):
        return None
    if variance == 0:
        return difference, difference
    from scipy.special import stdtrit

    degrees = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    reach = float(stdtrit(degrees, 0.975)) * math.sqrt(variance)
    return difference - reach, difference + reach


def student_half(values: Sequence[float]) -> float:
    """Half the width of the 95% interval of a mean over independent runs, at least two (Student's t).

    >>> round(student_half([0.01, 0.02, 0.03]), 6)
    0.024841
    """
    from scipy.special import stdtrit

    found = _as_floats(values)
    return float(stdtrit(len(found) - 1, 0.975)) * math.sqrt(_variance(found) / len(found))


def paired_seed_test(a: Sequence[float], b: Sequence[float]) -> SeedTest:
    """Paired t over runs, the i-th of either side on the same split; for experiments in which each seed has its own.

    >>> found = paired_seed_test([0.1, 0.2, 0.4], [0.2, 0.4, 0.5])
    >>> round(found.t, 6), found.df
    (4.0, 2.0)
    """
    if len(a) != len(b):
        raise ConfigError(f"a paired test over runs needs as many on both sides; got {len(a)} and {len(b)}")
    d = _differences(_as_floats(a), _as_floats(b))
    t, p, _ = _student(d)
    return SeedTest(_mean(d), t, float(max(len(d) - 1, 0)), p, hedges_g(a, b))


def hedges_g(a: Sequence[float], b: Sequence[float]) -> float:
    """(mean(b) - mean(a)) / s_pooled * (1 - 3 / (4 (n_a + n_b) - 9)); undefined without spread or with n < 2.

    >>> round(hedges_g([1.0, 3.0], [3.0, 5.0]), 6)
    0.808122
    """
    one, other = _as_floats(a), _as_floats(b)
    if min(len(one), len(other)) < 2:
        return _UNDEFINED
    freedom = len(one) + len(other) - 2
    pooled = math.sqrt((_variance(one) * (len(one) - 1) + _variance(other) * (len(other) - 1)) / freedom)
    correction = 1 - 3 / (4 * (len(one) + len(other)) - 9)
    return _quotient(_mean(other) - _mean(one), pooled) * correction


# -------------------------------------------------------------------- many tests


def holm(p: Sequence[float] | Array) -> list[float]:
    """Adjusted p-values of a family: with p sorted ascending, max_{j <= i} min(1, (m - j + 1) p_(j)).

    Undefined p stay undefined and are not counted in m.

    >>> [round(value, 6) for value in holm([0.01, 0.04, math.nan, 0.03, 0.005])]
    [0.03, 0.06, nan, 0.06, 0.02]
    """
    values = _as_floats(p)
    adjusted = np.full(len(values), np.nan)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]  # NaN sorts last
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * values[order]))
    return [float(value) for value in adjusted]


# -------------------------------------------------------------------- parts


def _as_floats(values: Sequence[float] | Array) -> Array:
    return np.asarray(values, dtype=np.float64)


def _both_defined(a: Array, b: Array) -> tuple[Array, Array]:
    a, b = _as_floats(a), _as_floats(b)
    if a.shape != b.shape:
        raise ConfigError(f"a paired test needs the same users on both sides; got {len(a)} and {len(b)} values")
    defined = ~np.isnan(a) & ~np.isnan(b)
    return a[defined], b[defined]


def _differences(a: Array, b: Array) -> Array:
    """b - a without rounding errors, which would break ties between equal differences and make zeros non-zero."""
    return np.round(b - a, _NOTHING)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else _UNDEFINED


def _variance(values: Array) -> float:
    """With n - 1; exactly zero for equal values, whose mean may be off by a rounding."""
    return float(values.var(ddof=1)) if values.min() < values.max() else 0.0


def _quotient(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator != 0 else _UNDEFINED


def _ratio(difference: float, error: float) -> float:
    """A test statistic: infinite where there is a difference and no spread at all, undefined where there is neither."""
    if error > 0 or difference == 0:
        return _quotient(difference, error)
    return math.copysign(math.inf, difference)


def _student(d: Array) -> tuple[float, float, float]:
    """t, its p and d_z of differences."""
    if len(d) < 2:
        return _UNDEFINED, _UNDEFINED, _UNDEFINED
    mean, spread = _mean(d), math.sqrt(_variance(d))
    t = _ratio(mean, spread / math.sqrt(len(d)))
    return t, _t_p(t, mean, len(d) - 1), _quotient(mean, spread)


def _t_p(t: float, difference: float, degrees: float) -> float:
    """Two-sided p; 1 where nothing differs, 0 where everything differs by the same amount."""
    if math.isinf(t):
        return 0.0
    if difference == 0 and math.isnan(t):
        return 1.0
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))


def _wilcoxon(d: Array) -> dict[str, float]:
    if len(d) < 2:
        return dict.fromkeys(("w_plus", "w_minus", "z", "p_wilcoxon", "rank_biserial"), _UNDEFINED)
    size, place, sizes = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[place]
    plus, minus = float(ranks[d > 0].sum()), float(ranks[d < 0].sum())
    zeros = int(sizes[0]) if size[0] == 0 else 0
    tied = sizes[size > 0].astype(np.float64)
    expected = (_triangle(len(d)) - _triangle(zeros)) / 2
    variance = (_pyramid(len(d)) - _pyramid(zeros) - float((tied**3 - tied).sum()) / 2) / 24
    z = _quotient(plus - expected, math.sqrt(variance))
    return {
        "w_plus": plus,
        "w_minus": minus,
        "z": z,
        "p_wilcoxon": 1.0 if zeros == len(d) else _normal_p(z),
        "rank_biserial": _quotient(plus - minus, plus + minus),
    }


def _triangle(n: int) -> float:
    return n * (n + 1) / 2


def _pyramid(n: int) -> float:
    return float(n * (n + 1) * (2 * n + 1))


def _normal_p(z: float) -> float:
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(z)))


def _normal_interval(d: Array) -> Interval | None:
    if len(d) < 2:
        return None
    return normal_interval(_mean(d), math.sqrt(_variance(d) / len(d)))
