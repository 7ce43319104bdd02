"""Propagation against dense float64 matrices: forward, backward, corners of the pattern, asymmetric weights."""

from __future__ import annotations

import pytest
import torch

from caged.graph import (
    Tables,
    degree_weights,
    propagate,
    propagate_transposed,
    uniform_layers,
)
from caged.graph.kernels.cpu import aggregate
from tests.graph.graphs import (
    CORNERS,
    LAYER_WEIGHTS,
    assert_same_with_gradients,
    dense,
    dense_propagate,
    graph_of,
    random_graph,
    random_weights,
    tables,
)


@pytest.mark.parametrize("layers", LAYER_WEIGHTS.values(), ids=LAYER_WEIGHTS.keys())
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_forward_and_backward_equal_dense(make, layers):
    graph = make()
    weights = random_weights(graph)
    matrix = dense(graph, weights)
    given = tables(graph)
    leaves = Tables(*(part.requires_grad_() for part in given))
    reference = torch.cat(given).detach().requires_grad_()

    ours = torch.cat(propagate(weights, leaves, layers))
    expected = dense_propagate(matrix, reference, layers)
    assert_same_with_gradients(ours, leaves, expected, reference)


def test_float32_is_close_to_float64():
    graph = random_graph(edges=60)
    weights = random_weights(graph, dtype=torch.float32)
    given = tables(graph, dtype=torch.float32)
    ours = torch.cat(propagate(weights, given, uniform_layers(3)))
    expected = dense_propagate(dense(graph, weights), torch.cat(given).double(), uniform_layers(3))
    torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-5)


def test_the_transposed_pass_is_the_transpose():
    """<W x, y> = <x, W^T y>, and W^T differs from W here."""
    graph = random_graph()
    weights = random_weights(graph)
    x, y = tables(graph, seed=1), tables(graph, seed=2)
    forward = torch.cat(propagate(weights, x, (0.0, 1.0)))
    backward = torch.cat(propagate_transposed(weights, y, (0.0, 1.0)))
    torch.testing.assert_close((forward * torch.cat(y)).sum(), (torch.cat(x) * backward).sum())
    assert not torch.allclose(backward, torch.cat(propagate(weights, y, (0.0, 1.0))))


def test_rows_without_edges_are_zero():
    offsets = torch.tensor([0, 0, 2, 2], dtype=torch.int32)
    sources = torch.tensor([1, 0], dtype=torch.int32)
    table = torch.tensor([[1.0, 2.0], [10.0, 20.0]])
    out = aggregate(offsets, sources, torch.tensor([0.5, 2.0]), table)
    assert out.tolist() == [[0, 0], [7, 14], [0, 0]]


def test_two_node_graph_by_hand():
    """One edge: the weight is 1, and with L = 1 both nodes end at the mean of the two rows."""
    graph = graph_of([(0, 0)], 1, 1)
    out = propagate(degree_weights(graph), Tables(torch.tensor([[2.0]]), torch.tensor([[6.0]])), (0.5, 0.5))
    assert out.users.item() == out.items.item() == 4.0


def test_assigned_weights_are_seen_in_both_directions():
    graph = random_graph()
    weights, other = random_weights(graph, seed=0), random_weights(graph, seed=5)
    given = tables(graph)
    weights.assign(other.to_user, other.to_item)
    for layers in ((0.0, 1.0), (0.2, 0.3, 0.5)):
        assert torch.equal(torch.cat(propagate(weights, given, layers)), torch.cat(propagate(other, given, layers)))
        assert torch.equal(
            torch.cat(propagate_transposed(weights, given, layers)),
            torch.cat(propagate_transposed(other, given, layers)),
        )


def test_same_input_same_bits():
    graph = random_graph(edges=200, user_count=50, item_count=40)
    weights = degree_weights(graph)
    given = tables(graph, width=64, dtype=torch.float32)
    first, second = (torch.cat(propagate(weights, given, uniform_layers(3))) for _ in range(2))
    assert torch.equal(first, second)


def test_symmetric_weights_may_become_asymmetric():
    graph = random_graph()
    weights, other = degree_weights(graph, dtype=torch.float64).per_edge(), random_weights(graph, seed=5)
    given = tables(graph)
    weights.assign(other.to_user, other.to_item)
    backward = torch.cat(propagate_transposed(weights, given, (0.0, 1.0)))
    torch.testing.assert_close(backward, dense(graph, other).T @ torch.cat(given))


def test_nothing_is_kept_for_the_backward_pass():
    graph = random_graph()
    given = Tables(*(part.requires_grad_() for part in tables(graph)))
    out = propagate(degree_weights(graph, dtype=torch.float64), given, uniform_layers(2))
    assert out.users.grad_fn.saved_tensors == ()
