"""Bytes per interaction: what `docs/scale.md` states."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.graph import BipartiteGraph, EdgeWeights, bytes_held, degree_factors
from caged.graph.kernels import FactoredOperator, SparseOperator
from caged.models import METHODS
from caged.seeding import Generators

CHUNKED = 0.4  # bytes per interaction of what says where the pieces of long rows lie


def graph_with(edges):
    """200 users and 400 items, whatever the number of interactions."""
    cells = np.sort(np.random.default_rng(1).choice(200 * 400, edges, replace=False))
    return BipartiteGraph.from_edges(cells // 400, cells % 400, 200, 400)


def per_interaction(held):
    """By what `held` grows with a graph, on the same nodes."""
    return (held(graph_with(60_000)) - held(graph_with(20_000))) / 40_000


def test_shared_memory_counts_once():
    values = torch.zeros(100, dtype=torch.int32)
    assert bytes_held(values, values[50:], [values.view(10, 10)]) == 400
    assert bytes_held({"a": values, "b": values.clone()}) == 800
    assert bytes_held("text", 5, None) == 0


def test_a_graph_holds_eight_bytes_per_interaction_and_four_for_each_number_that_was_asked_for():
    assert per_interaction(bytes_held) == 8

    def held(graph):
        return bytes_held(graph, graph.users, graph.by_item)

    assert per_interaction(held) == 16


def test_factors_on_cuda_add_nothing_per_interaction():
    def held(graph):
        factors = degree_factors(graph.user_degrees, graph.item_degrees, 0.25)
        return bytes_held(graph, FactoredOperator(graph, factors, "auto"))

    assert 8 <= per_interaction(held) <= 8 + CHUNKED


def test_weights_per_edge_on_cuda_add_twenty_bytes():
    def held(graph):
        values = torch.rand(2, graph.edge_count)
        weights = EdgeWeights(graph, *values)
        del graph.__dict__["cpu_layout"]  # a graph on CUDA has none
        own = (weights.to_user, weights.to_item)
        return bytes_held(graph, own, SparseOperator(graph, *own, "auto"))

    assert 28 <= per_interaction(held) <= 28 + CHUNKED


@pytest.mark.parametrize("name", ["lightgcn", "softmax", "adjnorm", "ips", "reg"])
def test_methods_with_degree_weights_hold_thirty_two_bytes_on_cpu(name):
    """Rows of both sides, their copies in the order of the CPU kernel with its permutation, and weights."""

    def held(graph):
        method = METHODS[name].method(METHODS[name].config())
        method.prepare(graph, Generators(0, graph.device))
        method.encoder.weights.operator  # noqa: B018 - it is made when it is first used
        return bytes_held(graph, method)

    assert per_interaction(held) <= 32
