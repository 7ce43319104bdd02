"""Tests over users and seeds: the hand-checked toy, equality with SciPy, and the corners."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from caged.errors import ConfigError
from caged.evaluation import bootstrap, significance
from caged.evaluation.bootstrap import Interval
from caged.evaluation.significance import (
    hedges_g,
    holm,
    paired_interval,
    paired_intervals,
    paired_seed_test,
    paired_test,
    seed_interval,
    welch_test,
)
from tests.evaluation.worlds import TOY

STATISTICS = TOY["statistics"]
A, B = np.array(STATISTICS["a"]), np.array(STATISTICS["b"])
SEEDS = STATISTICS["seeds"]
exact = {"abs": 1e-9, "rel": 0}
fast = settings(max_examples=60, deadline=None)


def test_the_paired_toy():
    found, expected = paired_test(A, B), STATISTICS["paired"]
    assert found.users == expected["n"]
    for name in ("mean_difference", "t", "p_t", "w_plus", "w_minus", "z", "p_wilcoxon", "d_z", "rank_biserial"):
        assert getattr(found, name) == pytest.approx(expected[name], **exact), name
    assert found.relative_change == pytest.approx(100 * 0.09375 / A.mean(), **exact)


def test_the_interval_of_the_toy():
    found = paired_interval(A, B)
    assert found is not None
    assert found.method == "bootstrap"
    assert (found.low, found.high) == pytest.approx(tuple(STATISTICS["bootstrap"]["mean_difference"]), **exact)


def test_the_toy_of_seeds():
    found, expected = welch_test(SEEDS["a"], SEEDS["b"]), SEEDS["welch"]
    for name in ("t", "df", "p", "hedges_g"):
        assert getattr(found, name) == pytest.approx(expected[name], **exact), name


def test_the_toy_of_holm():
    assert holm(STATISTICS["holm"]["p"]) == pytest.approx(STATISTICS["holm"]["adjusted"], **exact)


# ---------------------------------------------------------------- the same as SciPy

# Multiples of 1/60 have many ties and zeros, as recall has.
shares = st.integers(0, 60).map(lambda sixtieths: sixtieths / 60)
pairs_of_users = st.lists(st.tuples(shares, shares), min_size=2, max_size=40)


@fast
@given(pairs_of_users)
def test_paired_tests_equal_scipy(pairs):
    a, b = np.array(pairs).T
    d = np.round(b - a, 12)
    found = paired_test(a, b)
    if not d.any():
        assert (found.p_t, found.p_wilcoxon) == (1.0, 1.0)
        return
    if len(set(d)) > 1:  # SciPy warns about lost precision where all differences are equal
        t = stats.ttest_1samp(d, 0.0)
        assert (found.t, found.p_t) == pytest.approx((t.statistic, t.pvalue), **exact)
    w = stats.wilcoxon(d, zero_method="pratt", correction=False, method="asymptotic")
    assert min(found.w_plus, found.w_minus) == w.statistic
    assert found.p_wilcoxon == pytest.approx(w.pvalue, **exact)
    assert abs(found.z) == pytest.approx(abs(w.zstatistic), **exact)


def test_ttest_rel_and_ttest_ind_are_meant():
    rng = np.random.default_rng(3)
    a, b = rng.random(50), rng.random(50)
    rel = stats.ttest_rel(b, a)
    assert (paired_test(a, b).t, paired_test(a, b).p_t) == pytest.approx((rel.statistic, rel.pvalue), **exact)
    assert paired_seed_test(a, b)[1:4] == pytest.approx((rel.statistic, rel.df, rel.pvalue), **exact)
    ind = stats.ttest_ind(b[:7], a[:12], equal_var=False)
    assert welch_test(a[:12], b[:7])[1:4] == pytest.approx((ind.statistic, ind.df, ind.pvalue), **exact)


@fast
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_its_definition(p):
    order = sorted(range(len(p)), key=lambda index: p[index])
    expected = [0.0] * len(p)
    for rank, index in enumerate(order):
        expected[index] = max(min(1.0, (len(p) - j) * p[order[j]]) for j in range(rank + 1))
    assert holm(p) == pytest.approx(expected, **exact)


# ---------------------------------------------------------------- signs, corners


@fast
@given(pairs_of_users)
def test_exchanging_the_runs_turns_the_signs(pairs):
    a, b = np.array(pairs).T
    one, other = paired_test(a, b), paired_test(b, a)
    for name in ("mean_difference", "t", "z", "d_z", "rank_biserial"):
        assert getattr(other, name) == pytest.approx(-getattr(one, name), abs=1e-9, nan_ok=True), name
    assert (other.p_t, other.p_wilcoxon) == pytest.approx((one.p_t, one.p_wilcoxon), **exact)
    assert (other.w_plus, other.w_minus) == (one.w_minus, one.w_plus)


def test_users_without_a_value_in_both_are_left_out():
    nan = math.nan
    padded = paired_test(np.append(A, [nan, 0.3, nan]), np.append(B, [0.1, nan, nan]))
    assert padded == paired_test(A, B)


def test_nothing_changed():
    found = paired_test(A, A + 1e-13)
    assert (found.mean_difference, found.p_t, found.p_wilcoxon) == (0.0, 1.0, 1.0)
    assert all(math.isnan(value) for value in (found.t, found.z, found.d_z, found.rank_biserial))


def test_everybody_gains_the_same():
    found = paired_test(np.full(9, 0.2), np.full(9, 0.3))
    assert (found.t, found.p_t) == (math.inf, 0.0)
    assert math.isnan(found.d_z)
    assert found.rank_biserial == 1.0


@pytest.mark.parametrize("size", [0, 1])
def test_too_few_users(size):
    found = paired_test(A[:size], B[:size])
    assert found.users == size
    assert all(math.isnan(value) for value in (found.t, found.p_t, found.z, found.p_wilcoxon, found.d_z))


def test_a_mean_of_zero_has_no_relative_change():
    assert math.isnan(paired_test(np.zeros(3), np.array([0.1, 0.2, 0.3])).relative_change)


def test_different_numbers_of_users_are_refused():
    with pytest.raises(ConfigError, match="same users on both sides; got 8 and 7"):
        paired_test(A, B[:7])
    with pytest.raises(ConfigError, match="row per user"):
        paired_interval(A, B[:7])
    with pytest.raises(ConfigError, match="as many on both sides; got 2 and 3"):
        paired_seed_test([0.1, 0.2], [0.1, 0.2, 0.3])


def test_the_interval_over_seeds_is_that_of_scipy():
    a, b = [0.11, 0.12, 0.14], [0.15, 0.19]
    expected = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    assert seed_interval(a, b) == pytest.approx((expected.low, expected.high), **exact)


def test_a_side_without_seeds_is_exact_in_the_interval_over_seeds():
    expected = stats.ttest_1samp([0.11, 0.12, 0.14], 0.2).confidence_interval(0.95)
    assert seed_interval([0.2], [0.11, 0.12, 0.14]) == pytest.approx((expected.low - 0.2, expected.high - 0.2), **exact)
    assert seed_interval([0.25] * 2, [0.5] * 2) == (0.25, 0.25)
    assert seed_interval([0.1], [0.2]) is None
    assert seed_interval([math.nan, 0.1], [0.2, 0.3]) is None


def test_methods_without_spread():
    same, apart = welch_test([0.1] * 5, [0.1] * 5), welch_test([0.1] * 5, [0.2] * 5)
    assert (same.mean_difference, same.p) == (0.0, 1.0)
    assert (apart.t, apart.p) == (math.inf, 0.0)
    assert math.isnan(hedges_g([0.1] * 5, [0.2] * 5))


def test_one_run_has_no_spread():
    found = welch_test([0.1], [0.2, 0.3])
    assert found.mean_difference == pytest.approx(0.15)
    assert math.isnan(found.p)
    assert math.isnan(found.hedges_g)


def test_undefined_p_are_not_counted():
    assert holm([0.01, math.nan, 0.02]) == pytest.approx([0.02, math.nan, 0.02], nan_ok=True)
    assert holm([]) == []


# ---------------------------------------------------------------- intervals


def test_the_bootstrap_is_its_definition(monkeypatch):
    monkeypatch.setattr(bootstrap, "FEW_USERS", 0)  # the plain middle 95%
    rng = np.random.default_rng(11)
    a, b = rng.random(30), rng.random(30)
    b[[4, 17]] = math.nan
    generator = np.random.default_rng(5)
    replicates = [np.nanmean((b - a)[generator.integers(0, 30, size=30)]) for _ in range(200)]
    found = paired_interval(a, b, draws=200, seed=5)
    assert found is not None
    assert found[:2] == pytest.approx(tuple(np.quantile(replicates, [0.025, 0.975])), abs=1e-9)


def test_columns_share_the_draws(monkeypatch):
    monkeypatch.setattr(bootstrap, "BLOCK_COUNTS", 8 * 7)  # blocks of seven draws
    rng = np.random.default_rng(1)
    a, b = rng.random((8, 3)), rng.random((8, 3))
    b[2, 1] = math.nan
    together = paired_intervals(a, b, draws=50)
    monkeypatch.undo()
    apart = [paired_interval(a[:, column], b[:, column], draws=50) for column in range(3)]
    for one, other in zip(together, apart, strict=True):
        assert one is not None
        assert other is not None
        assert one[:2] == pytest.approx(other[:2], abs=1e-12)


def test_no_interval_where_replicates_are_mostly_undefined():
    a = np.full(20, math.nan)
    a[0] = 0.5
    assert paired_interval(a, np.ones(20)) is None
    assert paired_interval(np.zeros(0), np.zeros(0)) is None


def test_many_users_get_the_normal_interval(monkeypatch):
    monkeypatch.setattr(significance, "MOST_DRAWN", 7)
    found = paired_interval(np.append(A, math.nan), np.append(B, 0.1))
    assert found is not None
    reach = 1.959964 * (B - A).std(ddof=1) / math.sqrt(8)
    assert found == Interval(pytest.approx(0.09375 - reach), pytest.approx(0.09375 + reach), "normal")


def test_scipy_is_not_imported_before_it_is_needed():
    script = "import sys, caged.evaluation.significance; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# ---------------------------------------------------------------- properties


shares = st.lists(st.floats(0, 1).map(lambda value: round(value, 3)), min_size=2, max_size=25)


@fast
@given(shares, st.floats(0.1, 10), st.floats(-1, 1))
def test_units_do_not_matter(a, scale, shift):
    """Both runs in other units, or shifted alike: same p-values and effects."""
    one = np.array(a)
    other = one[::-1].copy()
    plain, moved = paired_test(one, other), paired_test(scale * one + shift, scale * other + shift)
    assert moved.p_t == pytest.approx(plain.p_t, abs=1e-6)
    assert moved.d_z == pytest.approx(plain.d_z, abs=1e-6, nan_ok=True)
    assert moved.mean_difference == pytest.approx(scale * plain.mean_difference, abs=1e-9)


@fast
@given(shares)
def test_the_interval_of_a_constant_gain_is_that_gain(a):
    found = paired_interval(np.array(a), np.array(a) + 0.25, draws=50)
    assert found is not None
    assert found[:2] == pytest.approx((0.25, 0.25), abs=1e-9)


@fast
@given(shares, st.integers(0, 100))
def test_the_interval_lies_within_the_differences(a, seed):
    one, other = np.array(a), np.random.default_rng(seed).random(len(a))
    found = paired_interval(one, other, draws=50, seed=seed)
    assert found is not None
    d = other - one
    assert d.min() - 1e-9 <= found.low <= found.high <= d.max() + 1e-9


@fast
@given(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=12), st.randoms())
def test_holm_only_raises_keeps_the_order_and_ignores_the_order_given(p, random):
    adjusted = holm(p)
    defined = [(raw, after) for raw, after in zip(p, adjusted, strict=True) if not math.isnan(raw)]
    assert sum(map(math.isnan, adjusted)) == sum(map(math.isnan, p))
    assert all(raw <= after <= 1 for raw, after in defined)
    assert [after for _, after in sorted(defined)] == sorted(after for _, after in defined)
    order = list(range(len(p)))
    random.shuffle(order)
    shuffled = holm([p[index] for index in order])
    assert shuffled == pytest.approx([adjusted[index] for index in order], nan_ok=True)


@fast
@given(shares, shares)
def test_welch_turns_its_sign_with_the_methods(a, b):
    one, other = welch_test(a, b), welch_test(b, a)
    assert other.t == pytest.approx(-one.t, nan_ok=True)
    assert other.hedges_g == pytest.approx(-one.hedges_g, nan_ok=True)
    assert other.p == pytest.approx(one.p, nan_ok=True)
