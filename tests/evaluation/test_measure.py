import math
from dataclasses import replace

import numpy as np
import pytest

from caged.data.ids import IdMap
from caged.errors import ConfigError, DataError
from caged.evaluation.measure import measure, moments_of
from caged.evaluation.metrics import metric_keys, with_sums
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


def test_what_users_add_gives_the_metrics_of_any_of_them():
    """Every key of half of the users is what the slow metrics give for them."""
    world = random_world(np.random.default_rng(3))
    report = measure(world.lists, world.reference, (5,))
    chosen = np.arange(0, len(report.users), 2)
    half = replace(
        report,
        per_user={key: values[chosen] for key, values in report.per_user.items()},
        sums={name: values[chosen] for name, values in report.sums.items()},
        user_group=report.user_group[chosen],
    )
    slow = world.slow()
    slow.users = report.users[chosen].tolist()
    slow.lists = {u: items for u, items in slow.lists.items() if u in slow.users}
    slow.relevant = {u: items for u, items in slow.relevant.items() if u in slow.users}
    for key, formula in with_sums(report.keys).items():
        value = float(formula.value(moments_of(key, formula, half).sums, report.bucket_mass))
        np.testing.assert_allclose(value, slow.value(key)[0], rtol=0, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("key", metric_keys((4,)))
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
