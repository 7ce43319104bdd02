import math

import numpy as np
import pytest

from caged.data.ids import IdMap
from caged.errors import ConfigError, DataError
from caged.evaluation import bias, exposure
from caged.evaluation.keys import MetricKey, metric_keys
from caged.evaluation.measure import measure
from caged.evaluation.reference import Reference
from tests.evaluation.worlds import World, interactions, make_lists, random_world, toy_world


def assert_equals_slow(world: World, ks, missing="zero"):
    report = measure(world.lists, world.reference, ks, missing=missing)
    slow = world.slow(missing)
    assert report.users.tolist() == slow.users
    for key, value in report.metrics.items():
        expected, per_user = slow.value(key)
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9, err_msg=key)
        if per_user is not None:
            np.testing.assert_allclose(report.per_user[key], per_user, rtol=0, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("seed", range(12))
def test_every_metric_equals_the_literal_definition(seed, missing):
    """Short, empty and missing lists, lists with seen items, users without profile, items without interactions."""
    assert_equals_slow(random_world(np.random.default_rng(seed)), ks=(1, 4, 10, 40), missing=missing)


@pytest.mark.parametrize("seed", range(4))
def test_a_catalogue_too_small_for_popular_items(seed):
    world = random_world(np.random.default_rng(seed), user_count=6, item_count=5)
    assert not world.reference.item_groups.popular.any()
    assert_equals_slow(world, ks=(2, 5))
    assert math.isnan(measure(world.lists, world.reference, (2,)).metrics["coverage@2/popular"])


@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_no_lists_at_all(missing):
    world = toy_world()
    world.items = {}
    assert_equals_slow(world, ks=(3,), missing=missing)


def test_no_relevant_items_and_no_training_items():
    world = toy_world()
    world.relevant = {}
    assert_equals_slow(world, ks=(3,))
    world.train, world.valid = {}, {}
    assert_equals_slow(world, ks=(3,))


def test_without_a_relevant_part_accuracy_is_undefined_and_the_rest_unchanged():
    world = toy_world()
    full = world.reference
    with_test = measure(world.lists, full, (3,)).metrics
    without = measure(world.lists, Reference(full.train, full.valid), (3,)).metrics
    for key in ("recall@3", "ndcg@3/niche", "pru@3", "pop_reo@3", "pooled_recall@3/niche"):
        assert math.isnan(without[key])
    for key in ("arp@3", "upd@3/diverse", "gini@3", "exposure_rate@3/popular"):
        assert without[key] == with_test[key]


def test_exposure_in_a_bucket_without_training_interactions_is_undefined():
    """Five used items fill buckets 0, 2, 4, 6, 8; the unused item is in bucket 9, where q = 0."""
    world = World(5, 6, {u: {u} for u in range(5)}, {}, {}, {0: [5]})
    assert math.isnan(measure(world.lists, world.reference, (1,)).metrics["exposure_kl@1"])
    assert_equals_slow(world, ks=(1,))


def test_sums_recompute_the_pooled_metrics_for_any_users():
    """Doubling every user leaves pooled values as they are; half of the users give what the slow metrics give."""
    world = random_world(np.random.default_rng(3))
    reference = world.reference
    report = measure(world.lists, reference, (5,))
    for group in ("popular", "niche"):
        found, relevant = report.sums[f"hits@5/{group}"], report.sums[f"relevant/{group}"]
        assert exposure.pooled_recall(np.tile(found, 2), np.tile(relevant, 2)) == pytest.approx(
            report.metrics[f"pooled_recall@5/{group}"]
        )
    chosen = np.arange(0, len(report.users), 2)
    half = world.slow()
    half.lists = {u: items for u, items in half.lists.items() if u in report.users[chosen]}
    half.users = report.users[chosen].tolist()
    for group in ("popular", "niche"):
        listed, eligible = report.sums[f"listed_unseen@5/{group}"], report.sums[f"eligible/{group}"]
        assert exposure.exposure_rate(listed[chosen], eligible[chosen]) == half.exposure_rate(5, group)
    kl = exposure.exposure_kl(report.sums["bucket_exposure@5"][chosen].sum(axis=0), reference.item_groups.bucket_mass)
    assert kl == pytest.approx(half.exposure_kl(half.exposure(5)), abs=1e-12)
    gap = bias.delta_gap(report.per_user["arp@5"][chosen], report.sums["profile_popularity"][chosen])
    assert gap == pytest.approx(half.delta_gap(5, None), abs=1e-12)


@pytest.mark.parametrize("key", [str(key) for key in metric_keys((4,))])
def test_a_selected_metric_equals_the_one_of_the_full_report(key):
    world = random_world(np.random.default_rng(1))
    alone = measure(world.lists, world.reference, metrics=(key,))
    full = measure(world.lists, world.reference, (4,))
    assert list(alone.metrics) == [key]
    np.testing.assert_equal(alone.metrics[key], full.metrics[key])
    assert alone.users_per_metric[key] == full.users_per_metric[key]


def test_a_selection_computes_nothing_else():
    world = toy_world()
    reference = world.reference
    report = measure(world.lists, reference, metrics=("recall@3",))
    assert set(report.per_user) == {"recall@3"}
    assert report.sums == {}
    assert "profile_sections" not in vars(reference)
    assert "eligible_counts" not in vars(reference)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("recal@20", "unknown metric 'recal'.*did you mean 'recall'"),
        ("recall", "needs a cut-off.*recall@20"),
        ("recall@0", "needs a cut-off"),
        ("recall@20/", "needs a cut-off"),
        ("gini@20/popular", "does not exist; gini has the forms gini@20$"),
        ("exposure_rate@20", "forms exposure_rate@20/popular, exposure_rate@20/niche"),
        ("ndcg_hits100@101", "at most 100"),
    ],
)
def test_wrong_keys_are_explained(key, sentence):
    world = toy_world()
    with pytest.raises(ConfigError, match=sentence):
        measure(world.lists, world.reference, metrics=(key,))


def test_keys_survive_a_round_trip():
    for key in metric_keys((1, 20)):
        assert MetricKey.parse(str(key)) == key


def test_wrong_arguments_are_explained():
    world = toy_world()
    with pytest.raises(ConfigError, match="'ignore'; known: skip, zero"):
        measure(world.lists, world.reference, missing="ignore")
    with pytest.raises(ConfigError, match=r"ks is \[\]"):
        measure(world.lists, world.reference, ks=())
    with pytest.raises(ConfigError, match=r"ks is \[3, 0\]"):
        measure(world.lists, world.reference, ks=(3, 0))
    with pytest.raises(DataError, match=r"item row 12; the catalogue has the rows 0\.\.11"):
        measure(make_lists({0: [12]}), world.reference)
    with pytest.raises(DataError, match=r"user row 6; the reference has the rows 0\.\.5"):
        measure(make_lists({6: [1]}), world.reference)


@pytest.mark.parametrize("part", ["train", "valid"])
def test_a_relevant_pair_that_was_seen_is_an_error(part):
    world = toy_world()
    world.relevant[2] |= {4 if part == "train" else 7}
    with pytest.raises(DataError, match="1 of the 16 relevant pairs"):
        _ = world.reference


def test_parts_with_different_catalogues_are_an_error():
    world = toy_world()
    with pytest.raises(DataError, match="share their users and items"):
        Reference(world.part(world.train), relevant=interactions(world.relevant, 6, 13))
    other = interactions(world.relevant, 6, 12)
    renamed = other.reindexed(IdMap.of(range(7)), other.item_ids)
    with pytest.raises(DataError, match="share their users and items"):
        Reference(world.part(world.train), relevant=renamed)
