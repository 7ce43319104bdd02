"""What random choice and mere popularity reach where chance showed items."""

import numpy as np
import pytest

from caged.evaluation.floors import MOST_POPULAR, RANDOM_CHOICE, shown_floors
from caged.evaluation.measure import measure
from caged.evaluation.metrics import keys_of_shown
from tests.evaluation.shown_worlds import random_shown_world, shown_toy


def test_the_toy_by_hand():
    world = shown_toy()
    found = measure(world.lists, world.reference, metrics=keys_of_shown([2]), scores=world.scores).floors
    assert list(found) == [RANDOM_CHOICE, MOST_POPULAR]
    # User 20 liked 2 of 5, user 21 1 of 3; the best two places are worth 1 + 1/log2(3) = 1.63093.
    assert found[RANDOM_CHOICE] == pytest.approx(
        {
            **dict.fromkeys(("shown_auc", "shown_auc/popular", "shown_auc/niche", "shown_auc_within"), 0.5),
            "shown_precision@2": (2 / 5 + 1 / 3) / 2,
            "shown_ndcg@2": (2 / 5 + 1.6309298 / 3) / 2,
        }
    )
    # By degree: i0 liked, i1, i4, i5 liked, i6: 4 of 6 pairs; i6, i7 liked, i9: 1 of 2.
    assert found[MOST_POPULAR]["shown_auc"] == pytest.approx((4 / 6 + 1 / 2) / 2)
    assert found[MOST_POPULAR]["shown_precision@2"] == 0.5


def test_random_choice_is_what_many_random_orders_reach_on_average():
    world = random_shown_world(2)
    keys = keys_of_shown([1, 4])
    candidates, users = world.reference.candidates, world.reference.relevant_users
    expected = shown_floors(world.reference, candidates, keys, users)[RANDOM_CHOICE]
    rng = np.random.default_rng(0)
    drawn = [
        measure(world.lists, world.reference, metrics=keys, scores=rng.random(len(candidates))).metrics
        for _ in range(300)
    ]
    for key in keys:
        values = np.array([one[key] for one in drawn])
        assert abs(values.mean() - expected[key]) < 4 * values.std() / np.sqrt(len(values)), key


def test_mere_popularity_is_the_number_of_training_users():
    world = random_shown_world(4)
    keys = keys_of_shown([3])
    candidates = world.reference.candidates
    degrees = world.reference.item_groups.degrees[candidates.items].astype(float)
    report = measure(world.lists, world.reference, metrics=keys, scores=degrees)
    assert report.floors[MOST_POPULAR] == pytest.approx(report.metrics)
