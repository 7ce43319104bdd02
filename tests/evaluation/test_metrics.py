"""The table of metrics: every value of the hand-computed toy, rows that are broken one by one, gradients, keys."""

import copy
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

from caged.data.popularity import SECTIONS, USER_GROUPS
from caged.errors import ConfigError
from caged.evaluation.exposure import exposure
from caged.evaluation.intervals import intervals
from caged.evaluation.measure import measure, moments_of
from caged.evaluation.metrics import (
    BUCKET_EXPOSURE,
    ELIGIBLE,
    HITS,
    LISTED_UNSEEN,
    METRICS,
    PROFILE_POPULARITY,
    RELEVANT,
    Mean,
    Metric,
    MetricKey,
    OfSums,
    keys_of_shown,
    metric_keys,
    with_sums,
)
from caged.evaluation.reference import Reference
from tests.evaluation.shown_worlds import random_shown_world
from tests.evaluation.worlds import TOY, random_groups, random_world, toy_world

WORLD = toy_world()
REPORT = measure(WORLD.lists, WORLD.reference, ks=(3, 5))
RANDOM = random_world(np.random.default_rng(1), user_count=60)
CHOSEN = random_groups(np.random.default_rng(1), RANDOM)
SHOWN = random_shown_world(1, users=80)
TOLERANCE = TOY["tolerance"]


def test_the_toy_names_every_key_and_nothing_else():
    assert set(REPORT.metrics) == set(TOY["expected"])
    assert set(REPORT.per_user) == set(TOY["per_user"])
    assert metric_keys((3, 5)) == list(REPORT.metrics)


@pytest.mark.parametrize("key", TOY["expected"])
def test_aggregate(key):
    assert REPORT.metrics[key] == pytest.approx(TOY["expected"][key], abs=TOLERANCE, rel=0)


@pytest.mark.parametrize("key", TOY["per_user"])
def test_per_user(key):
    expected = [math.nan if value is None else value for value in TOY["per_user"][key]]
    np.testing.assert_allclose(REPORT.per_user[key], expected, rtol=0, atol=TOLERANCE)
    assert REPORT.users_per_metric[key] == np.count_nonzero(~np.isnan(expected))


def test_users_behind_the_aggregates_without_per_user_values():
    users = REPORT.users_per_metric
    assert (users["gini@3"], users["delta_gap@3"], users["exposure_rate@3/niche"], users["pop_rsp@3"]) == (5, 5, 5, 5)
    assert (users["pop_reo@3"], users["pooled_recall@3/popular"], users["pooled_recall@3/niche"]) == (5, 3, 5)
    assert [users[f"recall@3/{group}"] for group in USER_GROUPS] == [1, 3, 1]
    assert [users[f"tail_share@3/{group}"] for group in USER_GROUPS] == [1, 3, 1]


def test_report_users_and_counts():
    assert REPORT.users.tolist() == TOY["toy"]["users"]
    assert REPORT.counts == TOY["derived"]["counts"]


def test_degrees_and_item_groups():
    derived, groups = TOY["derived"], WORLD.reference.item_groups
    assert groups.degrees.tolist() == derived["degree"]
    assert groups.degrees.sum() == derived["interactions"]
    assert WORLD.reference.trained_users == derived["users_with_train"]
    assert np.flatnonzero(groups.popular).tolist() == derived["popular"]
    assert np.flatnonzero(groups.niche).tolist() == derived["niche"]
    for section in SECTIONS:
        assert np.flatnonzero(groups.in_section(section)).tolist() == derived[section]
    assert groups.bucket.tolist() == derived["bucket"]


def test_user_groups():
    for name, users in TOY["derived"]["user_groups"].items():
        assert np.flatnonzero(WORLD.reference.user_groups.member(name)).tolist() == users
    assert [USER_GROUPS[label] for label in REPORT.user_group] == [
        next(name for name, users in TOY["derived"]["user_groups"].items() if u in users) for u in range(6)
    ]


@pytest.mark.parametrize("k", [3, 5])
def test_exposure(k):
    assert exposure(WORLD.lists.items, WORLD.item_count, k).tolist() == TOY["derived"][f"exposure@{k}"]


