"""Seconds are counted work times rates, and rates are found from measurements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.device_log import Shape, generate
from caged.errors import ConfigError
from caged.graph import BipartiteGraph
from caged.graph.kernels import cpu_rows
from caged.graph.kernels.cpu_rows import named_rows, names_few_edges
from caged.runs.planning import pace
from caged.runs.planning.pace import (
    MOST_EDGES,
    WIDE,
    Measured,
    Rates,
    fitted,
    rates_of,
    rows_apart,
    seconds_per_epoch,
    work_of,
    write_rates,
)
from caged.runs.planning.workload import Workload

CACHE = 50 * 2**20
RATES = Rates("a device", "a test", 2**30, CACHE, 1e-4, 1e-10, 2e-11, 3e-12, 1e-12, 5e-10, 1.0, 4e-10)
SHAPES = [
    Workload(20_000, 5_000, 300_000, 64, 3),
    Workload(200_000, 50_000, 3_000_000, 64, 1),
    Workload(2_000_000, 300_000, 30_000_000, 64, 2),
    Workload(2_000_000, 100_000, 80_000_000, 128, 2),
    Workload(400_000, 100_000, 30_000_000, 32, 3),
    Workload(900_000, 90_000, 5_000_000, 256, 2),
    Workload(900_000, 90_000, 9_000_000, 64, 2, "softmax"),
    Workload(20_000, 5_000, 2_000_000, 128, 1, "softmax"),
]


def measured(work: Workload) -> Measured:
    return Measured(work, seconds_per_epoch(work, RATES), RATES.draw * work.interactions)


def test_an_epoch_is_the_sum_of_its_work() -> None:
    work = Workload(100, 50, 1000, 8, 2, device="cpu", batch_size=100)
    amounts = work_of(work, CACHE)
    assert amounts["launch"] == 10
    assert amounts["stream"] == 10 * 150 * 8
    assert amounts["cached"] == 10 * 2 * 1000 * 8
    assert amounts["gather"] == amounts["softmax"] == 0
    assert seconds_per_epoch(work, RATES) == pytest.approx(
        10 * 1e-4 + 12_000 * 1e-10 + 24_000 * 2e-11 + 160_000 * 1e-12 + 1000 * 4e-10
    )


def test_rates_are_found_again() -> None:
    found = fitted([measured(work) for work in SHAPES], {"gpu": "a device", "gpu_memory_gib": 1.0}, "a test")
    other = Workload(500_000, 200_000, 20_000_000, 96, 3)
    assert seconds_per_epoch(other, found) == pytest.approx(seconds_per_epoch(other, RATES), rel=0.02)
    assert (found.name, found.memory_bytes, found.draw) == ("a device", 2**30, pytest.approx(RATES.draw))


def test_users_and_items_are_held_apart() -> None:
    """Rows of items fit into the cache, of rows of users a quarter does: 5 of 8 reads are from the cache."""
    work = Workload(4000, 100, 20_000, 32, 1, device="cpu", batch_size=20_000)
    amounts = work_of(work, 1000 * 4 * 32)
    assert amounts["cached"] == 5 / 8 * 20_000 * 32
    assert amounts["gather"] == 3 / 8 * 20_000 * 32


def test_cache_and_rows_apart_are_found_again() -> None:
    rates = Rates("a processor", "a test", 0, 2**24, 1e-3, 3e-9, 3e-9, 1e-9, 1e-10, 5e-8, 0.4, 1e-7)
    smaller = [replace(one, users=one.users // 3, interactions=one.interactions // 8, layers=1) for one in SHAPES]
    wide = [replace(one, embedding_size=256) for one in smaller if one.method == "softmax"]
    work = [replace(one, device="cpu") for one in (*SHAPES, *smaller, *wide)]
    epochs = [Measured(one, seconds_per_epoch(one, rates), rates.draw * one.interactions) for one in work]
    assert 0 < sum(rows_apart(one) for one in work) < len(work)
    assert any(rows_apart(one) and one.method == "softmax" for one in work)
    found = fitted(epochs, {"cpu": "a processor", "cores": 2}, "a test")
    assert found.cache_bytes == rates.cache_bytes
    assert found.apart == pytest.approx(rates.apart, rel=1e-3)
    assert (found.name, found.memory_bytes) == ("2 cores of a processor", 0)


def test_rows_are_apart_where_the_engine_does_it() -> None:
    work = Workload(20_000, 5000, 300_000, WIDE, 3, device="cpu")
    assert (cpu_rows.LEAST_WIDTH, cpu_rows.MOST_EDGES) == (WIDE, MOST_EDGES)
    assert rows_apart(work)
    assert not rows_apart(replace(work, embedding_size=WIDE - 1))
    assert not rows_apart(replace(work, batch_size=20_000))
    assert not rows_apart(replace(work, device="cuda"))
    assert not rows_apart(replace(work, layers=0))


@pytest.mark.parametrize(
    ("users", "items", "interactions"), [(20_000, 5000, 300_000), (5000, 15_000, 200_000), (30_000, 1000, 300_000)]
)
def test_batches_are_apart_that_the_engine_treats_so(users: int, items: int, interactions: int) -> None:
    """On a log by power laws, whose popular nodes have most of the edges, but for batches near the limit."""
    log = generate(Shape(users, items, interactions), 1, torch.device("cpu"))
    graph = BipartiteGraph.from_rows(log.user_offsets, log.items, log.item_count, "cpu")
    work = Workload(users, items, graph.edge_count, WIDE, 2, device="cpu")
    largest = max(batch for batch in range(1, users) if rows_apart(replace(work, batch_size=batch)))
    assert few_edges(graph, 3 * largest // 4)
    assert not few_edges(graph, 4 * largest // 3)


def few_edges(graph: BipartiteGraph, batch: int) -> bool:
    """Whether the engine thinks so of a batch of triples."""
    draw = torch.Generator().manual_seed(1)
    edges = torch.randint(graph.edge_count, (batch,), generator=draw)
    users, items = graph.user_count, graph.item_count
    flags = torch.zeros(users + items, dtype=torch.bool)
    flags[graph.users.index_select(0, edges).long()] = True
    flags[users + graph.items.index_select(0, edges).long()] = True
    flags[users + torch.randint(items, (batch,), generator=draw)] = True
    return names_few_edges(named_rows(flags, graph.cpu_layout), graph.cpu_layout)


def test_more_columns_never_take_less_time_on_cpu() -> None:
    work = Workload(300_000, 150_000, 4_000_000, 32, 2, device="cpu")
    seconds = [seconds_per_epoch(replace(work, embedding_size=columns), rates_of("cpu")) for columns in range(16, 128)]
    assert seconds == sorted(seconds)


def test_half_the_columns_take_less_time() -> None:
    work = SHAPES[2]
    assert seconds_per_epoch(replace(work, devices=2), RATES) < seconds_per_epoch(work, RATES)


def test_rates_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "RATES", tmp_path / "rates.json")
    pace._stored.cache_clear()
    write_rates("cuda", RATES)
    assert rates_of("cuda") == RATES
    with pytest.raises(ConfigError, match="no rates are known for device 'cpu'"):
        rates_of("cpu")
    monkeypatch.undo()
    pace._stored.cache_clear()
    assert rates_of("cpu").name
