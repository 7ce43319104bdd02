"""Samplers: exact negatives, the three ways to draw positives, padding, exclusions, reproducibility."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from caged.errors import ConfigError, DataError
from caged.graph import SAMPLERS, Sampler, sampling
from tests.graph.graphs import graph_of, random_graph


def draw(sampler, epochs=1, seed=0):
    """Real triples of some epochs, as (n, 3) integers."""
    generator = torch.Generator(device=sampler.graph.device).manual_seed(seed)
    triples = []
    for _ in range(epochs):
        epoch = sampler.epoch(generator)
        real = epoch.weight > 0
        triples.append(torch.stack([part[real].long() for part in (epoch.users, epoch.positives, epoch.negatives)], 1))
    return torch.cat(triples).cpu().numpy()


def pairs_of(graph):
    return set(zip(graph.users.tolist(), graph.items.tolist(), strict=True))


@pytest.fixture(params=["bitmap", "search"])
def either_way(request, monkeypatch):
    """Both ways to draw negatives: a bit per pair where that is small, else a binary search for every draw."""
    if request.param == "search":
        monkeypatch.setattr(sampling, "BITMAP_BYTES", 0)
    return request.param


def test_small_graphs_have_a_bitmap_and_large_ones_do_not(either_way):
    assert (Sampler(random_graph(), 4)._owned is None) == (either_way == "search")


def test_the_bitmap_is_the_graph():
    graph = random_graph(edges=60, item_count=17)
    users, items = (part.flatten().int() for part in torch.meshgrid(torch.arange(13), torch.arange(17), indexing="ij"))
    owned = Sampler(graph, 4)._owned(users, items).bool()
    found = set(zip(users[owned].tolist(), items[owned].tolist(), strict=True))
    assert found == pairs_of(graph)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("kind", SAMPLERS)
def test_positives_are_positive_and_negatives_are_not(kind):
    graph = random_graph(edges=50)
    owned = pairs_of(graph)
    for user, positive, negative in draw(Sampler(graph, 7, kind), epochs=50):
        assert (user, positive) in owned
        assert (user, negative) not in owned


@pytest.mark.usefixtures("either_way")
def test_negatives_are_uniform_over_what_the_user_does_not_own():
    """Chi-square per user, against every free item."""
    graph = graph_of([(0, 0), (0, 1), (0, 2), (0, 5), (1, 4), (2, 0), (2, 5)], 3, 7)
    triples = draw(Sampler(graph, 64), epochs=3000)
    owned = pairs_of(graph)
    for user in range(3):
        free = [item for item in range(7) if (user, item) not in owned]
        counts = np.bincount(triples[triples[:, 0] == user, 2], minlength=7)
        assert counts.sum() == counts[free].sum()
        assert stats.chisquare(counts[free]).pvalue > 1e-3


def test_interaction_sampler_visits_every_interaction_once_in_random_order():
    graph = random_graph(edges=50)
    sampler = Sampler(graph, 8)
    first, second = draw(sampler, seed=1), draw(sampler, seed=2)
    assert sorted(map(tuple, first[:, :2].tolist())) == sorted(pairs_of(graph))
    assert first[:, :2].tolist() != second[:, :2].tolist()


def test_user_equal_gives_every_user_the_same_number():
    graph = graph_of([(0, i) for i in range(6)] + [(1, 0), (2, 3)], 4, 9)  # E = 8, 3 users with edges
    triples = draw(Sampler(graph, 4, "user_equal"), epochs=500)
    assert np.bincount(triples[:, 0], minlength=4).tolist() == [1000, 1000, 1000, 0]
    positives = np.bincount(triples[triples[:, 0] == 0, 1], minlength=9)
    assert stats.chisquare(positives[:6]).pvalue > 1e-3


def test_user_uniform_draws_users_uniformly():
    graph = graph_of([(0, i) for i in range(6)] + [(1, 0), (2, 3)], 4, 9)
    triples = draw(Sampler(graph, 4, "user_uniform"), epochs=500)
    assert len(triples) == 500 * 8
    counts = np.bincount(triples[:, 0], minlength=4)
    assert counts[3] == 0
    assert stats.chisquare(counts[:3]).pvalue > 1e-3


@pytest.mark.parametrize("asked", [1, 3, 8, 50, 10**12])
def test_padding_and_weights(asked):
    graph = random_graph(edges=50)
    sampler = Sampler(graph, asked)
    batch_size = min(asked, sampler.triples)  # beyond that there would be nothing but padding
    epoch = sampler.epoch(torch.Generator().manual_seed(0))
    assert epoch.users.shape == (sampler.steps, batch_size)
    torch.testing.assert_close(epoch.weight.sum(1), torch.ones(sampler.steps))
    assert int((epoch.weight > 0).sum()) == sampler.triples
    last = epoch.weight[-1]
    count = sampler.triples - (sampler.steps - 1) * batch_size
    assert (last > 0).sum() == count
    assert last[0].item() == pytest.approx(1 / count)
    assert len(list(epoch)) == sampler.steps


@pytest.mark.usefixtures("either_way")
def test_a_user_who_owns_everything_is_left_out_and_counted():
    graph = graph_of([(0, 0), (0, 1), (1, 0)], 2, 2)
    sampler = Sampler(graph, 4)
    assert sampler.excluded_users == 1
    assert draw(sampler, epochs=3).tolist() == [[1, 0, 1]] * 3


def test_everybody_owning_everything_is_an_error():
    with pytest.raises(DataError, match="all 2 users interacted with all 2 items"):
        Sampler(graph_of([(u, i) for u in range(2) for i in range(2)], 2, 2), 4)


def test_unknown_sampler_is_an_error_with_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'user_equal'"):
        Sampler(random_graph(), 4, "user_equel")


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("kind", SAMPLERS)
def test_same_seed_same_triples(kind):
    sampler = Sampler(random_graph(edges=50), 8, kind)
    assert np.array_equal(draw(sampler, 3, seed=4), draw(sampler, 3, seed=4))
    assert not np.array_equal(draw(sampler, 3, seed=4), draw(sampler, 3, seed=5))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", SAMPLERS)
def test_on_cuda(kind):
    graph = random_graph(edges=50, device="cuda")
    owned = pairs_of(graph)
    for user, positive, negative in draw(Sampler(graph, 7, kind), epochs=20):
        assert (user, positive) in owned
        assert (user, negative) not in owned