def test_skipping_users_without_a_list_is_the_mean_over_the_listed():
    """`elsewhere@3` gives recall with u4 left out: 23/48; u4's relevant items also leave the pooled recalls."""
    report = measure(WORLD.lists, WORLD.reference, ks=(3,), missing="skip")
    assert report.users.tolist() == [0, 1, 2, 3, 5]
    for name in ("recall: Elliot", "precision: Elliot", "ndcg: Elliot nDCGRendle2020"):
        elsewhere = TOY["elsewhere@3"][f"{name}, users without a list skipped"]
        assert report.metrics[f"{name.partition(':')[0]}@3"] == pytest.approx(elsewhere, abs=TOLERANCE)
    assert report.metrics["pooled_recall@3/popular"] == pytest.approx(1 / 3, abs=TOLERANCE)
    assert report.metrics["pooled_recall@3/niche"] == pytest.approx(5 / 10, abs=TOLERANCE)
    assert report.counts["users_relevant_without_list"] == 1
    assert report.metrics["arp@3"] == REPORT.metrics["arp@3"]


def test_lenskit_discounts_ndcg_otherwise():
    """log2(max(rank, 2)): the first two ranks weigh the same, which is not our NDCG."""
    discounts = 1 / np.log2(np.maximum(np.arange(1, 4), 2))
    found = []
    for user, wanted in TOY["toy"]["test"].items():
        listed = TOY["toy"]["lists"].get(user, [])[:3]
        gained = sum(discounts[place] for place, item in enumerate(listed) if item in wanted)
        found.append(gained / discounts[: len(wanted)].sum())
    elsewhere = TOY["elsewhere@3"]["ndcg: LensKit, discount log2(max(rank, 2))"]
    assert np.mean(found) == pytest.approx(elsewhere, abs=TOLERANCE)
    assert REPORT.metrics["ndcg@3"] != pytest.approx(elsewhere, abs=0.01)


# ---------------------------------------------------------------- rows


def broken(name: str, **changes) -> Metric:
    return replace(METRICS[name], formula=replace(METRICS[name].formula, **changes))


def all_numbers() -> dict[str, float]:
    """Every value and interval of a report, and of one about what chance showed."""
    numbers = {}
    of_chance = measure(SHOWN.lists, SHOWN.reference, metrics=keys_of_shown([4]), scores=SHOWN.scores)
    for report in (measure(RANDOM.lists, RANDOM.grouped(CHOSEN), ks=(4,)), of_chance):
        found = intervals(report)
        numbers |= report.metrics
        numbers |= {f"{key} {side}": getattr(found[key], side) for key in found for side in ("low", "high")}
    return numbers


def changed(before: dict[str, float], after: dict[str, float]) -> set[str]:
    """The metrics whose numbers differ."""
    keys = before.keys() | after.keys()  # an interval may appear or go
    pairs = {key: (before.get(key, math.nan), after.get(key, math.nan)) for key in keys}
    differ = [key for key, (a, b) in pairs.items() if not np.array_equal(a, b, equal_nan=True)]
    return {re.split("[@/ ]", key)[0] for key in differ}


@pytest.fixture(scope="module")
def before() -> dict[str, float]:
    """While every row is right."""
    return all_numbers()


@pytest.mark.parametrize("name", METRICS)
def test_a_wrong_formula_is_seen_in_the_report(name, before, monkeypatch):
    right = METRICS[name].formula.value
    monkeypatch.setitem(METRICS, name, broken(name, value=lambda *arguments: right(*arguments) + 1))
    assert changed(before, all_numbers()) == {name}


@pytest.mark.parametrize("name", [name for name in METRICS if isinstance(METRICS[name].formula, OfSums)])
def test_something_wrong_that_users_add_is_seen_in_the_report(name, before, monkeypatch):
    right = METRICS[name].formula.adds

    def doubled(users, key):
        first, *others = right(users, key)
        return [2.0 * first + np.arange(len(first)).reshape(-1, *[1] * (first.ndim - 1)), *others]

    monkeypatch.setitem(METRICS, name, broken(name, adds=doubled))
    assert changed(before, all_numbers()) == {name}


@pytest.mark.parametrize("name", [name for name in METRICS if isinstance(METRICS[name].formula, Mean)])
def test_a_wrong_value_of_users_is_seen_in_the_report(name, before, monkeypatch):
    right = METRICS[name].formula.of_user
    monkeypatch.setitem(METRICS, name, broken(name, of_user=lambda *arguments: right(*arguments) + 1))
    rests_on_it = {"delta_gap"} if name == "arp" else set()
    assert changed(before, all_numbers()) == {name} | rests_on_it


