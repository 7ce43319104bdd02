"""Groups that somebody chose: hand-computed values, and numbers equal to the built-in groups that a table restates."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from caged.data.popularity import USER_GROUPS
from caged.errors import ConfigError, DataError
from caged.evaluation import intervals as interval_code
from caged.evaluation import measure as measuring
from caged.evaluation.groups import Grouping, grouping
from caged.evaluation.intervals import found_intervals
from caged.evaluation.measure import Report, measure
from caged.evaluation.metrics import MetricKey, metric_keys
from tests.evaluation.worlds import World, masks_as_groups, random_groups, random_world, toy_groups, toy_world

D2 = 1 / math.log2(3)  # the weight of the second place


def spread(*rates: float) -> float:
    return float(np.std(rates) / np.mean(rates))


# Every value at k = 3, worked out from the lists of the toy. Action: i0 to i3, Comedy: i3 to i6, Drama: i7 to i9.
BY_HAND = {
    "recall@3/genre=Action": (1 + 1 / 2 + 1 + 0 + 2 / 3) / 5,  # u0 u2 u3 u4 u5
    "recall@3/genre=Comedy": (1 / 2 + 1 / 2 + 0 + 1) / 4,  # u0 u2 u4 u5
    "recall@3/genre=Drama": (0 + 1 + 0) / 3,  # u0 u2 u3
    "ndcg@3/genre=Action": (1 + D2 / (1 + D2) + D2 + 0 + (1 + D2) / (1 + D2 + 1 / 2)) / 5,
    "ndcg@3/genre=Comedy": (1 / (1 + D2) + D2 / (1 + D2) + 0 + D2) / 4,
    "ndcg@3/genre=Drama": (0 + 1 / 2 + 0) / 3,
    "ndcg_hits100@3/genre=Action": (1 + D2 / (1 + D2) + D2 + 0 + 1) / 5,
    "ndcg_hits100@3/genre=Comedy": (1 / (1 + D2) + D2 / (1 + D2) + 0 + D2) / 4,
    "ndcg_hits100@3/genre=Drama": (0 + 1 / 2 + 0) / 3,
    "coverage@3/genre=Action": 3 / 4,
    "coverage@3/genre=Comedy": 3 / 4,
    "coverage@3/genre=Drama": 2 / 3,
    "exposure_rate@3/genre=Action": 6 / 9,
    "exposure_rate@3/genre=Comedy": 8 / 15,
    "exposure_rate@3/genre=Drama": 2 / 11,
    "rsp@3/genre": spread(6 / 9, 8 / 15, 2 / 11),
    "pooled_recall@3/genre=Action": 5 / 8,
    "pooled_recall@3/genre=Comedy": 3 / 6,
    "pooled_recall@3/genre=Drama": 1 / 3,
    "reo@3/genre": spread(5 / 8, 3 / 6, 1 / 3),
    "intra_list_diversity@3/genre": (1 - (2**0.5 + 1) / 3 + 1 + 2 / 3 + 2 / 3 + 1 - 0.5**0.5) / 5,
    "miscalibration@3/genre": 0.418153,
    # young: u0, u2; old: u3, u4 (no list), u5
    "recall@3/user:age=young": (1 / 4 + 1 / 2) / 2,
    "recall@3/user:age=old": (1 / 2 + 0 + 2 / 3) / 3,
    "ndcg@3/user:age=young": (1 + D2 + 1 / 2) / (1 + D2 + 1 / 2) / 2,
    "ndcg@3/user:age=old": (D2 / (1 + D2) + 0 + (1 + D2) / (1 + D2 + 1 / 2)) / 3,
    "popularity_lift@3/user:age=young": (-6 / 11 - 17 / 33) / 2,
    "popularity_lift@3/user:age=old": (-1 / 2 + 19 / 16) / 2,
    "delta_gap@3/user:age=young": (5 / 3 + 4 / 3) / (11 / 3 + 11 / 4) - 1,
    "delta_gap@3/user:age=old": (2 + 7 / 2) / (4 + 8 / 5) - 1,
    "tail_share@3/user:age=young": 1.0,
    "tail_share@3/user:age=old": (1 + 1 / 2) / 2,
    "upd@3/user:age=young": (1 / 3 + 0.2079850) / 2,
    "upd@3/user:age=old": (0.4252840 + 0.5540158) / 2,
}


def test_every_value_of_two_families_by_hand() -> None:
    world = toy_world()
    usual = measure(world.lists, world.reference, (3,)).metrics
    report = measure(world.lists, world.grouped(toy_groups()), (3,))
    assert set(report.metrics) - set(usual) == set(BY_HAND)
    assert list(report.metrics) == metric_keys((3,), toy_groups().names)
    for key, value in BY_HAND.items():
        assert report.metrics[key] == pytest.approx(value, abs=1e-6 if key.startswith(("upd", "mis")) else 1e-12), key
    assert {key: report.metrics[key] for key in usual} == pytest.approx(usual, nan_ok=True, abs=0)


def test_users_behind_the_values() -> None:
    world = toy_world()
    users = measure(world.lists, world.grouped(toy_groups()), (3,)).users_per_metric
    assert [users[f"recall@3/genre={one}"] for one in ("Action", "Comedy", "Drama")] == [5, 4, 3]
    assert [users[f"{name}@3/genre"] for name in ("rsp", "reo")] == [5, 5]
    assert [users[f"recall@3/user:age={one}"] for one in ("young", "old")] == [2, 3]
    assert [users[f"tail_share@3/user:age={one}"] for one in ("young", "old")] == [2, 2]


def test_who_is_in_no_group_and_who_is_unknown_is_told() -> None:
    train = toy_world().reference.train
    assert toy_groups().of(train).notes == (
        "genre: 2 of the 12 items are in no group and count in none.",
        "age: 1 of the 6 users are in no group and count in none.",
    )
    more = grouping(item_groups=pa.table({"item_id": range(14), "kind": ["a", "b"] * 7}))
    assert more.of(train).notes == (
        "the frame of item groups: 2 of its 14 items occur in no log and no list: left out.",
    )


# -------------------------------------------------------------------- a table that restates the built-in groups


def restated(world: World) -> Grouping:
    """`kind`: popular and niche items, named so that they sort like these; `taste`: the users' groups."""
    groups = world.reference.groups
    names = np.array([*USER_GROUPS, ""])[groups.users.label]
    return grouping(
        item_groups=masks_as_groups(("1 popular", "2 niche"), groups.items.popular),
        user_groups=pa.table({"user_id": np.arange(world.user_count), "taste": names}),
    )


