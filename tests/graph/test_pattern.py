"""The fixed pattern and the degree weights on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.data import Interactions
from caged.errors import DataError
from caged.graph import BipartiteGraph, degree_weights
from tests.graph.graphs import CORNERS, dense, graph_of, random_graph


@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_both_directions_hold_the_same_edges(make):
    graph = make()
    by_user = set(zip(graph.users.tolist(), graph.items.tolist(), strict=True))
    item_of_position = torch.repeat_interleave(torch.arange(graph.item_count), graph.item_degrees.long())
    by_item = set(zip(graph.item_users.tolist(), item_of_position.tolist(), strict=True))
    assert by_user == by_item
    assert len(by_user) == graph.edge_count
    assert torch.equal(graph.users[graph.by_item.long()], graph.item_users)
    assert graph.users.dtype == graph.user_offsets.dtype == torch.int32


def test_from_interactions_keeps_rows_without_edges():
    log = Interactions.from_ids(["a", "b", "b"], [5, 5, 7])
    graph = BipartiteGraph.from_interactions(log.select(np.array([False, True, True])))
    assert graph.user_degrees.tolist() == [0, 2]
    assert graph.item_degrees.tolist() == [1, 1]


def test_an_empty_graph_is_refused():
    with pytest.raises(DataError, match="no interactions"):
        BipartiteGraph.from_edges(np.array([], dtype=int), np.array([], dtype=int), 3, 3)


def test_symmetric_weights_by_hand():
    """Users of degree 2 and 1, items of degree 1 and 2."""
    graph = graph_of([(0, 0), (0, 1), (1, 1)], 2, 2)
    expected = torch.tensor([1 / np.sqrt(2 * 1), 1 / np.sqrt(2 * 2), 1 / np.sqrt(1 * 2)], dtype=torch.float32)
    weights = degree_weights(graph)
    torch.testing.assert_close(weights.to_user, expected)
    assert torch.equal(weights.to_user, weights.to_item)


def test_symmetric_weights_have_spectral_radius_one():
    graph = random_graph(edges=80)
    matrix = dense(graph, degree_weights(graph, dtype=torch.float64))
    assert torch.equal(matrix, matrix.T)
    assert torch.linalg.eigvalsh(matrix).max().item() == pytest.approx(1.0, abs=1e-12)
    degrees = torch.cat([graph.user_degrees, graph.item_degrees]).double()
    torch.testing.assert_close(matrix @ degrees.sqrt(), degrees.sqrt(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("r", [0.0, 0.3, 1.0, 1.25])
def test_general_exponent(r):
    graph = random_graph(edges=80)
    matrix = dense(graph, degree_weights(graph, r, dtype=torch.float64))
    transposed = dense(graph, degree_weights(graph, 1 - r, dtype=torch.float64)).T
    torch.testing.assert_close(matrix, transposed, rtol=1e-12, atol=1e-12)
    if r == 0.0:
        sums = matrix.sum(1)
        torch.testing.assert_close(sums[sums > 0], torch.ones_like(sums[sums > 0]))
