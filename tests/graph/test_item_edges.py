"""Propagation over user-item and item-item edges against dense float64 matrices."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from caged.graph import EdgeWeights, Engine, Tables, propagate, uniform_layers
from caged.graph.item_edges import ItemEdges, propagate_with_items
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


def random_edges(graph, capacity=6, seed=3, dtype=torch.float64):
    """Pairs may repeat and join an item to itself; every third place is empty."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(graph.item_count, (2, capacity), generator=generator)
    weights = torch.rand(capacity, generator=generator, dtype=dtype)
    weights[::3] = 0
    return ends[0], ends[1], weights


def dense_with_items(graph, weights, firsts, seconds, values):
    matrix = dense(graph, weights)
    for first, second, value in zip(firsts.tolist(), seconds.tolist(), values.tolist(), strict=True):
        matrix[graph.user_count + first, graph.user_count + second] += value
        matrix[graph.user_count + second, graph.user_count + first] += value
    return matrix


@pytest.mark.parametrize("layers", LAYER_WEIGHTS.values(), ids=LAYER_WEIGHTS.keys())
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_forward_and_backward_equal_dense(make, layers):
    graph = make()
    weights, edges = random_weights(graph), random_edges(graph)
    leaves = Tables(*(part.requires_grad_() for part in tables(graph)))
    reference = torch.cat(leaves).detach().requires_grad_()

    ours = torch.cat(propagate_with_items(weights, ItemEdges(*edges), leaves, layers))
    expected = dense_propagate(dense_with_items(graph, weights, *edges), reference, layers)
    assert_same_with_gradients(ours, leaves, expected, reference)


def test_the_tables_stay_as_they_are():
    graph = random_graph()
    given = tables(graph)
    before = [part.clone() for part in given]
    propagate_with_items(random_weights(graph), ItemEdges(*random_edges(graph)), given, uniform_layers(2))
    assert all(torch.equal(part, old) for part, old in zip(given, before, strict=True))


def test_a_product_by_hand():
    """Items 0 - 1 with weight 2 and 1 - 2 with weight 3; the place 0 - 2 is empty."""
    edges = ItemEdges(torch.tensor([0, 1, 0]), torch.tensor([1, 2, 2]), torch.tensor([2.0, 3.0, 0.0]))
    sums = torch.tensor([[1000.0], [0.0], [0.0], [7.0]])
    edges.add_products(sums, torch.tensor([[1.0], [10.0], [100.0], [5.0]]))
    assert sums.squeeze(1).tolist() == [1020, 302, 30, 7]


def test_without_places_it_is_plain_propagation_bit_for_bit():
    graph = random_graph()
    weights, given = random_weights(graph, dtype=torch.float32), tables(graph, width=70, dtype=torch.float32)
    nothing = ItemEdges(*random_edges(graph, capacity=0, dtype=torch.float32))
    found = torch.cat(propagate_with_items(weights, nothing, given, uniform_layers(3)))
    assert torch.equal(found, torch.cat(propagate(weights, given, uniform_layers(3))))


def test_edges_are_assigned_in_place():
    graph = graph_of([(0, 0), (1, 1), (1, 2)], 2, 3)
    weights, given = random_weights(graph), tables(graph)
    edges, others = ItemEdges(*random_edges(graph, seed=1)), random_edges(graph, seed=2)
    held = [part.data_ptr() for part in (edges.targets, edges.sources, edges.values)]
    edges.assign(*others)
    assert [part.data_ptr() for part in (edges.targets, edges.sources, edges.values)] == held
    found = torch.cat(propagate_with_items(weights, edges, given, (0.5, 0.5)))
    expected = torch.cat(propagate_with_items(weights, ItemEdges(*others), given, (0.5, 0.5)))
    assert torch.equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
@pytest.mark.parametrize(
    ("backend", "precision", "tolerance"),
    [("sparse", "float32", 1e-5), ("dense", "float32", 1e-5), ("dense", "bf16", 2e-2)],
)
def test_cuda_back_ends_equal_dense_float64(make, backend, precision, tolerance):
    graph = make()
    weights, edges = random_weights(graph, dtype=torch.float32), random_edges(graph, dtype=torch.float32)
    given = tables(graph, width=48, dtype=torch.float32)
    on_gpu = dataclasses.replace(graph.to("cuda"), engine=Engine(backend, precision))
    gpu_weights = EdgeWeights(on_gpu, weights.to_user.cuda(), weights.to_item.cuda())
    gpu_edges = ItemEdges(*(part.cuda() for part in edges))
    leaves = Tables(*(part.cuda().requires_grad_() for part in given))
    flags = torch.ones(graph.user_count + graph.item_count, dtype=torch.uint8, device="cuda")
    flags[0] = 0  # a row that may be wrong
    reference = torch.cat(given).double().requires_grad_()

    ours = torch.cat(propagate_with_items(gpu_weights, gpu_edges, leaves, uniform_layers(3), flags))
    expected = dense_propagate(dense_with_items(graph, weights, *edges), reference, uniform_layers(3))
    scale = expected.abs().max()
    assert ((ours.cpu().double() - expected)[1:].abs().max() / scale).item() < tolerance

    expected[1:].sum().backward()
    ours[1:].sum().backward()
    gradient = torch.cat([leaves.users.grad, leaves.items.grad]).cpu().double()
    assert ((gradient - reference.grad).abs().max() / reference.grad.abs().max()).item() < tolerance