TWINS = {
    "popular": "kind=1%20popular",
    "niche": "kind=2%20niche",
    **{group: f"user:taste={group}" for group in USER_GROUPS},
}


OF_FAMILIES_ALONE = ("intra_list_diversity", "miscalibration")


def twin(key: MetricKey) -> str | None:
    if key.name in ("pop_rsp", "pop_reo"):
        return f"{key.name.removeprefix('pop_')}@{key.k}/kind"
    return str(key.of(TWINS[key.group])) if key.group else None


def assert_twins(report: Report) -> None:
    """Values, users and intervals are the same to the last bit."""
    found = found_intervals(report)
    checked = 0
    for key in report.keys:
        if key.chosen is None and (other := twin(key)):
            np.testing.assert_equal(report.metrics[other], report.metrics[key], err_msg=key)
            assert report.users_per_metric[other] == report.users_per_metric[key]
            assert found.get(other) == found.get(key), key
            checked += 1
    assert checked == sum(key.chosen is not None and key.name not in OF_FAMILIES_ALONE for key in report.keys) > 20


@pytest.mark.parametrize("seed", range(3))
def test_restated_groups_have_the_numbers_and_intervals_of_the_built_in_ones(seed: int) -> None:
    world = random_world(np.random.default_rng(seed), user_count=120, item_count=60)
    report = measure(world.lists, world.grouped(restated(world)), (4, 10))
    assert_twins(report)
    assert len(report.per_user) > 0


def test_they_have_them_too_where_no_values_per_user_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "BLOCK_PLACES", 500)
    world = random_world(np.random.default_rng(5), user_count=400, item_count=60)
    report = measure(world.lists, world.grouped(restated(world)), (10,), per_user_limit=10)
    assert report.moments
    assert_twins(report)


@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_blocks_give_what_one_pass_gives(monkeypatch: pytest.MonkeyPatch, missing: measuring.Missing) -> None:
    world = random_world(np.random.default_rng(7), user_count=90)
    reference = world.grouped(random_groups(np.random.default_rng(7), world))
    whole = measure(world.lists, reference, (5,), missing=missing)
    monkeypatch.setattr(measuring, "BLOCK_PLACES", 60)
    np.testing.assert_allclose(
        list(measure(world.lists, reference, (5,), missing=missing).metrics.values()),
        list(whole.metrics.values()),
        rtol=1e-12,
    )


# -------------------------------------------------------------------- intervals


def test_several_groups_have_intervals_that_hold_the_value_less_its_bias() -> None:
    world = random_world(np.random.default_rng(2), user_count=500, item_count=60)
    report = measure(world.lists, world.grouped(random_groups(np.random.default_rng(2), world)), (10,))
    found = found_intervals(report)
    for name in ("rsp", "reo"):
        interval = found[f"{name}@10/shelf"]
        assert not isinstance(interval, str)
        assert 0 <= interval.low < interval.high < 1


