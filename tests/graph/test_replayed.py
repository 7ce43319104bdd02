"""Negatives from a stream that repeats: within an epoch by eight, and from epoch to epoch."""

from __future__ import annotations

import pytest
import torch

from caged.errors import ConfigError
from caged.graph import Sampler
from caged.graph.replayed import WORKERS, ReplayedNegatives
from tests.graph.graphs import graph_of, random_graph

BATCH = 2


def sampler_of(graph, kind="interaction"):
    return Sampler(graph, BATCH, kind, "replayed")


@pytest.mark.parametrize("kind", ["interaction", "user_uniform", "user_equal"])
def test_positives_are_those_of_fresh_negatives_and_negatives_are_not_owned(kind):
    graph = random_graph(edges=50)
    owned = set(zip(graph.users.tolist(), graph.items.tolist(), strict=True))
    fresh = Sampler(graph, BATCH, kind).epoch(torch.Generator().manual_seed(1))
    replayed = sampler_of(graph, kind).epoch(torch.Generator().manual_seed(1))
    assert torch.equal(fresh.weight, replayed.weight)
    real = fresh.weight > 0
    for part in ("users", "positives"):
        assert torch.equal(getattr(fresh, part)[real], getattr(replayed, part)[real])
    pairs = zip(replayed.users.flatten().tolist(), replayed.negatives.flatten().tolist(), strict=True)
    assert not owned.intersection(pairs)


def test_every_worker_of_every_epoch_replays_the_same_stream():
    # 40 users with one item each among 4,000: next to no draw is owned
    graph = graph_of([(user, user) for user in range(40)], 40, 4000)
    sampler, generator = sampler_of(graph), torch.Generator().manual_seed(3)
    stream = sampler._replayed.stream
    assert len(stream) == 40 // WORKERS
    for _ in range(3):
        negatives = sampler.epoch(generator).negatives
        for batch, drawn in enumerate(negatives.tolist()):
            first = batch // WORKERS * BATCH
            assert drawn == [int(stream[(first + place) % len(stream)]) for place in range(BATCH)]


def test_an_owned_item_is_passed_over_for_the_next_one():
    graph = random_graph(edges=50)
    replayed = ReplayedNegatives(graph, BATCH, 50)
    stream = replayed.stream.tolist()
    owned = set(zip(graph.users.tolist(), graph.items.tolist(), strict=True))
    users = torch.arange(13)
    found = replayed.of(users, torch.full((13,), -1)).tolist()
    for place, user in enumerate(users.tolist()):
        first = place // BATCH // WORKERS * BATCH + place % BATCH
        wanted = next(
            (item for item in stream[first:] + stream[:first] if (user, item) not in owned),
            -1,
        )
        assert found[place] == wanted


def test_a_user_who_owns_the_whole_stream_keeps_an_exact_draw():
    graph = graph_of([(0, item) for item in range(9)] + [(1, 0)], 2, 10)
    replayed = ReplayedNegatives(graph, BATCH, 8)
    replayed.stream.zero_()
    assert replayed.of(torch.tensor([0, 1]), torch.tensor([9, 5])).tolist() == [9, 5]


def test_the_stream_does_not_depend_on_the_seed_of_a_run():
    graph = random_graph(edges=50)
    assert torch.equal(ReplayedNegatives(graph, 2, 50).stream, ReplayedNegatives(graph, 4, 50).stream)


def test_another_kind_is_refused():
    with pytest.raises(ConfigError, match="unknown kind of negatives 'old'"):
        Sampler(random_graph(), 4, "interaction", "old")
