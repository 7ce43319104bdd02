"""The least time of a benchmark: bytes and flops counted by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import floor
from benchmarks.floor import Floor, propagation_floor, softmax_step_floor, step_floor
from caged.graph import BipartiteGraph
from tests.graph.graphs import random_graph

RATES: Any = SimpleNamespace(cache_bytes_per_s=1000.0, memory_bytes_per_s=100.0, flops=10.0)


def graph_of(device: str) -> BipartiteGraph:
    """Sizes and device are all that is read."""
    graph = random_graph()
    sizes = {"user_count": graph.user_count, "item_count": graph.item_count, "edge_count": graph.edge_count}
    return SimpleNamespace(**sizes, device=SimpleNamespace(type=device), engine=graph.engine)  # type: ignore[return-value]


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "chosen_backend", lambda graph: "sparse")


@pytest.mark.usefixtures("sparse")
def test_sparse_products_read_a_row_per_edge_and_direction() -> None:
    graph = graph_of("cpu")
    edges, nodes = graph.edge_count, graph.user_count + graph.item_count
    product = 2 * edges * (4 * 16 + 8) + nodes * 4 * 16
    assert propagation_floor(graph, 16, 3, RATES) == Floor(6 * product / 1000, "copy in cache")
    adam = 7 * 4 * 16 * nodes
    assert step_floor(graph, 16, 3, RATES).seconds == pytest.approx((6 * product + adam) / 1000)


@pytest.mark.usefixtures("sparse")
def test_on_cuda_rows_have_two_bytes_per_number_and_the_last_layer_is_not_counted() -> None:
    graph = graph_of("cuda")
    product = 2 * graph.edge_count * (2 * 16 + 8) + (graph.user_count + graph.item_count) * 4 * 16
    assert propagation_floor(graph, 16, 3, RATES).seconds == pytest.approx(6 * product / 1000)
    assert propagation_floor(graph, 16, 3, RATES, for_a_batch=True).seconds == pytest.approx(5 * product / 1000)


def test_dense_products_are_limited_by_flops_or_by_reading_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "chosen_backend", lambda graph: "dense")
    graph = graph_of("cuda")
    cells = graph.user_count * graph.item_count
    assert propagation_floor(graph, 16, 1, RATES) == Floor(2 * 2 * 2 * cells * 16 / 10, "matrix product")
    narrow: Any = SimpleNamespace(cache_bytes_per_s=1000.0, memory_bytes_per_s=1.0, flops=1e9)
    assert propagation_floor(graph, 16, 1, narrow) == Floor(2 * 2 * 2 * cells / 1.0, "copy in memory")
    assert Floor(0.5, "").fraction(2.0) == 0.25


@pytest.mark.usefixtures("sparse")
def test_a_softmax_step_adds_three_products_of_batch_and_candidates() -> None:
    graph = graph_of("cpu")
    found, rest = softmax_step_floor(graph, 16, 3, 32, 8, RATES), step_floor(graph, 16, 3, RATES)
    assert found.seconds == pytest.approx(rest.seconds + 3 * 2 * 32 * 8 * 16 / 10)
    assert found.limit == "matrix product"  # 10 flops a second
    assert softmax_step_floor(graph, 16, 3, 1, 1, RATES).limit == rest.limit
