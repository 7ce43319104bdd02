"""Edge weights from degrees."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.graph import degree_factors, degree_weights
from tests.graph.graphs import CORNERS, dense, graph_of, random_graph


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


@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_factors_of_nodes_without_edges_are_zero_and_all_are_finite(make):
    graph = make()
    sent, received = degree_factors(graph.user_degrees, graph.item_degrees, 0.3)
    for side, degrees in (("users", graph.user_degrees), ("items", graph.item_degrees)):
        for factors in (getattr(sent, side), getattr(received, side)):
            assert factors.dtype == torch.float64
            assert bool(factors.isfinite().all())
            assert torch.equal(factors > 0, degrees > 0)


def test_symmetric_weights_have_one_set_of_factors():
    graph = random_graph()
    sent, received = degree_factors(graph.user_degrees, graph.item_degrees, 0.5)
    assert sent is received


def test_weights_per_edge_are_the_same_and_may_change():
    graph = random_graph()
    fixed = degree_weights(graph, 0.2)
    own = fixed.per_edge()
    assert torch.equal(own.to_user, fixed.to_user)
    assert torch.equal(own.to_item, fixed.to_item)
    own.assign(own.to_item, own.to_item)
    assert not torch.equal(own.to_user, fixed.to_user)
