"""Triples in blocks: what `Sampler` promises, of blocks of any size, and nothing kept per interaction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from caged.errors import ConfigError, DataError
from caged.graph import SAMPLERS, BlockSampler, Sampler, block_sampling, make_sampler
from tests.graph.graphs import graph_of, random_graph

FULL_USER = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)]  # user 0 owns all three items, user 3 none


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(block_sampling, "BLOCK_TRIPLES", 20)
    monkeypatch.setattr(block_sampling, "BLOCKS_ABOVE", 0)


def triples_of(blocks):
    """Real triples, as (n, 3) integers."""
    real = [torch.stack([part[block.weight > 0].long() for part in block.parts[:3]], 1) for block in blocks]
    return torch.cat(real).cpu().numpy()


def draw(sampler, epochs=1, seed=0):
    generator = torch.Generator(device=sampler.graph.device).manual_seed(seed)
    return np.concatenate([triples_of(sampler.blocks(generator)) for _ in range(epochs)])


def pairs_of(graph):
    return set(zip(graph.users.tolist(), graph.items.tolist(), strict=True))


def test_large_graphs_are_drawn_in_blocks_and_others_as_before(monkeypatch):
    graph = random_graph(edges=50)
    monkeypatch.setattr(block_sampling, "BLOCKS_ABOVE", graph.edge_count)
    whole = make_sampler(graph, 8)
    assert isinstance(whole, Sampler)
    [epoch] = whole.blocks(torch.Generator().manual_seed(3))
    as_before = Sampler(graph, 8).epoch(torch.Generator().manual_seed(3))
    assert all(torch.equal(mine, before) for mine, before in zip(epoch.parts, as_before.parts, strict=True))
    monkeypatch.setattr(block_sampling, "BLOCKS_ABOVE", graph.edge_count - 1)
    assert isinstance(make_sampler(graph, 8), BlockSampler)


def test_every_interaction_once_per_epoch_in_another_order():
    graph = random_graph(edges=200, user_count=40, item_count=30)
    sampler = BlockSampler(graph, 7)
    first, second = (draw(sampler, seed=seed)[:, :2].tolist() for seed in (1, 2))
    for epoch in (first, second):
        assert sorted(map(tuple, epoch)) == sorted(pairs_of(graph))
    assert first != second
    assert first != sorted(first)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_positives_are_positive_and_negatives_are_not(kind):
    graph = random_graph(edges=120, user_count=20, item_count=15)
    owned = pairs_of(graph)
    for user, positive, negative in draw(BlockSampler(graph, 7, kind), epochs=20):
        assert (user, positive) in owned
        assert (user, negative) not in owned


def test_negatives_are_uniform_over_what_the_user_does_not_own():
    """Chi-square per user, against every free item; first, last and neighbouring items are owned."""
    graph = graph_of([(0, 0), (0, 1), (0, 2), (0, 6), (1, 3), (2, 0), (2, 1), (2, 3), (2, 4), (2, 5)], 3, 7)
    triples = draw(BlockSampler(graph, 10), epochs=400)
    for user in range(3):
        free = [item for item in range(7) if (user, item) not in pairs_of(graph)]
        counts = np.bincount(triples[triples[:, 0] == user, 2], minlength=7)
        assert counts.sum() == counts[free].sum()
        assert len(free) == 1 or stats.chisquare(counts[free]).pvalue > 1e-3


def test_user_uniform_and_user_equal_draw_users_and_their_items_alike():
    graph = graph_of([(0, i) for i in range(6)] + [(1, 0), (2, 3)], 4, 9)  # E = 8, 3 users with edges
    uniform, equal = (draw(BlockSampler(graph, 4, kind), epochs=250) for kind in ("user_uniform", "user_equal"))
    assert len(uniform) == 250 * 8
    assert stats.chisquare(np.bincount(uniform[:, 0], minlength=3)).pvalue > 1e-3
    assert np.bincount(equal[:, 0], minlength=4).tolist() == [500, 500, 500, 0]
    for triples in (uniform, equal):
        assert stats.chisquare(np.bincount(triples[triples[:, 0] == 0, 1], minlength=6)).pvalue > 1e-3


@pytest.mark.parametrize("asked", [1, 3, 8, 50, 10**12])
def test_blocks_have_whole_batches_and_only_the_last_is_padded(asked):
    graph = random_graph(edges=50)
    sampler = BlockSampler(graph, asked)
    blocks = list(sampler.blocks(torch.Generator().manual_seed(0)))
    assert sum(map(len, blocks)) == sampler.steps
    assert {len(block) for block in blocks[:-1]} <= {sampler.block_steps}
    weight = torch.cat([block.weight for block in blocks])
    assert weight.shape == (sampler.steps, min(asked, sampler.triples))
    torch.testing.assert_close(weight.sum(1), torch.ones(sampler.steps))
    assert int((weight > 0).sum()) == sampler.triples
    assert bool((weight[:-1] > 0).all())


def test_a_block_depends_on_its_epoch_and_number_only():
    sampler = BlockSampler(random_graph(edges=200, user_count=40, item_count=30), 4)
    generator = torch.Generator().manual_seed(9)
    seed = int(torch.randint(2**62, (), generator=torch.Generator().manual_seed(9)))
    for number, drawn in enumerate(sampler.blocks(generator)):
        again = sampler.block(seed, number)
        assert all(torch.equal(mine, other) for mine, other in zip(drawn.parts, again.parts, strict=True))
    assert number > 3


@pytest.mark.parametrize("kind", SAMPLERS)
def test_same_seed_same_triples(kind):
    sampler = BlockSampler(random_graph(edges=50), 8, kind)
    assert np.array_equal(draw(sampler, 3, seed=4), draw(sampler, 3, seed=4))
    assert not np.array_equal(draw(sampler, 3, seed=4), draw(sampler, 3, seed=5))


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_user_who_owns_everything_is_left_out_and_counted(kind):
    sampler = BlockSampler(graph_of(FULL_USER, 4, 3), 4, kind)
    assert sampler.excluded_users == 1
    triples = draw(sampler, epochs=30)
    assert set(triples[:, 0].tolist()) == {1, 2}
    assert set(map(tuple, triples[:, :2].tolist())) == {(1, 0), (2, 0), (2, 1)}


@pytest.mark.parametrize("kind", SAMPLERS)
def test_positives_have_the_shares_that_the_sampler_of_epochs_gives_them(kind):
    for graph in (graph_of(FULL_USER, 4, 3), random_graph(edges=120, user_count=20, item_count=15)):
        torch.testing.assert_close(
            BlockSampler(graph, 4, kind).positive_shares(), Sampler(graph, 4, kind).positive_shares()
        )


@pytest.mark.parametrize("kind", SAMPLERS)
def test_nothing_is_kept_for_every_interaction(kind):
    """Beside the graph itself, tensors grow with the users, not with the interactions."""
    graph = random_graph(edges=3000, user_count=20, item_count=400)
    sampler = BlockSampler(graph, 4, kind)
    assert graph.edge_count > 1000
    kept = [value for value in vars(sampler).values() if isinstance(value, torch.Tensor)]
    assert kept
    assert all(value.numel() <= graph.user_count + 1 for value in kept)
    block = next(sampler.blocks(torch.Generator().manual_seed(0)))
    assert block.users.numel() == 20  # of an epoch of more than a thousand


def test_impossible_requests_are_told():
    with pytest.raises(DataError, match="all 2 users interacted with all 2 items"):
        BlockSampler(graph_of([(u, i) for u in range(2) for i in range(2)], 2, 2), 4)
    with pytest.raises(ConfigError, match="did you mean 'user_equal'"):
        BlockSampler(random_graph(), 4, "user_equel")
    with pytest.raises(ConfigError, match=r"use train\.negatives=fresh"):
        BlockSampler(random_graph(), 4, negatives="replayed")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", SAMPLERS)
def test_on_cuda(kind):
    graph = random_graph(edges=120, user_count=20, item_count=15, device="cuda")
    owned = pairs_of(graph)
    for user, positive, negative in draw(BlockSampler(graph, 7, kind), epochs=20):
        assert (user, positive) in owned
        assert (user, negative) not in owned
