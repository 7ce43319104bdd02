"""How what chance showed is ordered: by hand, by a slow reading of the definitions, at the edges."""

import math

import numpy as np
import pytest

from caged.data.popularity import ITEM_GROUPS
from caged.data.shown import ShownAtRandom
from caged.errors import DataError
from caged.evaluation import measure as measuring
from caged.evaluation.intervals import intervals
from caged.evaluation.lists import PackedLists
from caged.evaluation.measure import measure
from caged.evaluation.metrics import keys_of_shown
from caged.evaluation.reference import Reference
from caged.evaluation.shown import Candidates, ShownBlock, ShownScores, listed_scores
from tests.evaluation.shown_worlds import TOY_VALUES, random_shown_world, shown_toy
from tests.evaluation.worlds import interactions, make_lists


def test_the_toy_by_hand():
    world = shown_toy()
    report = measure(world.lists, world.reference, metrics=keys_of_shown([2]), scores=world.scores)
    assert report.metrics == pytest.approx(TOY_VALUES, abs=5e-7)
    assert report.users_per_metric == {key: 1 if key == "shown_auc/popular" else 2 for key in TOY_VALUES}
    assert report.per_user["shown_auc"].tolist() == [0.75, 0.5]
    np.testing.assert_allclose(report.per_user["shown_ndcg@2"], [0.613147, 0.630930], atol=5e-7)
    assert report.counts["users_shown_both"] == 2
    assert (report.counts["shown_liked"], report.counts["shown_not_liked"]) == (3, 5)


# ---------------------------------------------------------------- the definitions, slowly


