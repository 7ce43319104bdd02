"""Propagation on CUDA against dense float64."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from caged.graph import (
    BipartiteGraph,
    EdgeWeights,
    Engine,
    Tables,
    degree_weights,
    propagate,
    propagate_transposed,
    uniform_layers,
)
from caged.graph.kernels.cuda import CHUNK, FIRST, LATER, WHOLE
from tests.graph.graphs import (
    CORNERS,
    dense,
    dense_propagate,
    long_rows,
    random_weights,
    tables,
)


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


@pytest.mark.parametrize("make", [*CORNERS.values(), long_rows], ids=[*CORNERS.keys(), "long rows"])
def test_chunks_hold_every_edge_once_and_every_row(make):
    graph = make()
    layout = graph.sparse_layout
    row, start, length, kind = (part.long() for part in layout.chunks)
    sides = (
        (slice(layout.user_chunks), graph.user_offsets, graph.user_count),
        (slice(layout.user_chunks, None), graph.item_offsets, graph.item_count),
    )
    for side, offsets, count in sides:
        edges = [range(int(first), int(first + many)) for first, many in zip(start[side], length[side], strict=True)]
        owners = torch.repeat_interleave(offsets.diff())
        assert sorted(edge for chunk in edges for edge in chunk) == list(range(graph.edge_count))
        assert all(owners[edge] == own for chunk, own in zip(edges, row[side], strict=True) for edge in chunk)
        chunks_of = torch.bincount(row[side], minlength=count)
        assert chunks_of.tolist() == [max(1, -(-degree // CHUNK)) for degree in offsets.diff().tolist()]
        assert torch.equal(kind[side] == WHOLE, (chunks_of == 1)[row[side]])
        assert torch.equal(torch.bincount(row[side][kind[side] == FIRST], minlength=count), (chunks_of > 1).long())
        assert set(kind[side].tolist()) <= {WHOLE, FIRST, LATER}
        assert torch.equal(length[side], length[side].sort(descending=True).values)


@pytest.mark.gpu
def test_propagation_holds_two_and_a_half_tables_at_most_and_keeps_one():
    """In bfloat16: the sums, the table that they are read from, and for a moment the next one."""
    rng = np.random.default_rng(0)
    users, items = np.unique(rng.integers(0, 10**5, (2, 10**6)), axis=1)
    graph = BipartiteGraph.from_edges(users, items, 10**5, 10**5, "cuda", Engine("sparse", "bf16"))
    weights = degree_weights(graph)
    given = Tables(*(torch.randn(10**5, 64, device="cuda", requires_grad=True) for _ in range(2)))
    table = sum(part.numel() * 4 for part in given)
    propagate(weights, given, uniform_layers(2))  # layouts are made
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = propagate(weights, given, uniform_layers(2))
    assert torch.cuda.max_memory_allocated() - before <= 2.5 * table
    assert torch.cuda.memory_allocated() - before <= 1.1 * table
    assert len(out.users) == 10**5