@pytest.mark.parametrize(
    ("part", "resting_on_it"),
    [
        (HITS, {"pooled_recall", "pop_reo", "reo"}),
        (RELEVANT, {"pooled_recall", "pop_reo", "reo"}),
        (LISTED_UNSEEN, {"exposure_rate", "pop_rsp", "rsp"}),
        (ELIGIBLE, {"exposure_rate", "pop_rsp", "rsp"}),
        (PROFILE_POPULARITY, {"delta_gap"}),
        (BUCKET_EXPOSURE, {"exposure_kl"}),
    ],
    ids=lambda value: getattr(value, "column", ""),
)
def test_a_wrong_sum_is_seen_in_the_report(part, resting_on_it, before, monkeypatch):
    right = part.of_lists
    monkeypatch.setitem(vars(part), "of_lists", lambda lists, k, group: right(lists, k, group) + 1)
    assert changed(before, all_numbers()) == resting_on_it


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_the_values(seed):
    """Central differences of every key, relative to the size of each sum."""
    world = random_world(np.random.default_rng(seed))
    report = measure(world.lists, world.grouped(random_groups(np.random.default_rng(seed), world)), (10,))
    for key, formula in with_sums(report.keys).items():
        if math.isnan(report.metrics[key]):
            continue
        sums, mass = moments_of(key, formula, report).sums, report.bucket_mass
        steps = np.diag(1e-6 * sums)
        value = formula.signed or formula.value
        expected = (value(sums + steps, mass) - value(sums - steps, mass)) / 2e-6
        gradient = formula.gradient(sums, mass)
        np.testing.assert_allclose(gradient * sums, expected, rtol=0, atol=1e-7, err_msg=key)
        assert float(gradient @ sums) == pytest.approx(0, abs=1e-9)  # Euler: see `pooling`


def test_a_row_that_needs_a_test_has_no_value_without_one_and_the_others_have():
    full = WORLD.reference
    without = measure(WORLD.lists, Reference(full.train, full.valid), ks=(3,))
    for key in without.keys:
        assert math.isnan(without.metrics[key]) == (key.metric.needs_test or math.isnan(REPORT.metrics[key])), key


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("recal@20", "unknown metric 'recal'.*did you mean 'recall'"),
        ("recall", "needs a cut-off.*recall@20"),
        ("recall@0", "needs a cut-off"),
        ("recall@020", "a zero in front; write recall@20$"),
        ("recall@20/", "needs a cut-off"),
        ("shown_auc@5", "shown_auc has no cut-off, write shown_auc"),
        ("shown_auc/", "has no cut-off"),
        ("shown_auc/blockbuster", "forms shown_auc, shown_auc/popular, shown_auc/niche, shown_auc/FAMILY=GROUP$"),
        ("shown_ndcg", "needs a cut-off"),
        ("gini@20/popular", "does not exist; gini has the forms gini@20$"),
        ("gini@20/genre=Drama", "does not exist; gini has the forms gini@20$"),
        ("upd@20/genre=Drama", "upd@20/user:FAMILY=GROUP$"),
        ("recall@20/genre", "forms .*recall@20/FAMILY=GROUP, recall@20/user:FAMILY=GROUP$"),
        ("recall@20/=Drama", "does not exist"),
        ("recall@20/genre=", "does not exist"),
        ("rsp@20", "rsp has the forms rsp@20/FAMILY$"),
        ("reo@20/user:age", "reo has the forms reo@20/FAMILY$"),
        ("recall@20/genre=Drama", "no group 'genre=Drama'"),
        ("exposure_rate@20", "forms exposure_rate@20/popular, exposure_rate@20/niche"),
        ("ndcg_hits100@101", "at most 100"),
    ],
)
def test_wrong_keys_are_explained(key, sentence):
    with pytest.raises(ConfigError, match=sentence):
        measure(WORLD.lists, WORLD.reference, metrics=(key,))


def test_keys_survive_a_round_trip():
    for key in metric_keys((1, 20), CHOSEN.names):
        for again in (MetricKey.parse(str(key)), copy.deepcopy(key), pickle.loads(pickle.dumps(key))):
            assert (again.name, again.k, again.group) == (key.name, key.k, key.group)
            assert again == key == str(key)