def slow_values(world, key):
    """One value per user with something liked and something not, straight from the words."""
    candidates, groups = world.reference.candidates, world.reference.item_groups
    found = []
    for place, (start, stop) in enumerate(zip(candidates.offsets[:-1], candidates.offsets[1:], strict=True)):
        assert len(candidates.users) > place
        rows = range(start, stop)
        liked = [n for n in rows if candidates.liked[n]]
        others = [n for n in rows if not candidates.liked[n]]
        if key.name.startswith("shown_auc"):
            if key.group is not None:
                liked = [n for n in liked if groups.member(key.group)[candidates.items[n]]]
            pairs = [(a, b) for a in liked for b in others]
            if key.name == "shown_auc_within":
                bucket = groups.bucket[candidates.items]
                pairs = [(a, b) for a, b in pairs if bucket[a] == bucket[b]]
            points = [0.5 + 0.5 * np.sign(world.scores[a] - world.scores[b]) for a, b in pairs]
            found.append(np.mean(points) if points else math.nan)
            continue
        ranked = sorted(rows, key=lambda n: (-world.scores[n], candidates.items[n]))[: key.k]
        hits = [bool(candidates.liked[n]) for n in ranked]
        if key.name == "shown_precision":
            found.append(np.mean(hits))
        else:
            gained = sum(1 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
            found.append(gained / sum(1 / math.log2(place + 2) for place in range(min(key.k, len(liked)))))
    return np.array(found)


@pytest.mark.parametrize("seed", range(5))
def test_every_key_is_the_slow_one(seed, monkeypatch):
    world = random_shown_world(seed)
    keys = keys_of_shown([1, 3, 50])
    for places in (1 << 20, 7):  # in one block, and in blocks of a few users
        monkeypatch.setattr(measuring, "BLOCK_PLACES", places)
        report = measure(world.lists, world.reference, metrics=keys, scores=world.scores)
        known = np.isin(report.users, world.reference.candidates.users)
        for key in keys:
            values = report.per_user[key]
            np.testing.assert_allclose(values[known], slow_values(world, key), rtol=0, atol=1e-12, err_msg=key)
            assert np.isnan(values[~known]).all()


def test_only_the_order_of_scores_matters_and_chance_is_one_half():
    world = random_shown_world(3)
    keys = keys_of_shown([3])

    def values(scores):
        return measure(world.lists, world.reference, metrics=keys, scores=scores).metrics

    assert values(np.exp(7 * world.scores)) == pytest.approx(values(world.scores))
    assert values(np.zeros(len(world.scores)))["shown_auc"] == 0.5
    turned = values(-world.scores)
    for key in ("shown_auc", "shown_auc_within", *(f"shown_auc/{group}" for group in ITEM_GROUPS)):
        assert turned[key] == pytest.approx(1 - values(world.scores)[key])
    liked = world.reference.candidates.liked
    assert {value for key, value in values(liked.astype(float)).items() if "precision" not in key} == {1.0}


def test_infinite_scores_are_tied_with_each_other():
    one = ShownBlock(1, np.zeros(3, int), np.arange(3), np.array([True, False, False]), np.array([-np.inf, -np.inf, 1]))
    assert one.auc().tolist() == [0.25]


def test_there_are_intervals_as_of_any_mean():
    world = random_shown_world(1, users=80)
    report = measure(world.lists, world.reference, metrics=keys_of_shown([3]), scores=world.scores)
    found = intervals(report)
    assert set(found) == set(report.metrics)
    assert all(one.low < report.metrics[key] < one.high for key, one in found.items())


# ---------------------------------------------------------------- candidates


def test_candidates_are_those_of_users_with_something_liked_and_something_not():
    liked, others = interactions({0: [3, 1], 1: [2]}, 4, 5), interactions({0: [2], 2: [0]}, 4, 5)
    found = Candidates.of(ShownAtRandom(liked, others))
    assert (found.users.tolist(), found.offsets.tolist(), found.owners.tolist()) == ([0], [0, 3], [0, 0, 0])
    assert (found.items.tolist(), found.liked.tolist()) == ([1, 2, 3], [True, False, True])


def test_nobody_was_shown_both():
    liked, others = interactions({0: [1]}, 3, 4), interactions({1: [2]}, 3, 4)
    reference = Reference(interactions({2: [3]}, 3, 4), None, liked, shown=ShownAtRandom(liked, others))
    report = measure(make_lists({0: [2]}), reference, metrics=keys_of_shown([2]), scores=np.zeros(0))
    assert all(math.isnan(value) for value in report.metrics.values())
    assert report.counts["users_shown_both"] == 0


def test_scores_that_do_not_fit_are_refused():
    candidates = random_shown_world(0).reference.candidates
    with pytest.raises(DataError, match="there are 1 scores for"):
        ShownScores(candidates, np.zeros(1))
    with pytest.raises(DataError, match="is NaN where a number is needed"):
        ShownScores(candidates, np.full(len(candidates), np.nan))


@pytest.mark.parametrize(("train", "valid", "part"), [([0, 2], None, "train or valid"), ([0], [2], "train or valid")])
def test_what_was_not_liked_and_seen_is_an_error(train, valid, part):
    liked, others = interactions({0: [1]}, 2, 4), interactions({0: [2, 3]}, 2, 4)
    seen = None if valid is None else interactions({0: valid}, 2, 4)
    with pytest.raises(DataError, match=f"1 of the 2 pairs of test_negative are also in {part}"):
        Reference(interactions({0: train}, 2, 4), seen, liked, shown=ShownAtRandom(liked, others))


def test_what_was_not_liked_and_is_in_the_test_is_an_error():
    test, others = interactions({0: [1, 2]}, 2, 4), interactions({0: [2]}, 2, 4)
    shown = ShownAtRandom(interactions({0: [1]}, 2, 4), others)
    with pytest.raises(DataError, match="1 of the 1 pairs of test_negative are also in test"):
        Reference(interactions({1: [3]}, 2, 4), None, test, shown=shown)


# ---------------------------------------------------------------- lists that somebody else made


@pytest.mark.parametrize("block", [1, 1 << 14])
def test_places_of_lists_are_scores_and_what_they_lack_is_tied_behind(block, monkeypatch):
    monkeypatch.setattr("caged.evaluation.shown.BLOCK_USERS", block)
    liked = interactions({0: [1], 1: [0, 4], 3: [2]}, 4, 6)
    others = interactions({0: [2, 5], 1: [3], 3: [1]}, 4, 6)
    candidates = Candidates.of(ShownAtRandom(liked, others))
    lists = PackedLists(
        np.array([0, 1, 2]), np.array([0, 3, 5, 6]), np.array([5, 2, 3, 4, 3, 1]), np.array([0, 0, 2, 0, 1, 0])
    )
    scores = dict(
        zip(zip(candidates.owners, candidates.items, strict=True), listed_scores(lists, candidates, 6), strict=True)
    )
    assert scores[0, 5] == scores[0, 2] == 0  # tied at the top
    assert scores[0, 1] == -math.inf
    assert scores[1, 4] == 0 > scores[1, 3] == -1 > scores[1, 0]
    assert scores[3, 1] == scores[3, 2] == -math.inf  # no list at all: everything is tied
