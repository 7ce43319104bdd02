"""The augmented graph of GALORE: edge sampling, edge addition, clusters, normalisation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.data.popularity import ItemGroups
from caged.graph import BipartiteGraph, degree_weights
from caged.models.galore import graph as galore_graph
from caged.models.galore.graph import (
    Added,
    AugmentedGraph,
    candidate_heads,
    draw_with_replacement,
    draw_without_replacement,
    edge_chances,
    k_means,
    keep_factors,
    kept_count,
    normalised,
    rarity,
)
from caged.seeding import Generators
from tests.graph.graphs import graph_of, random_graph
from tests.models.logs import skewed

OPTIONS = {
    "item_keep": "paper",
    "edge_sampling": "without",
    "drop_rate": 0.3,
    "candidate_count": 3,
    "clusters": 2,
}


def popular_graph(seed=0):
    """Items with degrees from the whole catalogue down to one."""
    return BipartiteGraph.from_interactions(skewed(user_count=40, item_count=30, seed=seed))


def augmented(graph, seed=1, **options):
    return AugmentedGraph(graph, generators=Generators(seed), **{**OPTIONS, **options})


def item_rows(graph, seed=0):
    return torch.randn(graph.item_count, 4, generator=torch.Generator().manual_seed(seed))


def dense_interactions(graph):
    matrix = torch.zeros(graph.user_count, graph.item_count, dtype=torch.float64)
    matrix[graph.users.long(), graph.items.long()] = 1
    return matrix


# ---------------------------------------------------------------- edge sampling


def test_rarity_by_hand():
    """1/ln 2 = 1.44 is cut to 1; ln 3 and ln 101 are not."""
    assert rarity(torch.tensor([0, 1, 2, 100])).tolist() == pytest.approx([1, 1, 0.910239, 0.216679], abs=1e-6)


def test_keep_factors_by_hand():
    """g = 1, 0.7213, 0.4170: scaled to 1, 0.522, 0; the isolated node does not count and the last is clipped."""
    degrees = torch.tensor([1, 3, 10, 0])
    assert keep_factors(degrees, favour_rare=True)[:3].tolist() == pytest.approx([1, 0.52208, 0.5], abs=1e-4)
    assert keep_factors(degrees, favour_rare=False)[:3].tolist() == pytest.approx([0.5, 0.5, 1], abs=1e-4)
    wide = torch.tensor([2, 3, 0])  # g_max is that of degree 2, not of the isolated node
    assert keep_factors(wide, favour_rare=True)[:2].tolist() == [1, 0.5]


def test_equal_degrees_are_kept_alike():
    graph = graph_of([(u, (u + k) % 6) for u in range(6) for k in range(3)], 6, 6)
    for item_keep in ("paper", "code"):
        assert edge_chances(graph, item_keep).tolist() == [1.0] * 18


@pytest.mark.parametrize(("item_keep", "sign"), [("paper", -1), ("code", 1)])
def test_chances_follow_the_item_degree(item_keep, sign):
    """`paper` never favours the more popular of two items of a user, `code` never the rarer; both make a difference."""
    graph = popular_graph()
    chances = edge_chances(graph, item_keep).numpy()
    degrees = graph.item_degrees.numpy()[graph.items.numpy()]
    for user in range(graph.user_count):
        own = graph.users.numpy() == user
        order = np.argsort(degrees[own], kind="stable")
        assert (sign * np.diff(chances[own][order]) >= 0).all()
    assert chances.max() > chances.min()


def test_users_with_few_interactions_keep_theirs():
    """Users 0 and 1 have item 0 each; user 0 has it alone, user 1 all five."""
    graph = graph_of([(0, 0), *((1, i) for i in range(5))], 2, 5)
    for item_keep in ("paper", "code"):
        chances = edge_chances(graph, item_keep)
        assert chances[0] > chances[1]


@pytest.mark.parametrize(
    ("edges", "rate", "kept"), [(10, 0.1, 9), (5, 0.8, 1), (100, 0.07, 93), (9, 0.1, 8), (7, 0, 7)]
)
def test_kept_count_is_exact(edges, rate, kept):
    assert kept_count(edges, rate) == kept


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.1, 0.3, 0.9])
def test_without_replacement_the_graph_has_exactly_that_many_distinct_edges(rate):
    graph = popular_graph()
    made = augmented(graph, drop_rate=rate)
    for _ in range(5):
        log = made.rebuild(item_rows(graph))
        expected = kept_count(graph.edge_count, rate)
        assert log["distinct_edges"] == int((made.weights.to_user > 0).sum()) == expected


def test_without_replacement_edges_come_by_chance():
    """Chances 1, 1, 2: one draw meets them with 1/4, 1/4, 1/2."""
    generator, chances = torch.Generator().manual_seed(0), torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)
    drawn = torch.stack([draw_without_replacement(chances, 1, generator) for _ in range(4000)])
    assert drawn.sum(1).eq(1).all()
    assert drawn.mean(0).tolist() == pytest.approx([0.25, 0.25, 0.5], abs=0.03)


def test_two_draws_without_replacement():
    """Of chances 1, 1, 2 both light ones are drawn with 2 * (1/4) * (1/3) = 1/6."""
    generator, chances = torch.Generator().manual_seed(0), torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)
    drawn = torch.stack([draw_without_replacement(chances, 2, generator) for _ in range(4000)])
    assert drawn.sum(1).eq(2).all()
    assert (drawn[:, 2] == 0).double().mean().item() == pytest.approx(1 / 6, abs=0.03)


def test_with_replacement_edges_repeat_by_chance():
    generator, chances = torch.Generator().manual_seed(0), torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)
    times = draw_with_replacement(chances, 40000, generator)
    assert times.sum() == 40000
    assert (times / 40000).tolist() == pytest.approx([0.25, 0.25, 0.5], abs=0.02)


def test_with_replacement_every_draw_counts_also_at_the_very_end(monkeypatch):
    """Draws at 0, on the border of two edges, and rounded up to the sum of the chances."""
    numbers = torch.tensor([1.0, 0.25, 0.0, 0.3], dtype=torch.float64)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: numbers)
    chances = torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)
    assert draw_with_replacement(chances, 4, torch.Generator()).tolist() == [1, 2, 1]


def test_with_replacement_fewer_edges_are_distinct():
    """Of E (1 - rho) equal draws about 1 - exp(-(1 - rho)) = 59% of the edges are met at rho = 0.1."""
    times = draw_with_replacement(torch.ones(20000, dtype=torch.float64), 18000, torch.Generator().manual_seed(0))
    assert (times > 0).double().mean().item() == pytest.approx(0.5934, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [draw_with_replacement, draw_without_replacement])
def test_more_edges_than_multinomial_takes(draw):
    many = 2**24 + 10
    times = draw(torch.ones(many, dtype=torch.float64), many // 2, torch.Generator().manual_seed(0))
    assert times.min() == 0
    assert times.sum() == many // 2


# ---------------------------------------------------------------- edge addition


def naive_candidates(graph, count):
    """Sort the rows of the dense co-occurrence matrix."""
    matrix = dense_interactions(graph)
    common = (matrix.T @ matrix).long()
    popular = ItemGroups.from_degrees(graph.item_degrees.numpy()).popular
    found = {}
    for tail in np.flatnonzero(~popular).tolist():
        heads = [head for head in np.flatnonzero(popular).tolist() if common[tail, head] > 0]
        heads.sort(key=lambda head, tail=tail: (-int(common[tail, head]), head))
        if heads:
            found[tail] = heads[:count]
    return found


def as_lists(candidates):
    rows = zip(*(part.tolist() for part in candidates), strict=True)
    return {tail: heads[:count] for tail, heads, count in rows}


@pytest.mark.parametrize("block", [galore_graph.BLOCK_ENTRIES, 7, 1])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_candidates_are_those_of_the_dense_matrix(monkeypatch, block, count):
    monkeypatch.setattr(galore_graph, "BLOCK_ENTRIES", block)
    for seed in range(3):
        graph = BipartiteGraph.from_interactions(skewed(user_count=25, item_count=40, per_user=4, seed=seed))
        assert as_lists(candidate_heads(graph, count)) == naive_candidates(graph, count)


def test_a_tail_item_that_shares_no_user_with_a_head_has_no_candidate():
    """Item 0 is the head of five; item 4 is only in the hands of user 9."""
    graph = graph_of([(u, 0) for u in range(8)] + [(0, 1), (1, 2), (2, 3), (9, 4)], 10, 6)
    found = candidate_heads(graph, 3)
    assert as_lists(found) == {1: [0], 2: [0], 3: [0]}
    made = augmented(graph, clusters=1)
    assert made.rebuild(item_rows(graph))["added_edges"] == 3


def test_without_heads_there_are_no_candidates():
    for graph in (graph_of([(0, 0), (0, 1), (1, 1)], 2, 3), popular_graph()):
        count = 3 if graph.item_count < 5 else 0
        made = augmented(graph, candidate_count=count)
        assert made.added.capacity == 0
        assert made.rebuild(item_rows(graph))["added_edges"] == 0


def added_pairs(made):
    """(tail, head) of the edges that are there, from the buffers that propagation reads."""
    there = made.added.values[: made.added.capacity, 0] > 0
    tails, heads = (part[: made.added.capacity][there] for part in (made.added.targets, made.added.sources))
    return list(zip(tails.tolist(), heads.tolist(), strict=True))


def test_added_edges_join_a_tail_to_a_head_of_its_cluster():
    graph = popular_graph()
    popular = ItemGroups.from_degrees(graph.item_degrees.numpy()).popular
    candidates = as_lists(candidate_heads(graph, 3))
    made = augmented(graph)
    numbers, chosen = set(), set()
    for epoch in range(20):
        rows = item_rows(graph, epoch)
        log = made.rebuild(rows)
        pairs = added_pairs(made)
        labels = k_means(rows, made._cluster_start).tolist()
        assert len({tail for tail, _ in pairs}) == len(pairs) == log["added_edges"]  # one per tail item at most
        for tail, head in pairs:
            assert not popular[tail]
            assert popular[head]
            assert head in candidates[tail]
            assert labels[tail] == labels[head]
        numbers.add(len(pairs))
        chosen |= set(pairs)
    assert len(numbers) > 1  # the filter lets more or fewer through
    assert len(chosen) > made.added.capacity  # the partner changes


def test_one_cluster_is_no_filter():
    graph = popular_graph()
    made = augmented(graph, clusters=1)
    assert made.rebuild(item_rows(graph))["added_edges"] == len(naive_candidates(graph, 3))


def test_partners_are_uniform_among_the_candidates(monkeypatch):
    """Each of the three heads of a tail item comes up in a third of the epochs."""
    monkeypatch.setattr(galore_graph, "LLOYD_ITERATIONS", 0)  # clusters do not matter here
    graph = popular_graph()
    made = augmented(graph, clusters=1)
    tails, heads, counts = made.candidates
    place = int((counts == 3).nonzero()[0, 0])
    seen = [made._choose_heads(item_rows(graph)).heads[place].item() for _ in range(600)]
    for head in heads[place].tolist():
        assert seen.count(head) / 600 == pytest.approx(1 / 3, abs=0.07)
    assert int(tails[place]) not in seen


# ---------------------------------------------------------------- clusters


def blobs(sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.tensor([[10.0, 0.0], [0.0, 10.0], [-10.0, -10.0]])
    return torch.cat(
        [centre + torch.randn(size, 2, generator=generator) for centre, size in zip(centres, sizes, strict=True)]
    )


@pytest.mark.parametrize("seed", range(5))
def test_separate_groups_are_found(seed):
    draws = torch.rand(3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    labels = k_means(blobs((20, 30, 10)), draws).tolist()
    parts = [set(labels[:20]), set(labels[20:50]), set(labels[50:])]
    assert [len(part) for part in parts] == [1, 1, 1]
    assert len(set.union(*parts)) == 3


def test_clusters_of_few_or_equal_rows():
    draws = torch.tensor([0.1, 0.5, 0.9, 0.99], dtype=torch.float64)
    assert k_means(torch.ones(6, 2), draws).tolist() == [0] * 6
    assert len(set(k_means(torch.tensor([[0.0], [1.0]]), draws).tolist())) == 2
    assert k_means(blobs((2, 2, 2)), draws[:1]).tolist() == [0] * 6


def test_clusters_are_a_fixed_point_of_lloyd():
    rows = item_rows(popular_graph())
    draws = torch.tensor([0.2, 0.7, 0.4], dtype=torch.float64)
    labels = k_means(rows, draws)
    centres = torch.stack([rows[labels == cluster].mean(0) for cluster in range(3)])
    assert torch.equal(torch.cdist(rows, centres).argmin(1), labels)
    assert torch.equal(k_means(rows, draws), labels)


# ---------------------------------------------------------------- the graph of an epoch


def dense_graph_of(graph, multiplicity, added):
    """A' as a dense matrix."""
    first = graph.user_count
    matrix = torch.zeros(first + graph.item_count, first + graph.item_count, dtype=torch.float64)
    matrix[graph.users.long(), first + graph.items.long()] = multiplicity
    matrix[first + graph.items.long(), graph.users.long()] = multiplicity
    for tail, head, there in zip(*(part.tolist() for part in added), strict=True):
        matrix[first + tail, first + head] += there
        matrix[first + head, first + tail] += there
    return matrix


