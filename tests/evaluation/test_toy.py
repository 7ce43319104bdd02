"""Every value of the hand-computed toy: derived groups, aggregates at both cut-offs, values per user."""

import math

import numpy as np
import pytest

from caged.data.popularity import SECTIONS, USER_GROUPS
from caged.evaluation.exposure import exposure
from caged.evaluation.keys import metric_keys
from caged.evaluation.measure import measure
from tests.evaluation.worlds import TOY, toy_world

WORLD = toy_world()
REPORT = measure(WORLD.lists, WORLD.reference, ks=(3, 5))
TOLERANCE = TOY["tolerance"]


def test_the_toy_names_every_key_and_nothing_else():
    assert set(REPORT.metrics) == set(TOY["expected"])
    assert set(REPORT.per_user) == set(TOY["per_user"])
    assert [str(key) for key in metric_keys((3, 5))] == list(REPORT.metrics)


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
    elsewhere = TOY["elsewhere@3"]["recall: Elliot, users without a list skipped"]
    assert report.metrics["recall@3"] == pytest.approx(elsewhere, abs=TOLERANCE)
    assert report.metrics["pooled_recall@3/popular"] == pytest.approx(1 / 3, abs=TOLERANCE)
    assert report.metrics["pooled_recall@3/niche"] == pytest.approx(5 / 10, abs=TOLERANCE)
    assert report.counts["users_relevant_without_list"] == 1
    assert report.metrics["arp@3"] == REPORT.metrics["arp@3"]
