"""The sparse kernel. Without a GPU, TRITON_INTERPRET=1 runs the same program on CPU, slowly."""

from __future__ import annotations

import os

import pytest
import torch

from caged.graph import BipartiteGraph, Tables, degree_factors, degree_weights, uniform_layers
from caged.graph.kernels import FactoredOperator, SparseOperator
from tests.graph.graphs import CORNERS, dense, dense_propagate, long_rows, random_weights, tables

pytestmark = pytest.mark.gpu

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
GRAPHS = {**CORNERS, "long rows": long_rows}
TOLERANCE = {"float32": 1e-5, "bf16": 2e-2}


def operators_of(graph, kind, precision):
    """On the device, and the float64 matrix that it stands for."""
    on_device = graph.to(DEVICE)
    if kind == "edges":
        weights = random_weights(graph, dtype=torch.float32)
        own = (weights.to_user.to(DEVICE), weights.to_item.to(DEVICE))
        return SparseOperator(on_device, *own, precision), dense(graph, weights)
    factors = degree_factors(on_device.user_degrees, on_device.item_degrees, kind)
    return FactoredOperator(on_device, factors, precision), dense(graph, degree_weights(graph, kind, torch.float64))


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("kind", ["edges", 0.5, 0.2])
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS.keys())
def test_products_equal_dense_float64(make, kind, precision):
    graph = make()
    operator, matrix = operators_of(graph, kind, precision)
    given = tables(graph, width=48, dtype=torch.float32)
    on_device = Tables(*(part.to(DEVICE) for part in given))
    for layers in ((1.0,), (0.0, 1.0), uniform_layers(3)):
        for transposed in (False, True):
            expected = dense_propagate(matrix.T if transposed else matrix, torch.cat(given).double(), layers)
            found = torch.cat(operator.apply(on_device, layers, transposed=transposed)).double().cpu()
            assert ((found - expected).abs().max() / expected.abs().max()).item() < TOLERANCE[precision]


@pytest.mark.parametrize("kind", ["edges", 0.2])
@pytest.mark.parametrize("width", [1, 5, 64, 130])
def test_flagged_rows_of_any_width_are_right_and_others_zero(kind, width):
    graph = long_rows()
    operator, _ = operators_of(graph, kind, "float32")
    given = Tables(*(part.to(DEVICE) for part in tables(graph, width=width, dtype=torch.float32)))
    nodes = graph.user_count + graph.item_count
    flags = (torch.rand(nodes, generator=torch.Generator().manual_seed(3)) < 0.4).to(DEVICE)
    whole, partial = (
        torch.cat(operator.apply(given, uniform_layers(2), transposed=False, rows=rows))
        for rows in (None, flags.to(torch.uint8))
    )
    torch.testing.assert_close(partial[flags], whole[flags], rtol=1e-5, atol=1e-6)
    assert bool((partial[~flags] == 0).all())


@pytest.mark.parametrize("kind", ["edges", 0.2])
def test_tables_that_are_given_stay_as_they_are(kind):
    graph = long_rows()
    operator, _ = operators_of(graph, kind, "float32")
    given = Tables(*(part.to(DEVICE) for part in tables(graph, dtype=torch.float32)))
    before = [part.clone() for part in given]
    operator.apply(given, uniform_layers(3), transposed=False)
    assert all(torch.equal(part, old) for part, old in zip(given, before, strict=True))


@pytest.mark.skipif(DEVICE == "cpu", reason="takes 25 GB")
def test_places_in_tables_may_pass_2_to_the_31():
    """The only edges are those of the last user, whose row begins behind the last number that an int32 can count."""
    users, width = 17 * 10**6, 128
    assert (users - 1) * width > 2**31
    offsets = torch.zeros(users + 1, dtype=torch.int32, device=DEVICE)
    offsets[-1] = 2
    graph = BipartiteGraph.from_rows(offsets, torch.tensor([0, 2], dtype=torch.int32), 3, DEVICE)
    operator = FactoredOperator(graph, degree_factors(graph.user_degrees, graph.item_degrees, 0.5), "bf16")
    given = Tables(torch.ones(users, width, device=DEVICE), torch.full((3, width), 2.0, device=DEVICE))
    found = operator.apply(given, (0.0, 1.0), transposed=False)
    weight = 0.5**0.5  # of degrees 2 and 1
    torch.testing.assert_close(found.users[-1].cpu(), torch.full((width,), 4 * weight), rtol=1e-2, atol=0)
    assert int(found.users.count_nonzero()) == width
    torch.testing.assert_close(found.items[:, 0].cpu(), torch.tensor([weight, 0.0, weight]), rtol=1e-2, atol=0)