@pytest.mark.parametrize("edge_sampling", ["without", "with"])
def test_weights_are_the_normalised_dense_matrix(edge_sampling):
    graph = popular_graph()
    generator = torch.Generator().manual_seed(4)
    draw = galore_graph.DRAWS[edge_sampling]
    multiplicity = draw(edge_chances(graph, "paper"), 40, generator)  # few: some nodes are isolated
    added = augmented(graph)._choose_heads(item_rows(graph))
    matrix = dense_graph_of(graph, multiplicity, added)
    assert torch.equal(matrix, matrix.T)
    degrees = matrix.sum(1)
    assert (degrees == 0).any()
    root = torch.where(degrees > 0, degrees.rsqrt(), 0)
    expected = root[:, None] * matrix * root[None, :]
    between, among = normalised(graph, multiplicity, added)
    first = graph.user_count
    torch.testing.assert_close(between, expected[graph.users.long(), first + graph.items.long()])
    torch.testing.assert_close(among, expected[first + added.tails, first + added.heads])
    assert torch.isfinite(between).all()


def test_a_repeated_edge_counts_more():
    """One user, items 0 (twice) and 1 (once): degrees 3, 2, 1."""
    graph = graph_of([(0, 0), (0, 1)], 1, 2)
    nothing = Added(*(torch.zeros(0, dtype=kind) for kind in (torch.int64, torch.int64, torch.float64)))
    between, _ = normalised(graph, torch.tensor([2.0, 1.0], dtype=torch.float64), nothing)
    assert between.tolist() == pytest.approx([2 / 6**0.5, 1 / 3**0.5])


