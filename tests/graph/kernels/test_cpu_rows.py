"""Propagation for the rows of a batch on CPU: the same bits as with whole tables, from fewer edges."""

from __future__ import annotations

import pytest
import torch

from caged.graph import Tables, propagate, propagate_named
from caged.graph.kernels import cpu, cpu_rows
from caged.graph.kernels.cpu import CpuLayout
from tests.graph.graphs import CORNERS, LAYER_WEIGHTS, random_graph, random_weights, tables

LAYERS = {name: weights for name, weights in LAYER_WEIGHTS.items() if len(weights) > 1}


@pytest.fixture(autouse=True)
def _always_worth_it(monkeypatch):
    monkeypatch.setattr(cpu_rows, "LEAST_WIDTH", 1)
    monkeypatch.setattr(cpu_rows, "MOST_EDGES", 2.0)


@pytest.fixture(params=["one thread", "three threads", "many runs"])
def cut(request, monkeypatch):
    """A way to lay out the edges."""
    if request.param == "many runs":
        monkeypatch.setattr(cpu, "_run_count", lambda targets, sources, edges, columns: -(-sources // 3))
    return 3 if request.param == "three threads" else 1


def flags_of(graph, seed=0):
    """About half of the nodes."""
    return (torch.rand(graph.user_count + graph.item_count, generator=torch.Generator().manual_seed(seed)) < 0.5).byte()


def case(make, threads):
    graph = make()
    graph.__dict__["cpu_layout"] = CpuLayout(graph, threads)
    flags = flags_of(graph)
    users, items = flags.bool().split([graph.user_count, graph.item_count])
    weights = random_weights(graph, dtype=torch.float32)
    return graph, weights, flags, Tables(users, items)


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS.keys())
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_named_rows_have_the_bits_of_whole_tables(make, layers, cut):
    graph, weights, flags, named = case(make, cut)
    given = tables(graph, width=70, dtype=torch.float32)
    whole = weights.operator.apply(given, layers, transposed=False)
    part = weights.operator.apply(given, layers, transposed=False, rows=flags)
    for expected, found, flagged in zip(whole, part, named, strict=True):
        assert torch.equal(found[flagged], expected[flagged])


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS.keys())
@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_gradients_of_named_rows_have_the_bits_of_whole_tables(make, layers, cut):
    graph, weights, flags, named = case(make, cut)
    given = tables(graph, width=70, dtype=torch.float32)
    given = Tables(*(part.masked_fill(~flagged.unsqueeze(1), 0.0) for part, flagged in zip(given, named, strict=True)))
    whole = weights.operator.apply(given, layers, transposed=True)
    part = weights.operator.apply(given, layers, transposed=True, rows=flags)
    for expected, found in zip(whole, part, strict=True):
        assert torch.equal(found, expected)


def test_rows_alone_give_the_gradients_of_whole_tables(cut):
    """Of propagated and of layer-0 rows together, as a loss with an L2 term has them."""
    graph, weights, flags, named = case(random_graph, cut)
    layers = LAYERS["mean of four"]
    one, other = (tables(graph, width=70, dtype=torch.float32) for _ in range(2))
    for part in (*one, *other):
        part.requires_grad_()

    found = propagate_named(weights, one, layers, flags)
    assert found is not None
    sum((part.square().sum() for part in (*found.final, *found.layer0)), start=torch.zeros(())).backward()
    final = propagate(weights, other, layers)
    rows = [
        part.index_select(0, flagged.nonzero().squeeze(1))
        for tables_ in (final, other)
        for part, flagged in zip(tables_, named, strict=True)
    ]
    sum((part.square().sum() for part in rows), start=torch.zeros(())).backward()

    # Places of several threads are in another order.
    for ours, kept, expected in zip(found.final, found.rows, rows[:2], strict=True):
        assert torch.equal(ours[kept.argsort()], expected)
    for mine, expected in zip(one, other, strict=True):
        assert torch.equal(mine.grad, expected.grad)


def test_it_is_worth_it_for_wide_tables_and_few_edges(monkeypatch):
    monkeypatch.undo()
    graph = random_graph()
    operator = random_weights(graph).operator
    nodes = graph.user_count + graph.item_count
    some = torch.zeros(nodes, dtype=torch.uint8)
    some[:3] = 1  # of thirteen users, and no item
    assert operator.named(some, cpu_rows.LEAST_WIDTH) is not None
    assert operator.named(some, cpu_rows.LEAST_WIDTH - 1) is None
    assert operator.named(torch.ones_like(some), cpu_rows.LEAST_WIDTH) is None
