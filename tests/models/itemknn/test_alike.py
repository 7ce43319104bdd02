"""Groups of items with the same users, against a dictionary of sets; lists without the item itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from caged.models.itemknn import alike
from caged.models.itemknn.alike import Alike, without_own


def sparse_log(users=12, items=80, interactions=110, seed=5):
    """Most items have one or two users, so many have the same; some have none."""
    draw = np.random.default_rng(seed)
    pairs = np.unique(np.stack([draw.integers(0, items, interactions), draw.integers(0, users, interactions)]), axis=1)
    return csr_matrix((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(items, users))


def by_sets(by_item):
    groups = {}
    for item in range(by_item.shape[0]):
        users = frozenset(by_item[item].indices.tolist())
        if users:
            groups.setdefault(users, []).append(item)
    return {items[0]: items for items in groups.values()}


def test_groups_are_those_of_equal_sets():
    by_item = sparse_log()
    expected, groups = by_sets(by_item), Alike(by_item)
    assert len(expected) < np.count_nonzero(np.diff(by_item.indptr)) < by_item.shape[0]
    assert groups.heads.tolist() == sorted(expected)
    for heads in (groups.heads, groups.heads[::-3], groups.heads[:0]):
        items, group = groups.members(heads)
        assert items.tolist() == [item for head in heads for item in expected[head]]
        assert heads[group].tolist() == [head for head in heads for _ in expected[head]]


def test_items_of_many_users_stand_for_themselves(monkeypatch):
    by_item = csr_matrix(np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]]))
    assert Alike(by_item).heads.tolist() == [0, 2]
    monkeypatch.setattr(alike, "MOST_USERS", 1)
    assert Alike(by_item).heads.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("item", "columns", "places"),
    [
        (7, [7, 3, 5], [1, 2]),
        (7, [3, 7, 5], [0, 2]),
        (7, [3, 5, 7], [0, 1]),
        (7, [3, 5, 6], [0, 1]),  # so many tie with it that it is not in its own list
        (0, [2, 0, 0], [0, 2]),  # itself, then padding
        (0, [1, 2, 3], [0, 1]),
    ],
)
def test_a_list_is_without_the_item_itself(item, columns, places):
    lists = np.array([columns], dtype=np.int32), np.array([[0.5, 0.25, 0.125]], dtype=np.float32)
    for kept, whole in zip(without_own(*lists, np.array([item])), lists, strict=True):
        np.testing.assert_array_equal(kept, whole[:, places], strict=True)