def test_nothing_dropped_and_nothing_added_is_lightgcn_bit_for_bit():
    graph = random_graph(edges=60)
    made = augmented(graph, drop_rate=0.0, candidate_count=0)
    made.rebuild(item_rows(graph))
    expected = degree_weights(graph)
    assert torch.equal(made.weights.to_user, expected.to_user)
    assert torch.equal(made.weights.to_item, expected.to_item)


def test_a_rebuild_is_in_place_and_differs():
    graph = popular_graph()
    made = augmented(graph)
    made.rebuild(item_rows(graph))
    buffers = [made.weights.to_user, made.weights.to_item, made.added.targets, made.added.sources, made.added.values]
    places, before = [part.data_ptr() for part in buffers], made.weights.to_user.clone()
    made.rebuild(item_rows(graph))
    now = [made.weights.to_user, made.weights.to_item, made.added.targets, made.added.sources, made.added.values]
    assert [part.data_ptr() for part in now] == places
    assert not torch.equal(made.weights.to_user, before)


def test_edge_sampling_and_edge_addition_have_streams_of_their_own():
    graph = popular_graph()
    with_edges, without_edges = augmented(graph), augmented(graph, candidate_count=0)
    half = augmented(graph, drop_rate=0.5)
    for made in (with_edges, without_edges, half):
        made.rebuild(item_rows(graph))
    assert torch.equal(with_edges.weights.to_user > 0, without_edges.weights.to_user > 0)
    assert torch.equal(with_edges.added.sources, half.added.sources)
