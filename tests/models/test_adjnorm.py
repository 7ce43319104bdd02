"""The testable properties of AdjNorm, and its options."""

from __future__ import annotations

import pytest
import torch

from caged.graph import Tables, degree_weights
from caged.models.adjnorm import AdjNorm, AdjNormConfig, loop_weights, propagate_with_loops
from caged.models.lightgcn import LightGCN, LightGCNConfig
from tests.graph.graphs import CORNERS, dense, dense_propagate, graph_of, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import assert_same_training, prepared, some_batch

EXPONENTS = [0.0, 0.25, 0.5, 1.0, 1.5]


def matrix_of(graph, r):
    return dense(graph, degree_weights(graph, r, dtype=torch.float64))


def degrees_of(graph):
    return torch.cat([graph.user_degrees, graph.item_degrees]).double()


def connected():
    pairs = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 1), (2, 3), (3, 1)]
    return graph_of(pairs, 4, 4)


@pytest.mark.parametrize("sampler", ["interaction", "user_equal"])
def test_one_half_trains_as_lightgcn_bit_for_bit(sampler):
    lightgcn = LightGCN(LightGCNConfig(embedding_size=8))
    assert_same_training(AdjNorm(AdjNormConfig(embedding_size=8, r=0.5)), lightgcn, skewed(), sampler=sampler)


def test_zero_makes_rows_sum_to_one_and_one_columns():
    graph = random_graph()
    has_edges = degrees_of(graph) > 0
    rows, columns = matrix_of(graph, 0.0).sum(1), matrix_of(graph, 1.0).sum(0)
    torch.testing.assert_close(rows, has_edges.double())
    torch.testing.assert_close(columns, has_edges.double())


@pytest.mark.parametrize("r", EXPONENTS)
def test_the_transpose_belongs_to_one_minus_r(r):
    graph = random_graph()
    torch.testing.assert_close(matrix_of(graph, r).T, matrix_of(graph, 1 - r))


@pytest.mark.parametrize("r", EXPONENTS)
def test_both_directions_of_an_edge_multiply_to_one_over_both_degrees(r):
    graph = random_graph()
    weights = degree_weights(graph, r, dtype=torch.float64)
    both = graph.user_degrees[graph.users.long()] * graph.item_degrees[graph.items.long()]
    torch.testing.assert_close(weights.to_user * weights.to_item, 1 / both.double())


@pytest.mark.parametrize("r", EXPONENTS)
def test_eigenvalues_do_not_depend_on_r(r):
    found, expected = (torch.linalg.eigvals(matrix_of(connected(), each)).real.sort().values for each in (r, 0.5))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-7)  # zero is a multiple one, hence not to rounding


@pytest.mark.parametrize("r", EXPONENTS)
def test_degrees_to_the_r_are_an_eigenvector(r):
    graph = connected()
    vector = degrees_of(graph) ** r
    torch.testing.assert_close(matrix_of(graph, r) @ vector, vector)


# ---------------------------------------------------------------- self loops


def dense_with_loops(graph, r):
    """D'^(r-1) (A + I) D'^(-r), literally."""
    adjacency = (dense(graph, degree_weights(graph, dtype=torch.float64)) > 0).double()
    degrees = degrees_of(graph) + 1
    looped = adjacency + torch.eye(len(degrees), dtype=torch.float64)
    return torch.diag(degrees ** (r - 1)) @ looped @ torch.diag(degrees**-r)


@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize("r", [0.0, 0.5, 1.25])
def test_propagation_with_self_loops_equals_the_dense_matrix(name, r):
    graph = CORNERS[name]()
    weights, loops = loop_weights(graph, r)
    draw = torch.Generator().manual_seed(4)
    tables = Tables(*(torch.randn(n, 5, generator=draw) for n in (graph.user_count, graph.item_count)))
    layer_weights = (0.1, 0.2, 0.3, 0.4)
    ours = torch.cat(propagate_with_loops(weights, loops, tables, layer_weights))
    expected = dense_propagate(dense_with_loops(graph, r), torch.cat(tables).double(), layer_weights)
    torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-6)


def test_gradient_with_self_loops_is_the_transposed_matrix():
    graph = random_graph()
    weights, loops = loop_weights(graph, 0.8)
    tables = Tables(*(torch.randn(n, 3, requires_grad=True) for n in (graph.user_count, graph.item_count)))
    layer_weights = (0.5, 0.3, 0.2)
    upstream = torch.randn(graph.user_count + graph.item_count, 3)
    torch.cat(propagate_with_loops(weights, loops, tables, layer_weights)).backward(upstream)
    expected = dense_propagate(dense_with_loops(graph, 0.8).T, upstream.double(), layer_weights)
    torch.testing.assert_close(torch.cat([t.grad for t in tables]).double(), expected, rtol=1e-5, atol=1e-6)


def test_self_loops_without_layers_are_the_tables():
    method = prepared(AdjNorm(AdjNormConfig(embedding_size=4, layers=0, self_loop=True)), random_graph())
    assert torch.equal(method.scorer().vectors.users, method.encoder.users)


# ---------------------------------------------------------------- options


def test_the_l2_term_on_propagated_rows():
    graph = random_graph()
    method = prepared(AdjNorm(AdjNormConfig(embedding_size=4, l2_on="propagated")), graph)
    batch = some_batch(graph)
    final = method.scorer().vectors
    rows = [final.users[batch.users.long()], final.items[batch.positives.long()], final.items[batch.negatives.long()]]
    expected = sum(row.square().sum() for row in rows) / (2 * len(batch.users))
    torch.testing.assert_close(method.loss(batch).parts["l2"], expected)


@pytest.mark.parametrize(("option", "value"), [("r", 0.7), ("self_loop", True), ("l2_on", "propagated"), ("layers", 1)])
def test_every_option_changes_the_loss(option, value):
    graph = random_graph()
    batch = some_batch(graph)
    before, after = (
        prepared(AdjNorm(AdjNormConfig(embedding_size=4, l2=0.1, **options)), graph).loss(batch).total.item()
        for options in ({}, {option: value})
    )
    assert before != after
