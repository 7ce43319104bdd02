"""Propagation on CPU: how it is cut up does not show in the result."""

from __future__ import annotations

import pytest
import torch

from caged.graph import (
    EdgeWeights,
    degree_weights,
    propagate,
    propagate_transposed,
    uniform_layers,
)
from caged.graph.kernels import cpu
from caged.graph.kernels.cpu import COLUMNS, CpuLayout
from tests.graph.graphs import (
    CORNERS,
    dense,
    dense_propagate,
    graph_of,
    random_weights,
    tables,
)


@pytest.mark.parametrize("width", [1, 63, 64, 65, 130, 256])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_column_blocks_and_internal_order_do_not_show(width, threads):
    """Any width, and rows dealt out for any number of threads, give the plain product."""
    graph = CORNERS["heavy head"]()
    graph.__dict__["cpu_layout"] = CpuLayout(graph, threads)
    weights = random_weights(graph)
    given = tables(graph, width=width)
    expected = dense_propagate(dense(graph, weights), torch.cat(given), uniform_layers(2))
    torch.testing.assert_close(torch.cat(propagate(weights, given, uniform_layers(2))), expected)
    assert COLUMNS == 64


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_runs_of_source_rows_do_not_show(monkeypatch, make, threads):
    """Edges cut into many runs, and narrow column blocks as on large tables, give the plain product."""
    monkeypatch.setattr(cpu, "_run_count", lambda targets, sources, edges, columns: -(-sources // 3))
    monkeypatch.setattr(cpu, "LARGE_TABLE_ROWS", 0)
    monkeypatch.setattr(cpu, "COLUMNS_OF_LARGE_TABLES", 2)
    graph = make()
    layout = CpuLayout(graph, threads)
    graph.__dict__["cpu_layout"] = layout
    assert len(layout.to_users.runs) == -(-graph.item_count // 3)
    weights = random_weights(graph)
    given = tables(graph)
    matrix = dense(graph, weights)
    for ours, plain in ((propagate, matrix), (propagate_transposed, matrix.T)):
        expected = dense_propagate(plain, torch.cat(given), uniform_layers(3))
        torch.testing.assert_close(torch.cat(ours(weights, given, uniform_layers(3))), expected)


def test_many_nodes_and_edges_are_cut_into_runs_only_where_rows_are_long():
    assert cpu._run_count(10_000, 55_000, 1_150_000, columns=32) == 7  # Pinterest, items <- users
    assert cpu._run_count(55_000, 10_000, 1_150_000, columns=32) == 1  # users have 21 items each
    assert cpu._run_count(6_040, 3_706, 800_000, columns=64) == 1  # ML-1M: the table fits
    assert cpu._run_count(3_706, 6_040, 800_000, columns=64) == 2


def test_rows_are_dealt_out_only_where_threads_would_be_unbalanced():
    skewed = graph_of([(u, i) for u in range(20) for i in range(10 if u < 10 else 1)], 20, 10)
    assert CpuLayout(skewed, 2).users.order is not None
    assert CpuLayout(skewed, 1).users.order is None
    assert CpuLayout(skewed, 2).items.order is None
    order = CpuLayout(skewed, 2).users.order
    assert sorted(order.tolist()) == list(range(20))
    halves = skewed.user_degrees[order].view(2, 10).sum(1)
    assert halves[0] == halves[1]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("r", [0.5, 0.3])
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_factors_and_the_weights_that_they_stand_for_give_the_same_bits(monkeypatch, make, r, threads):
    monkeypatch.setattr(cpu, "_run_count", lambda targets, sources, edges, columns: -(-sources // 3))
    graph = make()
    graph.__dict__["cpu_layout"] = CpuLayout(graph, threads)
    factored = degree_weights(graph, r)
    per_edge = EdgeWeights(graph, factored.to_user, factored.to_item)
    given = tables(graph, dtype=torch.float32)
    for ours in (propagate, propagate_transposed):
        found, expected = (torch.cat(ours(weights, given, uniform_layers(3))) for weights in (factored, per_edge))
        assert torch.equal(found, expected)
