import math

import numpy as np
import pytest

from caged.data.popularity import ITEM_GROUPS, USER_GROUPS
from caged.evaluation import bootstrap, intervals, measure
from caged.evaluation.bootstrap import Interval, percentile_interval, replicates
from caged.evaluation.measure import Report
from caged.evaluation.metrics import MetricKey
from tests.evaluation.worlds import random_world, toy_world

WITHOUT = ("coverage", "gini", "exposure_gini", "entropy", "personalisation")


def toy_report(ks=(3,), **options):
    world = toy_world()
    return measure.measure(world.lists, world.reference, ks, **options)


def literal_replicates(report: Report, draws: int, seed: int) -> dict[str, list[float]]:
    """Section 6 of the definitions, word by word: one draw after the other, one key after the other."""
    rng = np.random.default_rng(seed)
    n = len(report.users)
    keys = [key for key in report.keys if key.name not in WITHOUT]
    replicates: dict[str, list[float]] = {key: [] for key in keys}
    for _ in range(draws):
        drawn = rng.integers(0, n, size=n)
        for key in keys:
            replicates[key].append(_literal(report, key, drawn))
    return replicates


def _literal(report: Report, key: MetricKey, drawn: np.ndarray) -> float:
    sums = {name: values[drawn] for name, values in report.sums.items()}
    group = report.user_group[drawn]
    member = np.ones(len(drawn), bool) if key.user_group is None else group == USER_GROUPS.index(key.user_group)
    recall = [_quotient(sums[f"hits@{key.k}/{g}"], sums[f"relevant/{g}"]) for g in ITEM_GROUPS]
    rate = [_quotient(sums[f"listed_unseen@{key.k}/{g}"], sums[f"eligible/{g}"]) for g in ITEM_GROUPS]
    pooled = {
        "pop_reo": lambda: _apart(*recall),
        "pop_rsp": lambda: _apart(*rate),
        "pooled_recall": lambda: recall[key.group == "niche"],
        "exposure_rate": lambda: rate[key.group == "niche"],
        "exposure_kl": lambda: _kl(sums[f"bucket_exposure@{key.k}"].sum(axis=0), report.bucket_mass),
        "delta_gap": lambda: _gap(report.per_user[f"arp@{key.k}"][drawn][member], sums["profile_popularity"][member]),
    }
    if key.name in pooled:
        return pooled[key.name]()
    values = report.per_user[key.of_each_user][drawn][member]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else math.nan


def _quotient(numerators: np.ndarray, denominators: np.ndarray) -> float:
    return numerators.sum() / denominators.sum() if denominators.sum() else math.nan


def _apart(a: float, b: float) -> float:
    """With its sign."""
    return (a - b) / (a + b) if a + b > 0 else math.nan


def _kl(shown: np.ndarray, mass: np.ndarray) -> float:
    p, q = shown / shown.sum(), mass / mass.sum()
    return sum(p[b] * math.log2(p[b] / q[b]) for b in range(len(p)) if p[b]) if q[p > 0].all() else math.nan


def _gap(listed: np.ndarray, profile: np.ndarray) -> float:
    both = ~np.isnan(listed + profile)
    return listed[both].mean() / profile[both].mean() - 1 if both.any() else math.nan


@pytest.fixture
def plain(monkeypatch):
    """The percentile bootstrap without what is done for few users."""
    monkeypatch.setattr(bootstrap, "FEW_USERS", 0)
    monkeypatch.setattr(intervals, "LEAST_DIFFERING", 0)


