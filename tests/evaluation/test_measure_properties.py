"""Properties that hold for any lists: ranges, monotonicity, improvements, extremes, relabelling, second formulas."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from caged.evaluation import bias
from caged.evaluation.measure import measure
from caged.evaluation.metrics import METRICS, Mean, MetricKey
from tests.evaluation.worlds import World, random_world

fast = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
worlds = st.builds(
    lambda seed, users, items: random_world(np.random.default_rng(seed), users, items),
    st.integers(0, 10**6),
    st.integers(1, 14),
    st.integers(2, 24),
)
cuts = st.integers(1, 12)
EPSILON = 1e-12


def values(world: World, k: int, **options):
    return measure(world.lists, world.reference, (k,), **options)


def bounds(key: MetricKey, world: World) -> tuple[float, float]:
    degrees = world.reference.item_groups.degrees
    least_share = min((m for m in world.reference.item_groups.bucket_mass if m), default=1) / max(degrees.sum(), 1)
    special = {
        "arp": (0, degrees.max()),
        "popularity_lift": (-1, math.inf),
        "delta_gap": (-1, math.inf),
        "aclt": (0, key.k),
        "novelty": (0, math.log2(max(world.reference.trained_users, 1))),
        "pru": (-1, 1),
        "gini": (0, 1 - 1 / world.item_count),
        "exposure_kl": (0, -math.log2(least_share)),
    }
    return special.get(key.name, (0, 1))


@fast
@given(worlds, cuts)
def test_every_value_is_in_its_range_or_undefined(world, k):
    report = values(world, k)
    for text, value in report.metrics.items():
        low, high = bounds(MetricKey.parse(text), world)
        assert math.isnan(value) or low - EPSILON <= value <= high + EPSILON, text
        assert math.isnan(value) or report.users_per_metric[text] > 0, text
    for text, per_user in report.per_user.items():
        low, high = bounds(MetricKey.parse(text), world)
        defined = per_user[~np.isnan(per_user)]
        assert ((defined >= low - EPSILON) & (defined <= high + EPSILON)).all(), text


def at_least(larger, smaller) -> bool:
    """Elementwise, with undefined values in the same places."""
    larger, smaller = np.atleast_1d(larger), np.atleast_1d(smaller)
    np.testing.assert_array_equal(np.isnan(larger), np.isnan(smaller))
    defined = ~np.isnan(larger)
    return bool((larger[defined] >= smaller[defined] - EPSILON).all())


@fast
@given(worlds, cuts)
def test_longer_lists_never_lower_what_they_can_only_add_to(world, k):
    short, long = values(world, k), values(world, k + 1)
    for name in ("recall", "hit", "mrr", "aclt"):
        assert at_least(long.per_user[f"{name}@{k + 1}"], short.per_user[f"{name}@{k}"]), name
    for group in ("", "/popular", "/niche"):
        assert at_least(long.metrics[f"coverage@{k + 1}{group}"], short.metrics[f"coverage@{k}{group}"])
    relevant = np.array([len(world.relevant.get(int(u), ())) for u in short.users])
    settled = relevant <= k
    assert at_least(long.per_user[f"map@{k + 1}"][settled], short.per_user[f"map@{k}"][settled])


@fast
@given(worlds, cuts)
def test_ndcg_hits100_is_never_below_ndcg(world, k):
    report = values(world, k)
    for group in ("", "/popular", "/niche"):
        assert at_least(report.per_user[f"ndcg_hits100@{k}{group}"], report.per_user[f"ndcg@{k}{group}"])


@fast
@given(worlds, cuts)
def test_recall_is_the_mixture_of_its_group_recalls(world, k):
    report = values(world, k)
    counts = world.reference.relevant_counts
    mixture = sum(
        counts[group][report.users] * np.nan_to_num(report.per_user[f"recall@{k}/{group}"])
        for group in ("popular", "niche")
    )
    defined = counts[None][report.users] > 0
    recall = report.per_user[f"recall@{k}"][defined]
    np.testing.assert_allclose(recall * counts[None][report.users][defined], mixture[defined], atol=1e-9)


@fast
@given(worlds, cuts, st.data())
def test_a_niche_hit_instead_of_a_popular_miss_never_hurts(world, k, data):
    groups = world.reference.item_groups
    swaps = [
        (u, place, new)
        for u, items in world.items.items()
        for place, old in enumerate(items[:k])
        if groups.popular[old] and old not in world.relevant.get(u, ())
        for new in sorted(world.relevant.get(u, ()))
        if groups.niche[new] and new not in items
    ]
    assume(swaps)
    u, place, new = data.draw(st.sampled_from(swaps))
    swapped = {**world.items, u: [*world.items[u][:place], new, *world.items[u][place + 1 :]]}
    before, after = values(world, k), values(replace(world, items=swapped), k)
    for key in (f"recall@{k}", f"ndcg@{k}", f"tail_share@{k}", f"recall@{k}/niche"):
        assert at_least(after.per_user[key], before.per_user[key]), key


def test_the_swap_property_is_not_vacuous():
    """Popular item 0, five users; user 4 gets its relevant niche item 4 instead of item 0."""
    train = {0: {0}, 1: {0, 1}, 2: {0, 2}, 3: {0, 3}, 5: {4}}
    world = World(6, 6, train, {}, {4: {4}}, {4: [0, 5]})
    before, after = values(world, 2), values(replace(world, items={4: [4, 5]}), 2)
    assert (before.metrics["recall@2/niche"], after.metrics["recall@2/niche"]) == (0.0, 1.0)
    assert (before.metrics["tail_share@2"], after.metrics["tail_share@2"]) == (0.5, 1.0)


@fast
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 1000))
def test_equal_full_lists_cover_k_items_and_nothing_more(k, extra, seed):
    rng = np.random.default_rng(seed)
    item_count = k + extra
    shared = rng.permutation(item_count)[:k].tolist()
    world = World(7, item_count, {0: {0}}, {}, {}, dict.fromkeys(range(7), shared))
    metrics = values(world, k).metrics
    assert metrics[f"coverage@{k}"] == pytest.approx(k / item_count)
    assert metrics[f"gini@{k}"] == pytest.approx(1 - k / item_count)
    assert metrics[f"entropy@{k}"] == pytest.approx(math.log2(k) / math.log2(item_count))


@fast
@given(worlds, cuts)
def test_gini_zero_and_entropy_one_exactly_when_exposure_is_uniform(world, k):
    metrics = values(world, k).metrics
    exposure = world.slow().exposure(k)
    assume(sum(exposure))
    uniform = len(set(exposure)) == 1
    assert (metrics[f"gini@{k}"] == 0) == uniform
    assert (abs(metrics[f"entropy@{k}"] - 1) < EPSILON) == uniform


@pytest.mark.parametrize("k", [1, 3])
def test_rotated_lists_are_uniform(k):
    lists = {u: [(u + j) % 6 for j in range(k)] for u in range(6)}
    metrics = values(World(6, 6, {0: {0}}, {}, {}, lists), k).metrics
    assert metrics[f"gini@{k}"] == 0
    assert metrics[f"entropy@{k}"] == pytest.approx(1, abs=EPSILON)
    assert metrics[f"coverage@{k}"] == 1


@fast
@given(worlds, cuts)
def test_upd_is_zero_exactly_when_the_shares_agree(world, k):
    report = values(world, k)
    reference = world.reference
    section = reference.item_groups.section
    for row, u in enumerate(report.users):
        top, profile = world.items.get(int(u), [])[:k], sorted(world.train[int(u)])
        value = report.per_user[f"upd@{k}"][row]
        if not top or not profile:
            assert math.isnan(value)
            continue
        mine, theirs = (np.bincount(section[items], minlength=3) for items in (profile, top))
        agree = (mine * len(top) == theirs * len(profile)).all()
        assert (value == 0) == agree


@fast
@given(worlds)
def test_lists_that_repeat_the_profile_have_no_lift(world):
    profiles = {u: sorted(items) for u, items in world.train.items() if items}
    assume(profiles)
    k = max(len(items) for items in profiles.values())
    report = values(replace(world, items=profiles), k)
    lift = report.per_user[f"popularity_lift@{k}"]
    assert (lift[~np.isnan(lift)] == 0).all()
    assert np.count_nonzero(~np.isnan(lift)) == len(profiles)
    assert report.metrics[f"delta_gap@{k}"] == 0
    assert report.metrics[f"upd@{k}"] == 0


def permuted(world: World, users: np.ndarray, items: np.ndarray) -> World:
    def sets(pairs):
        return {int(users[u]): {int(items[i]) for i in owned} for u, owned in pairs.items()}

    lists = {int(users[u]): [int(items[i]) for i in row] for u, row in world.items.items()}
    return World(world.user_count, world.item_count, sets(world.train), sets(world.valid), sets(world.relevant), lists)


def without_ties(rng: np.random.Generator, world: World) -> World:
    """The world with other training pairs, such that all used items have distinct degrees."""
    train: dict[int, set[int]] = {u: set() for u in range(world.user_count)}
    for degree, item in enumerate(rng.permutation(world.item_count)[: world.user_count], 1):
        for u in rng.permutation(world.user_count)[:degree]:
            train[int(u)].add(int(item))
    relevant = {u: items - train[u] for u, items in world.relevant.items()}
    return replace(world, train=train, relevant=relevant)


@fast
@given(st.integers(0, 10**6), cuts)
def test_relabelling_items_changes_nothing(seed, k):
    rng = np.random.default_rng(seed)
    world = without_ties(rng, random_world(rng, user_count=14, item_count=20))
    relabelled = permuted(world, np.arange(world.user_count), rng.permutation(world.item_count))
    one, other = values(world, k), values(relabelled, k)
    for key, value in one.metrics.items():
        np.testing.assert_allclose(other.metrics[key], value, rtol=0, atol=1e-12, err_msg=key)
    for key, per_user in one.per_user.items():
        np.testing.assert_allclose(other.per_user[key], per_user, rtol=0, atol=1e-12, err_msg=key)


@fast
@given(worlds, cuts, st.integers(0, 1000))
def test_relabelling_users_permutes_the_per_user_values(world, k, seed):
    """User-group keys are left out: equal shares are cut by row number, which relabelling changes by design."""
    users = np.random.default_rng(seed).permutation(world.user_count)
    one, other = values(world, k), values(permuted(world, users, np.arange(world.item_count)), k)
    place = np.searchsorted(other.users, users[one.users])
    assert other.users[place].tolist() == users[one.users].tolist()
    for key, per_user in one.per_user.items():
        np.testing.assert_array_equal(other.per_user[key][place], per_user, err_msg=key)
    for key, value in one.metrics.items():
        if MetricKey.parse(key).user_group is None:
            np.testing.assert_allclose(other.metrics[key], value, rtol=0, atol=1e-12, err_msg=key)


def test_every_metric_states_a_direction():
    assert {metric.direction for metric in METRICS.values()} == {"up", "down", "zero", "none"}


# ---------------------------------------------------------------- between metrics, and beyond the list


def metrics_of(world: World, k: int) -> dict[str, float]:
    return measure(world.lists, world.reference, (k,)).metrics


def assert_same(one: dict[str, float], other: dict[str, float]) -> None:
    assert set(one) == set(other)
    for key, value in one.items():
        np.testing.assert_allclose(other[key], value, rtol=0, atol=1e-12, err_msg=key)


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
