"""Orders that are computed place by place: every number once, another order for every seed, no visible pattern."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from caged.graph.permutation import Permutation


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 17, 101, 1024, 99_999])
def test_every_number_stands_at_one_place(count):
    numbers = Permutation(count, seed=3)(torch.arange(count))
    assert torch.equal(numbers.sort().values, torch.arange(count))


def test_places_can_be_asked_for_in_any_pieces():
    order = Permutation(1000, seed=1)
    whole = order(torch.arange(1000))
    assert torch.equal(order(torch.tensor([999, 0, 500])), whole[[999, 0, 500]])


def test_numbers_of_a_billion_places_are_within_reach_and_distinct():
    order = Permutation(10**9 + 7, seed=1)
    numbers = order(torch.arange(500_000_000, 500_100_000))
    assert len(numbers.unique()) == 100_000
    assert 0 <= int(numbers.min()) < 10**5
    assert 10**9 - 10**5 < int(numbers.max()) < 10**9 + 7


def test_the_seed_decides():
    first, again, other = (Permutation(500, seed)(torch.arange(500)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert int((first == other).sum()) < 10  # one, on average


def test_all_orders_of_four_are_alike():
    """Chi-square over the 24 orders of four numbers."""
    orders = [tuple(Permutation(4, seed)(torch.arange(4)).tolist()) for seed in range(1000)]
    counts = np.unique(np.array(orders), axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_neighbours_are_strangers():
    """Numbers at successive places: uniform, and without correlation."""
    numbers = Permutation(1_000_000, seed=5)(torch.arange(200_000)).double().numpy()
    assert stats.chisquare(np.bincount((numbers // 10_000).astype(int), minlength=100)).pvalue > 1e-3
    for lag in (1, 2, 1000):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 0.01


@pytest.mark.gpu
def test_the_order_is_the_same_on_cuda():
    order = Permutation(10**9, seed=2)
    places = torch.arange(123_456_789, 123_466_789)
    assert torch.equal(order(places), order(places.cuda()).cpu())
