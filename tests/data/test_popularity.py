from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caged.data.popularity import SECTIONS, USER_GROUPS, ItemGroups, UserGroups, gini, popularity_order, top_share
from caged.errors import ConfigError, DataError

degree_lists = st.lists(st.integers(0, 6), min_size=0, max_size=40).map(np.array)


def groups_of(degrees):
    return ItemGroups.from_degrees(np.array(degrees, dtype=np.int64))


def rows(mask):
    return np.flatnonzero(mask).tolist()


def test_order_breaks_ties_by_row_and_leaves_out_unused_items():
    assert popularity_order(np.array([2, 0, 5, 2, 5, 0, 1])).tolist() == [2, 4, 0, 3, 6]


def test_popular_counts_only_items_with_interactions():
    """Nine items, five of them used: floor(5 / 5) = 1 popular item, not floor(9 / 5)."""
    groups = groups_of([0, 1, 3, 3, 1, 1, 0, 0, 0])
    assert rows(groups.popular) == [2]
    assert rows(groups.niche) == [0, 1, 3, 4, 5, 6, 7, 8]


def test_fewer_than_five_used_items_leave_popular_empty():
    assert rows(groups_of([9, 4, 2, 1, 0, 0, 0]).popular) == []


def test_sections_compare_the_mass_before_with_a_fifth_in_integers():
    """E = 10, a fifth is 2. Mass before rows 0..9 of degree 1: 0, 1 < 2 are head; 2 is not < 2. Mirrored for tail."""
    groups = groups_of([1] * 10)
    assert rows(groups.in_section("head")) == [0, 1]
    assert rows(groups.in_section("middle")) == [2, 3, 4, 5, 6, 7]
    assert rows(groups.in_section("tail")) == [8, 9]


def test_one_item_that_is_head_and_tail_is_head():
    groups = groups_of([0, 7])
    assert rows(groups.in_section("head")) == [1]
    assert rows(groups.in_section("tail")) == [0]


def test_buckets_are_deciles_of_the_order():
    groups = groups_of([1, 9, 0, 5])
    assert groups.bucket.tolist() == [6, 0, 9, 3]
    assert groups.bucket_mass.tolist() == [9, 0, 0, 5, 0, 0, 1, 0, 0, 0]


def test_nothing_was_ever_used():
    groups = groups_of([0, 0])
    assert rows(groups.popular) == []
    assert groups.bucket.tolist() == [9, 9]
    assert rows(groups.in_section("tail")) == [0, 1]


@given(degree_lists)
def test_sections_are_the_smallest_prefix_and_suffix_with_a_fifth_of_the_mass(degrees):
    degrees = np.asarray(degrees, dtype=np.int64)
    groups = ItemGroups.from_degrees(degrees)
    order, total = popularity_order(degrees), int(degrees.sum())
    sections = groups.section[order]
    assert (np.diff(sections) >= 0).all()
    head = order[sections == SECTIONS.index("head")]
    if total:
        assert 5 * degrees[head].sum() >= total
        assert 5 * degrees[head[:-1]].sum() < total
    tail = order[sections == SECTIONS.index("tail")]
    if len(head) + len(tail) < len(order):
        assert 5 * degrees[tail].sum() >= total
        assert 5 * degrees[tail[1:]].sum() < total


@given(degree_lists)
def test_popular_items_are_at_least_as_used_as_niche_ones(degrees):
    groups = groups_of(degrees)
    assert groups.popular.sum() == np.count_nonzero(degrees) // 5
    if groups.popular.any():
        assert groups.degrees[groups.popular].min() >= groups.degrees[groups.niche].max()


def test_user_groups_cut_fifths_with_ties_by_row():
    """Eleven users over a catalogue whose only popular item is 0: shares 1/2 for users 0..4, 0 for 5..9; 10 has none.

    M = 10, a fifth is two: niche-taste are the first two of share 0, blockbuster the last two of share 1/2.
    """
    items = groups_of([5, 4, 4, 4, 3])
    users = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9])
    owned = np.array([0, 1] * 5 + [2, 2, 3, 3, 4])
    groups = UserGroups.from_interactions(users, owned, 11, items)
    assert rows(groups.member("niche-taste")) == [5, 6]
    assert rows(groups.member("blockbuster")) == [3, 4]
    assert rows(groups.member("diverse")) == [0, 1, 2, 7, 8, 9]
    assert groups.label[10] == -1
    assert np.isnan(groups.popular_share[10])


def test_equal_fractions_are_ties():
    """Shares 1/3 = 2/6 = 3/9 differ in no bit: the cut goes by row number alone."""
    items = ItemGroups.from_degrees(np.array([9] * 3 + [1] * 12))
    assert rows(items.popular) == [0, 1, 2]
    profiles = [(3, 9), (2, 6), (1, 3), (3, 9), (1, 3)]
    users = np.concatenate([np.full(size, u) for u, (_, size) in enumerate(profiles)])
    owned = np.concatenate([[*range(p), *range(3, 3 + size - p)] for p, size in profiles])
    assert UserGroups.from_interactions(users, owned, 5, items).label.tolist() == [0, 1, 1, 1, 2]


def test_fewer_than_five_users_are_all_diverse():
    items = groups_of([4, 1, 1, 1, 1])
    label = UserGroups.from_interactions(np.arange(4), np.arange(4), 4, items).label
    assert {USER_GROUPS[value] for value in label} == {"diverse"}


def test_negative_degrees_and_unknown_groups_are_errors():
    with pytest.raises(DataError, match="smallest is -1"):
        groups_of([1, -1])
    groups = groups_of([1])
    with pytest.raises(ConfigError, match="did you mean 'niche'"):
        groups.member("nich")
    with pytest.raises(ConfigError, match="unknown section 'torso'"):
        groups.in_section("torso")
    users = UserGroups.from_interactions(np.array([0]), np.array([0]), 1, groups)
    with pytest.raises(ConfigError, match="unknown user group 'popular'"):
        users.member("popular")


def test_gini_equals_the_mean_difference() -> None:
    """Second formula: half the mean absolute difference of all pairs, over the mean."""
    counts = np.random.default_rng(0).integers(0, 50, size=200)
    differences = np.abs(counts[:, None] - counts[None, :]).mean()
    assert gini(counts) == pytest.approx(differences / (2 * counts.mean()))
    assert gini(np.array([1, 2, 1, 3, 0, 3, 0, 0, 1, 2, 0, 1])) == pytest.approx(84 / 168)
    assert np.isnan(gini(np.zeros(3)))


def test_top_share_of_uneven_counts() -> None:
    assert top_share(np.array([1, 2, 3, 4, 90, 0, 0])) == pytest.approx(94 / 100)  # ceil(1.4) = 2 items
    assert np.isnan(top_share(np.zeros(3)))