def test_small_groups_have_no_interval_and_the_reason() -> None:
    world = random_world(np.random.default_rng(2), user_count=80)
    few = ["few"] * 4 + ["many"] * 76
    chosen = grouping(user_groups=pa.table({"user_id": range(80), "size": few}))
    found = found_intervals(measure(world.lists, world.grouped(chosen), (10,)))
    assert found["tail_share@10/user:size=few"] == interval_code.FEW_DIFFER
    assert not isinstance(found["tail_share@10/user:size=many"], str)


def test_a_group_without_anything_to_count_is_left_out_of_the_parity() -> None:
    world = toy_world()
    kinds = ["a"] * 3 + ["b"] * 4 + ["c"] * 4 + ["unwanted"]  # i11 is in no test
    report = measure(
        world.lists, world.grouped(grouping(item_groups=pa.table({"item_id": range(12), "kind": kinds}))), (3,)
    )
    assert math.isnan(report.metrics["pooled_recall@3/kind=unwanted"])
    recalls = [report.metrics[f"pooled_recall@3/kind={one}"] for one in "abc"]
    assert report.metrics["reo@3/kind"] == pytest.approx(spread(*recalls), abs=1e-12)
    alone = grouping(item_groups=pa.table({"item_id": range(12), "kind": ["a"] * 12}))
    assert math.isnan(measure(world.lists, world.grouped(alone), (3,)).metrics["reo@3/kind"])


# -------------------------------------------------------------------- the share of popular items


@pytest.mark.parametrize(("share", "popular"), [(0.1, [0]), (0.2, [0, 1]), (0.3, [0, 1, 2]), (0.99, list(range(9)))])
def test_another_share_is_popular(share: float, popular: list[int]) -> None:
    """Ten items have a training interaction; three tenths of them are three, whatever 0.3 is in binary."""
    world = toy_world()
    reference = world.grouped(grouping(share))
    assert np.flatnonzero(reference.item_groups.popular).tolist() == popular
    report = measure(world.lists, reference, (3,))
    shown = sum(item in popular for items in world.items.values() for item in items[:3])
    assert report.metrics["aclt@3"] == pytest.approx((14 - shown) / 5)


def test_a_fifth_is_what_nobody_chose() -> None:
    world = toy_world()
    usual = world.reference
    chosen = world.grouped(grouping(0.2))
    assert chosen.item_groups.popular.tolist() == usual.item_groups.popular.tolist()
    assert grouping(0.2).popular_share == Grouping().popular_share == Fraction(1, 5)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, math.nan, math.inf, "0.2", True])
def test_shares_that_are_none(share: object) -> None:
    with pytest.raises(ConfigError, match="popular_share is"):
        grouping(share)


# -------------------------------------------------------------------- memory, and tables that do not fit


def test_memory_grows_with_blocks_not_with_users_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 groups of 3,000 users as numbers of 8 bytes are 1 MB each for hits, relevant, seen and listed items."""
    users, items, groups = 3_000, 200, 40
    generator = np.random.default_rng(1)
    pairs = {u: set(generator.integers(0, 100, 3).tolist()) for u in range(users)}
    relevant = {u: set(generator.integers(100, items, 2).tolist()) for u in range(users)}
    lists = {u: generator.permutation(items)[:5].tolist() for u in range(users)}
    world = World(users, items, pairs, {}, relevant, lists)
    kinds = [f"group {item % groups}" for item in range(items)]
    chosen = grouping(item_groups=pa.table({"item_id": range(items), "kind": kinds}))
    reference, made = world.grouped(chosen), world.lists
    monkeypatch.setattr(measuring, "BLOCK_PLACES", 1_000)

    def peak(metrics: tuple[str, ...]) -> int:
        tracemalloc.start()
        measure(made, reference, metrics=metrics, per_user_limit=10)
        reached = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return reached

    everything = ("recall@5", "rsp@5/kind", "reo@5/kind", *(f"ndcg@5/kind=group {one}" for one in range(5)))
    peak(everything)  # what is kept for good
    assert peak(everything) - peak(("recall@5",)) < 1e6


def test_tables_that_do_not_fit_the_logs_are_refused() -> None:
    train = toy_world().reference.train
    with pytest.raises(DataError, match=r"holds text .*where train has integers"):
        grouping(item_groups=pa.table({"item_id": ["a", "b"], "kind": ["x", "y"]})).of(train)
    with pytest.raises(DataError, match="no item in common with the logs"):
        grouping(item_groups=pa.table({"item_id": [77, 78], "kind": ["x", "y"]})).of(train)
    one = pa.table({"item_id": [1, 2], "kind": ["x", "y"]})
    with pytest.raises(ConfigError, match="two tables of item groups have a column 'kind'"):
        grouping(item_groups=[one, one])
    assert len(grouping(item_groups=[one], user_groups=one.rename_columns(["user_id", "kind"])).tables) == 2
