"""A sample of the users and their pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.seen import Seen
from caged.data.some_users import of_users, sampled_users


def part_of(pairs, users=6, items=5):
    rows = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return Interactions(IdMap.range(users), IdMap.range(items), rows[:, 0].copy(), rows[:, 1].copy())


PART = part_of([(0, 1), (0, 4), (2, 0), (2, 2), (2, 3), (5, 1)])


@pytest.mark.parametrize(
    ("users", "pairs"),
    [([], []), ([1], []), ([2], [(2, 0), (2, 2), (2, 3)]), ([0, 1, 5], [(0, 1), (0, 4), (5, 1)])],
)
def test_the_pairs_of_some_users(users, pairs):
    found = of_users(PART, np.array(users, dtype=np.int64))
    assert list(zip(found.users.tolist(), found.items.tolist(), strict=True)) == pairs
    assert found.user_ids == PART.user_ids
    assert found.item_ids == PART.item_ids


@pytest.mark.parametrize("count", [None, 3, 4])
def test_no_sample_where_it_would_be_everybody(count):
    assert sampled_users(PART, count) is None


def test_a_sample_is_of_users_with_pairs_and_always_the_same():
    part = part_of([(user, 0) for user in range(0, 2000, 2)], users=2000)
    first, again = (sampled_users(part, 100) for _ in range(2))
    assert first.tolist() == again.tolist() == sorted(set(first.tolist()))
    assert len(first) == 100
    assert not (first % 2).any()
    assert stats.kstest(first / 2000, "uniform").pvalue > 1e-3


def test_pairs_that_were_seen_are_found_among_few_and_many_users():
    had = part_of([(user, 1) for user in range(100)], users=100)
    validated = part_of([(7, 2)], users=100)
    for users in ([7], range(100)):
        part = part_of([(user, item) for user in users for item in (1, 2)], users=100)
        assert Seen(had).shared_with(part) == len(users)
        assert Seen(had, validated).shared_with(part) == len(users) + 1
