"""Further properties: relabelling with user groups, what lies beyond k, second formulas, and tests of significance."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from caged.evaluation import bias
from caged.evaluation.measure import measure
from caged.evaluation.metrics import Mean, MetricKey
from caged.evaluation.significance import holm, paired_interval, paired_test, welch_test
from tests.evaluation.test_measure_properties import cuts, permuted, worlds
from tests.evaluation.worlds import World, random_world

fast = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
shares = st.lists(st.floats(0, 1).map(lambda value: round(value, 3)), min_size=2, max_size=25)


def metrics_of(world: World, k: int) -> dict[str, float]:
    return measure(world.lists, world.reference, (k,)).metrics


def assert_same(one: dict[str, float], other: dict[str, float]) -> None:
    assert set(one) == set(other)
    for key, value in one.items():
        np.testing.assert_allclose(other[key], value, rtol=0, atol=1e-12, err_msg=key)


# ---------------------------------------------------------------- metrics


@fast
@given(st.integers(0, 10**6), cuts)
def test_relabelling_users_changes_nothing_where_the_groups_are_cut_without_ties(seed, k):
    """Also by user group: all own the four most popular items and 1, 2, ... 10 others, so that no shares are equal."""
    rng = np.random.default_rng(seed)
    world = random_world(rng, user_count=10, item_count=20)
    train = {u: {0, 1, 2, 3, *rng.permutation(np.arange(4, 20))[: u + 1].tolist()} for u in range(10)}
    relevant = {u: items - train[u] for u, items in world.relevant.items()}
    world = replace(world, train=train, valid={}, relevant=relevant)
    assert len(set(world.reference.user_groups.popular_share)) == 10
    relabelled = permuted(world, rng.permutation(10), np.arange(20))
    assert_same(metrics_of(world, k), metrics_of(relabelled, k))


@fast
@given(worlds, cuts, st.integers(0, 1000))
def test_what_stands_beyond_k_does_not_matter(world, k, seed):
    """Except for `ndcg_hits100`, whose ideal looks at 100 places."""
    rng = np.random.default_rng(seed)
    changed = {}
    for u, items in world.items.items():
        others = [i for i in range(world.item_count) if i not in items[:k]]
        changed[u] = items if len(items) < k else [*items[:k], *rng.permutation(others)[: rng.integers(0, 5)].tolist()]
    before, after = metrics_of(world, k), metrics_of(replace(world, items=changed), k)
    kept = [key for key in before if MetricKey.parse(key).name != "ndcg_hits100"]
    assert_same({key: before[key] for key in kept}, {key: after[key] for key in kept})


@fast
@given(worlds, cuts)
def test_precision_and_recall_count_the_same_hits(world, k):
    report = measure(world.lists, world.reference, (k,))
    relevant = world.reference.relevant_counts[None][report.users]
    defined = relevant > 0
    hits = report.per_user[f"recall@{k}"][defined] * relevant[defined]
    np.testing.assert_allclose(report.per_user[f"precision@{k}"][defined] * k, hits, atol=1e-9)
    np.testing.assert_array_equal(report.per_user[f"hit@{k}"][defined], hits > 0.5)


@fast
@given(worlds, cuts)
def test_aclt_is_k_times_tail_share_of_full_lists(world, k):
    report = measure(world.lists, world.reference, (k,))
    full = np.array([len(world.items.get(int(u), ())) >= k for u in report.users], dtype=bool)
    share, count = (report.per_user[f"{name}@{k}"][full] for name in ("tail_share", "aclt"))
    np.testing.assert_allclose(k * share, count, atol=1e-9)


@fast
@given(worlds, cuts)
def test_parity_is_the_spread_of_the_two_rates_over_their_mean(world, k):
    metrics = metrics_of(world, k)
    for name, rate in (("pop_rsp", "exposure_rate"), ("pop_reo", "pooled_recall")):
        rates = [metrics[f"{rate}@{k}/{group}"] for group in ("popular", "niche")]
        if any(map(math.isnan, rates)) or sum(rates) == 0:
            assert math.isnan(metrics[f"{name}@{k}"])
        else:
            assert metrics[f"{name}@{k}"] == pytest.approx(
                statistics.pstdev(rates) / statistics.fmean(rates), abs=1e-12
            )


@fast
@given(worlds, cuts)
def test_coverage_is_the_mixture_of_its_groups(world, k):
    metrics = metrics_of(world, k)
    sizes = {name: int(world.reference.item_groups.member(name).sum()) for name in ("popular", "niche")}
    assume(not math.isnan(metrics[f"coverage@{k}"]))
    shown = sum(size * metrics[f"coverage@{k}/{name}"] for name, size in sizes.items() if size)
    assert metrics[f"coverage@{k}"] == pytest.approx(shown / world.item_count, abs=1e-12)


@fast
@given(worlds, cuts)
def test_an_item_nobody_knows_only_dilutes_the_catalogue(world, k):
    """Degree 0 and in no list: what users see is unchanged, coverage and gini follow the larger N."""
    wider = replace(world, item_count=world.item_count + 1)
    before, after = metrics_of(world, k), metrics_of(wider, k)
    for key, value in before.items():
        if isinstance(MetricKey.parse(key).metric.formula, Mean):
            np.testing.assert_allclose(after[key], value, rtol=0, atol=1e-12, err_msg=key)
    assume(not math.isnan(before[f"coverage@{k}"]))
    share = world.item_count / wider.item_count
    assert after[f"coverage@{k}"] == pytest.approx(share * before[f"coverage@{k}"], abs=1e-12)
    assert 1 - after[f"gini@{k}"] == pytest.approx(share * (1 - before[f"gini@{k}"]), abs=1e-12)


@fast
@given(st.lists(st.integers(0, 9), min_size=3, max_size=3), st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_upd_does_not_care_which_is_the_profile(p, q):
    assume(sum(p) and sum(q))
    one, other = (np.array([counts]) / sum(counts) for counts in (p, q))
    assert bias.upd(one, other) == pytest.approx(bias.upd(other, one), abs=1e-12)


# ---------------------------------------------------------------- significance


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
