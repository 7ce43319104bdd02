"""Metrics that know what users truly like."""

from __future__ import annotations

import numpy as np
import pytest

from caged.data.market import Market
from caged.data.market.truth import (
    best_true_preference_at_k,
    true_preference_at_k,
    true_preference_gap_at_k,
)
from caged.errors import DataError


def test_true_preference_at_k_averages_what_is_listed(small: Market) -> None:
    matrix = small.world.preference_matrix()
    lists = np.array([[3, 5, 8], [2, -1, -1], [-1, -1, -1]])
    values = true_preference_at_k(lists, np.array([10, 4, 0]), small.world)
    assert values[0] == pytest.approx((matrix[10, 3] + matrix[10, 5] + matrix[10, 8]) / 3)
    assert values[1] == pytest.approx(matrix[4, 2])
    assert np.isnan(values[2])


def test_best_list_avoids_seen_pairs_and_has_no_gap(small: Market) -> None:
    matrix, train = small.world.preference_matrix(), small.interactions("train")
    users = np.array([17, 3, 64])
    seen = np.zeros(matrix.shape, dtype=bool)
    seen[train.users, train.items] = True
    allowed = [np.where(seen[user], -1.0, matrix[user]) for user in users]
    lists = np.stack([np.argsort(-row)[:5] for row in allowed])
    best = best_true_preference_at_k(users, 5, small.world, train.keys)
    assert best == pytest.approx([np.sort(row)[-5:].mean() for row in allowed])
    assert (best_true_preference_at_k(users, 5, small.world) >= best).all()
    assert true_preference_gap_at_k(lists, users, small.world, train.keys) == pytest.approx(np.zeros(3), abs=1e-12)
    worse = np.stack([np.argsort(-row)[5:10] for row in allowed])
    assert (true_preference_gap_at_k(worse, users, small.world, train.keys) > 0).all()


def test_best_list_with_few_items_left(small: Market) -> None:
    matrix = small.world.preference_matrix()
    all_but_two, everything = np.arange(88), 90 + np.arange(90)
    best = best_true_preference_at_k(np.array([0, 1]), 5, small.world, np.concatenate((all_but_two, everything)))
    assert best[0] == pytest.approx(matrix[0, 88:].mean())
    assert np.isnan(best[1])


def test_truth_refuses_wrong_shapes(small: Market) -> None:
    with pytest.raises(DataError, match=r"lists have shape \(3,\) for 1 users"):
        true_preference_at_k(np.array([1, 2, 3]), np.array([0]), small.world)
    with pytest.raises(DataError, match="k is 0; allowed are integers from 1"):
        best_true_preference_at_k(np.array([0]), 0, small.world)