def literal_interval(key: MetricKey, value: float, replicates: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(replicates, [0.025, 0.975])
    if key.name == "exposure_kl":  # twice the bias off the draws, once off the value; the further of the two
        bias, error = replicates.mean() - value, 1.959964 * replicates.std()
        low, high = min(low - 2 * bias, value - bias - error), max(high - 2 * bias, value - bias + error)
        return max(low, 0.0), max(high, 0.0)
    if key.name in ("pop_reo", "pop_rsp"):  # the interval of the signed value, folded at zero
        return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    return low, high


@pytest.mark.usefixtures("plain")
def test_the_hand_computed_interval():
    found = intervals.intervals(toy_report())["recall@3"]
    assert found.method == "bootstrap"
    assert (found.low, found.high) == pytest.approx((0.150000, 0.583333), abs=1e-6)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("seed", [0, 5])
def test_every_interval_equals_the_literal_bootstrap(seed):
    world = random_world(np.random.default_rng(seed))
    report = measure.measure(world.lists, world.reference, (4, 10))
    found = intervals.intervals(report, draws=200, seed=seed)
    for key, drawn in literal_replicates(report, 200, seed).items():
        defined = np.array([value for value in drawn if not math.isnan(value)])
        if len(drawn) - len(defined) > 0.05 * len(drawn):
            assert key not in found, key
        else:
            expected = literal_interval(key, report.metrics[key], defined)
            np.testing.assert_allclose(found[key][:2], expected, rtol=0, atol=1e-12, err_msg=key)


@pytest.mark.usefixtures("plain")
def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    report = toy_report()
    at_once = intervals.intervals(report, draws=100)
    monkeypatch.setattr(bootstrap, "BLOCK_COUNTS", 20)
    for key, interval in intervals.intervals(report, draws=100).items():
        np.testing.assert_allclose(interval[:2], at_once[key][:2], rtol=0, atol=1e-12)


@pytest.mark.usefixtures("plain")
def test_metrics_that_resampling_would_shift_have_none():
    found = intervals.intervals(toy_report())
    assert "recall@3" in found
    assert not [key for key in found if MetricKey.parse(key).name in WITHOUT]


@pytest.mark.usefixtures("plain")
def test_a_key_that_is_undefined_in_too_many_draws_has_none():
    """recall@3/niche-taste rests on one user of six, whom (5/6)^6 = 33% of the draws miss."""
    found = intervals.intervals(toy_report())
    assert "recall@3/niche-taste" not in found
    assert "recall@3/diverse" in found  # three of six: missed by 1.6%


def test_users_who_hardly_differ_give_no_interval_and_the_reason():
    """Four of six users differ at most, so that nothing of the toy has one."""
    found = intervals.found_intervals(toy_report())
    assert found["recall@3"] == intervals.FEW_DIFFER
    assert intervals.intervals(toy_report()) == {}


def test_few_users_have_wider_intervals():
    rng = np.random.default_rng(0)
    report = drawn_report(rng, 30)
    few = intervals.intervals(report)["recall@5"]
    plain = percentile_interval(replicates(lambda counts: counts @ report.per_user["recall@5"] / 30, 30))
    assert plain is not None
    assert few.high - few.low > plain.high - plain.low


def test_no_users_no_intervals():
    world = toy_world()
    world.items, world.relevant = {}, {}
    assert intervals.intervals(measure.measure(world.lists, world.reference, (3,))) == {}


def larger_report(**options) -> Report:
    world = random_world(np.random.default_rng(2), user_count=1500, item_count=60)
    return measure.measure(world.lists, world.reference, (10,), **options)


def test_above_the_limit_a_mean_has_the_normal_interval(monkeypatch):
    monkeypatch.setattr(intervals, "MOST_DRAWN", 0)
    report = larger_report()
    found = intervals.intervals(report)
    for key in ("recall@10", "arp@10", "pru@10", "ndcg@10/niche"):
        values = report.per_user[key][~np.isnan(report.per_user[key])]
        reach = 1.959964 * values.std(ddof=1) / math.sqrt(len(values))
        assert found[key] == Interval(
            pytest.approx(values.mean() - reach, abs=1e-12), pytest.approx(values.mean() + reach, abs=1e-12), "normal"
        )


def test_the_normal_intervals_are_close_to_the_bootstrap(monkeypatch):
    """Also for ratios, whose value is linearised; 1,500 users, 1,000 draws. The parities of this world are left out:
    so close to zero that an absolute value folds back, nothing can be linearised."""
    report = larger_report()
    drawn = intervals.intervals(report)
    monkeypatch.setattr(intervals, "MOST_DRAWN", 0)
    normal = intervals.intervals(report)
    assert set(normal) == set(drawn)
    assert max(drawn.pop(key).low for key in ("pop_rsp@10", "pop_reo@10")) < 0.01
    for key in drawn:
        interval = normal[key]
        width = drawn[key].high - drawn[key].low
        assert interval.high - interval.low == pytest.approx(width, rel=0.15, abs=1e-6), key
        assert interval.low == pytest.approx(drawn[key].low, abs=0.15 * width + 1e-6), key


def test_without_values_per_user_sums_give_the_same_normal_interval(monkeypatch):
    monkeypatch.setattr(measure, "BLOCK_PLACES", 1000)
    summed = larger_report(per_user_limit=100)
    assert summed.per_user == {}
    assert summed.sums == {}
    monkeypatch.setattr(intervals, "MOST_DRAWN", 0)
    expected = intervals.intervals(larger_report())
    found = intervals.intervals(summed)
    assert set(found) == set(expected)
    for key, interval in found.items():
        np.testing.assert_allclose(interval[:2], expected[key][:2], rtol=0, atol=1e-10, err_msg=key)


def drawn_report(rng: np.random.Generator, users: int) -> Report:
    """Users of whom recall and relevant items are known in distribution: recall is Beta(1, 3), R is 1..5."""
    relevant = rng.integers(1, 6, users)
    hits = rng.binomial(relevant, 0.3)
    return Report(
        users=np.arange(users),
        metrics={"recall@5": math.nan, "pooled_recall@5/niche": math.nan},
        users_per_metric={},
        per_user={"recall@5": rng.beta(1, 3, users)},
        sums={"hits@5/niche": hits, "relevant/niche": relevant},
        counts={},
        user_group=np.zeros(users, dtype=np.int8),
    )


@pytest.mark.parametrize("most_drawn", [10**6, 0], ids=["bootstrap", "normal"])
def test_intervals_cover_the_truth_at_about_95_percent(monkeypatch, most_drawn):
    """400 samples of 150 users; 95% +- 3 standard errors (1.1%) and a little for the finite sample."""
    monkeypatch.setattr(intervals, "MOST_DRAWN", most_drawn)
    rng = np.random.default_rng(7)
    truth = {"recall@5": 0.25, "pooled_recall@5/niche": 0.3}
    covered = dict.fromkeys(truth, 0)
    for _ in range(400):
        found = intervals.intervals(drawn_report(rng, 150), draws=300)
        for key, value in truth.items():
            covered[key] += found[key].low <= value <= found[key].high
    for key, count in covered.items():
        assert 0.91 <= count / 400 <= 0.985, key
