"""Rows whose values are derived here by hand, their extremes, and the formulas of other libraries."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.evaluation.measure import measure
from tests.evaluation.worlds import TOY, World, random_world, toy_world

K = 3
TOY_REPORT = measure(toy_world().lists, toy_world().reference, (2, K, 5))
fast = settings(max_examples=40, deadline=None)
worlds = st.builds(lambda seed: random_world(np.random.default_rng(seed), 12, 20), st.integers(0, 10**6))
cuts = st.integers(1, 12)


def toy(name: str, k: int = K) -> float:
    return TOY_REPORT.metrics[f"{name}@{k}"]


def metrics_of(world: World, k: int) -> dict[str, float]:
    return measure(world.lists, world.reference, (k,)).metrics


def everybody_gets(*lists: list[int]) -> World:
    """A world of seven items in which each user had one, and gets one of the lists."""
    train = {user: {user} for user in range(len(lists))}
    return World(len(lists), 7, train, {}, {}, dict(enumerate(lists)))


# ---------------------------------------------------------------- accuracy, by hand


def test_f1():
    """2 hits / (k + R): u0 2/7, u2 4/7, u3 2/5, u4 0, u5 4/6; their sum is 202/105."""
    assert toy("f1") == pytest.approx(202 / 525, abs=1e-12)


def test_r_precision():
    """At k = 5, where the places that count are the first R: u0 2/4, u2 3/4, u3 1/2, u4 0, u5 2/3.

    The list of u5 has two places for its three relevant items; the missing one is a miss. At k = 3 no user has a hit
    behind place R, and R > k for u0 and u2: there it is the recall.
    """
    assert toy("r_precision", 5) == pytest.approx(29 / 60, abs=1e-12)
    assert toy("r_precision") == pytest.approx(toy("recall"), abs=1e-12)


def test_r_precision_reads_no_place_behind_the_number_of_relevant_items():
    world = World(2, 6, {0: {0}}, {}, {1: {3, 4}}, {1: [3, 5, 4]})
    assert metrics_of(world, 3)["r_precision@3"] == 0.5


def test_rbp():
    """0.2 times: u0 1, u2 0.8 + 0.64, u3 0.8, u4 0, u5 1 + 0.8; together 5.04."""
    assert toy("rbp") == pytest.approx(0.2 * 5.04 / 5, abs=1e-12)


def test_a_full_list_of_hits_has_an_rbp_of_one_less_the_residual():
    world = World(2, 6, {0: {0}}, {}, {1: {1, 2, 3, 4}}, {1: [3, 1, 2]})
    assert metrics_of(world, 3)["rbp@3"] == pytest.approx(1 - 0.8**3, abs=1e-12)


def test_serendipity():
    """New bestsellers of u0 are 3 4 5, of u2 (who also has 7 in valid) 1 3 5, of u3 2 3 4, of u5 0 1 3.

    Only i9, which u2 wanted and found, is not among them: 1/3 for u2, 0 for the four others.
    """
    assert toy("serendipity") == pytest.approx(1 / 15, abs=1e-12)


def test_an_item_that_nobody_used_is_no_bestseller():
    """Two items are used, so that the list of three bestsellers ends there; item 2 is the first of the others."""
    world = World(3, 5, {0: {0, 1}, 1: {0}}, {}, {2: {1, 2}}, {2: [0, 1, 2]})
    assert metrics_of(world, 3)["serendipity@3"] == pytest.approx(1 / 3)


@fast
@given(worlds, cuts)
def test_lists_of_bestsellers_have_no_serendipity_and_no_list_has_more_than_precision(world, k):
    report = measure(world.lists, world.reference, (k,))
    surprise, precise = report.per_user[f"serendipity@{k}"], report.per_user[f"precision@{k}"]
    defined = ~np.isnan(precise)
    assert (surprise[defined] <= precise[defined]).all()
    slow = world.slow()
    order = {user: sorted(slow.bestsellers(user, k), key=lambda i: (-slow.degree[i], i)) for user in world.items}
    assert metrics_of(replace(world, items={u: row for u, row in order.items() if row}), k)[f"serendipity@{k}"] in (
        0.0,
        pytest.approx(math.nan, nan_ok=True),
    )


@fast
@given(worlds, cuts)
def test_accuracy_of_a_list_lies_where_its_parts_allow(world, k):
    """F1 between the smaller and the larger of precision and recall; R-precision at most the recall."""
    report = measure(world.lists, world.reference, (k,))
    recall, precise, f1, r_precision = (
        np.nan_to_num(report.per_user[f"{name}@{k}"]) for name in ("recall", "precision", "f1", "r_precision")
    )
    assert (f1 >= np.minimum(recall, precise) - 1e-12).all()
    assert (f1 <= np.maximum(recall, precise) + 1e-12).all()
    assert (r_precision <= recall + 1e-12).all()


# ---------------------------------------------------------------- all lists at once, by hand


def test_exposure_gini():
    """1, d = 1/log2 3 and h = 1/2 by place: i3 and i4 have 1 + 2d, i2 1 + d, i0, i8 and i6 (2h) 1, i9 and i10 h.

    Ascending over twelve items, with the weights -11, -9, ... 11 of the Gini.
    """
    d, h = 1 / math.log2(3), 0.5
    ascending = [0, 0, 0, 0, h, h, 1, 1, 1, 1 + d, 1 + 2 * d, 1 + 2 * d]
    weighted = sum(weight * amount for weight, amount in zip(range(-11, 12, 2), ascending, strict=True))
    assert toy("exposure_gini") == pytest.approx(weighted / (12 * sum(ascending)), abs=1e-12)


def test_exposure_gini_knows_the_top_of_a_list_from_its_end():
    """Every item is in two lists, but the first two are always at the top."""
    one = metrics_of(everybody_gets([0, 4], [1, 5], [0, 4], [1, 5]), 2)
    other = metrics_of(everybody_gets([0, 4], [1, 5], [4, 0], [5, 1]), 2)
    assert one["gini@2"] == other["gini@2"]
    assert one["exposure_gini@2"] > other["exposure_gini@2"] == pytest.approx(other["gini@2"], abs=1e-12)


def test_personalisation():
    """Items in common, of 3: u0 and u1 1, u0 and u2 1, u0 and u3 2, u1 and u3 2; u5 has 2 items, 1 of u0 and of u2."""
    assert toy("personalisation") == pytest.approx(1 - (6 / 3 + 2 / math.sqrt(6)) / 10, abs=1e-12)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([[0, 1, 2], [2, 0, 1], [1, 2, 0]], 0.0),  # the order plays no part
        ([[0, 1], [2, 3], [4, 5]], 1.0),
        ([[0, 1], [0, 2]], 0.5),
        ([[0, 1]], math.nan),
    ],
)
def test_extremes_of_personalisation(lists, expected):
    assert metrics_of(everybody_gets(*lists), 3)["personalisation@3"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@fast
@given(worlds, cuts)
def test_personalisation_is_that_of_the_pairs_one_by_one(world, k):
    tops = [set(row[:k]) for row in world.items.values() if row]
    alike = [len(a & b) / math.sqrt(len(a) * len(b)) for a, b in combinations(tops, 2)]
    expected = 1 - sum(alike) / len(alike) if alike else math.nan
    assert metrics_of(world, k)[f"personalisation@{k}"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


# ---------------------------------------------------------------- as others compute it


def toy_lists(k: int) -> dict[int, list[int]]:
    return {int(user): row[:k] for user, row in TOY["toy"]["lists"].items()}


def test_recmetrics_personalization_is_ours_for_lists_of_one_length():
    """Its formula, on the matrix of users and items; it gave 0.65 for the first two places of the toy."""
    matrix = np.array([[item in row for item in range(12)] for row in toy_lists(2).values()], dtype=float)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    similarity = unit @ unit.T
    users = len(matrix)
    theirs = 1 - (similarity.sum() - users) / (users * (users - 1))
    assert toy("personalisation", 2) == pytest.approx(theirs, abs=1e-12)
    assert theirs == pytest.approx(0.65)


def test_rectools_serendipity_is_another():
    """The mean over the list of max(popularity rank - rank, 0)/N where relevant; equal degrees have one rank."""
    degrees = TOY["derived"]["degree"]
    by_popularity = [sorted(set(degrees), reverse=True).index(degree) + 1 for degree in degrees]
    theirs = [
        sum(max(by_popularity[i] - rank, 0) for rank, i in enumerate(row, 1) if i in wanted) / 12 / len(row)
        for user, row in toy_lists(K).items()
        for wanted in [TOY["toy"]["test"].get(str(user), [])]
    ]
    elsewhere = TOY["elsewhere@3"]["serendipity: RecTools"]
    assert np.mean(theirs) == pytest.approx(elsewhere, abs=1e-9)
    assert toy("serendipity") != pytest.approx(elsewhere, abs=0.02)


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("r_precision", "r_precision: RecTools Precision(r_precision=True), over min(k, R)"),
        ("rbp", "rbp: LensKit, patience 0.85"),
        ("exposure_gini", "exposure_gini: LensKit, place r counts 0.85^(r - 1)"),
    ],
)
def test_other_parameters_give_other_numbers(name, elsewhere):
    hits = {0: [1], 2: [2, 3], 3: [2], 4: [], 5: [1, 2]}  # ranks
    relevant = {0: 4, 2: 4, 3: 2, 4: 2, 5: 3}
    amounts = np.zeros(12)
    for row in toy_lists(K).values():
        amounts[row] += 0.85 ** np.arange(len(row))
    theirs = {
        "r_precision": np.mean([len(hits[u]) / min(K, relevant[u]) for u in hits]),
        "rbp": np.mean([0.15 * sum(0.85 ** (rank - 1) for rank in ranks) for ranks in hits.values()]),
        "exposure_gini": (np.arange(-11, 12, 2) * np.sort(amounts)).sum() / (12 * amounts.sum()),
    }[name]
    assert theirs == pytest.approx(TOY["elsewhere@3"][elsewhere], abs=1e-9)
    assert toy(name) != pytest.approx(theirs, abs=1e-3)
