"""Propagation on CUDA against dense float64."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from caged.graph import (
    EdgeWeights,
    Engine,
    Tables,
    propagate,
    propagate_transposed,
    uniform_layers,
)
from tests.graph.graphs import (
    CORNERS,
    dense,
    dense_propagate,
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
