"""Propagation against dense float64 matrices: forward, backward, corners of the pattern, asymmetric weights."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from caged.graph import (
    EdgeWeights,
    Engine,
    Tables,
    degree_weights,
    propagate,
    propagate_transposed,
    uniform_layers,
)
from caged.graph.kernels import cpu
from caged.graph.kernels.cpu import COLUMNS, CpuLayout, aggregate
from tests.graph.graphs import CORNERS, dense, dense_propagate, graph_of, random_graph, random_weights

LAYER_WEIGHTS = {
    "none": (1.0,),
    "mean of two": uniform_layers(1),
    "mean of four": uniform_layers(3),
    "uneven": (0.7, 0.0, -0.2, 0.5),
}


def tables(graph, width=5, seed=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    rows = graph.user_count + graph.item_count
    stacked = torch.randn(rows, width, generator=generator, dtype=dtype).to(graph.device)
    return Tables(*(part.clone() for part in stacked.split([graph.user_count, graph.item_count])))


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
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)

    seed = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2), dtype=ours.dtype)
    ours.backward(seed)
    expected.backward(seed)
    gradient = torch.cat([leaves.users.grad, leaves.items.grad])
    torch.testing.assert_close(gradient, reference.grad, rtol=1e-12, atol=1e-12)


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


def test_symmetric_weights_may_become_asymmetric():
    graph = random_graph()
    weights, other = degree_weights(graph, dtype=torch.float64), random_weights(graph, seed=5)
    given = tables(graph)
    weights.assign(other.to_user, other.to_item)
    backward = torch.cat(propagate_transposed(weights, given, (0.0, 1.0)))
    torch.testing.assert_close(backward, dense(graph, other).T @ torch.cat(given))


def test_rows_are_dealt_out_only_where_threads_would_be_unbalanced():
    skewed = graph_of([(u, i) for u in range(20) for i in range(10 if u < 10 else 1)], 20, 10)
    assert CpuLayout(skewed, 2).users.order is not None
    assert CpuLayout(skewed, 1).users.order is None
    assert CpuLayout(skewed, 2).items.order is None
    order = CpuLayout(skewed, 2).users.order
    assert sorted(order.tolist()) == list(range(20))
    halves = skewed.user_degrees[order].view(2, 10).sum(1)
    assert halves[0] == halves[1]


@pytest.mark.gpu
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
@pytest.mark.parametrize(
    ("backend", "precision", "tolerance"),
    [
        ("sparse", "float32", 1e-5),
        ("sparse", "bf16", 2e-2),
        ("dense", "float32", 1e-5),
        ("dense", "tf32", 2e-3),
        ("dense", "bf16", 2e-2),
    ],
)
def test_cuda_back_ends_equal_dense_float64(make, backend, precision, tolerance):
    graph = make()
    weights = random_weights(graph, dtype=torch.float32)
    given = tables(graph, width=48, dtype=torch.float32)
    on_gpu = dataclasses.replace(graph.to("cuda"), engine=Engine(backend, precision))
    gpu_weights = EdgeWeights(on_gpu, weights.to_user.cuda() * 0, weights.to_item.cuda() * 0)
    gpu_weights.assign(weights.to_user.cuda(), weights.to_item.cuda())
    gpu_tables = Tables(*(part.cuda() for part in given))
    matrix = dense(graph, weights)
    for layers in ((1.0,), (0.0, 1.0), uniform_layers(3)):
        for ours, reference in ((propagate, matrix), (propagate_transposed, matrix.T)):
            expected = dense_propagate(reference, torch.cat(given).double(), layers)
            actual = torch.cat(ours(gpu_weights, gpu_tables, layers)).double().cpu()
            scale = expected.abs().max()
            assert ((actual - expected).abs().max() / scale).item() < tolerance


@pytest.mark.gpu
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_rows_that_a_batch_does_not_name_may_be_left_out(make, layers):
    """Flagged rows of the result and, from a gradient that is zero elsewhere, all rows of the gradient."""
    graph = make()
    weights = random_weights(graph, dtype=torch.float32)
    on_gpu = dataclasses.replace(graph.to("cuda"), engine=Engine("sparse", "float32"))
    gpu_weights = EdgeWeights(on_gpu, weights.to_user.cuda(), weights.to_item.cuda())
    nodes = graph.user_count + graph.item_count
    flags = (torch.rand(nodes, generator=torch.Generator().manual_seed(3)) < 0.4).to(torch.uint8).cuda()
    gradient = torch.randn(nodes, 48, generator=torch.Generator().manual_seed(4)).cuda() * flags[:, None]
    found = []
    for rows in (None, flags):
        leaves = Tables(*(part.cuda().requires_grad_() for part in tables(graph, width=48, dtype=torch.float32)))
        out = torch.cat(propagate(gpu_weights, leaves, uniform_layers(layers), rows))
        out.backward(gradient)
        found.append((out.detach()[flags.bool()], leaves.users.grad, leaves.items.grad))
    for whole, partial in zip(*found, strict=True):
        torch.testing.assert_close(whole, partial, rtol=1e-5, atol=1e-6)
