"""The formulas: what is sent, what is held, and that groups of users compute the same layer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import random as random_matrix

from benchmarks.columns_model import Machine, Shape, cost, main, partitions_of, simulated_layer
from caged.runs.planning.inventory import inventory
from caged.runs.planning.workload import Workload

SHAPE = Shape(users=20e6, items=2e6, interactions=1e9, width=64, layers=2)
MACHINE = Machine(seconds_per_row=2e-11, bytes_per_second=1e11)


def test_columns_divide_tables_and_partitions_the_graph():
    alone, columns, both = (cost(SHAPE, *given, MACHINE) for given in ((1, 1), (4, 1), (4, 2)))
    assert alone.sent == 0
    assert columns.graph == alone.graph
    assert columns.memory - columns.graph <= 0.35 * (alone.memory - alone.graph)
    assert both.graph == pytest.approx(alone.graph / 2, rel=0.07)  # all items are in each
    assert both.sent > columns.sent
    assert alone.computing / 4 < columns.computing < alone.computing / 2  # finding the rows is not divided
    assert both.computing < columns.computing


def test_memory_is_what_was_measured_and_what_a_plan_says():
    record = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "h200_log_1b.json").read_text())
    measured = max(epoch["peak_bytes"] for epoch in record["epochs"])
    assert cost(SHAPE, 1, 1, MACHINE).memory == pytest.approx(measured, rel=0.01)
    work = Workload(200_000_000, 20_000_000, 10**10, 64, 2, devices=64, validation_users=10_000)
    ten = Shape(users=200e6, items=20e6, interactions=1e10, width=64, layers=2)
    assert cost(ten, 64, 1, MACHINE).memory == pytest.approx(inventory(work).in_tensors, rel=0.08)


ASSUMED = ("--seconds-per-row", "2e-11", "--bytes-per-second", "1e11")


def test_devices_are_divided_by_halves():
    assert partitions_of(8, 64) == [1, 2, 4, 8]
    assert partitions_of(128, 64) == [2, 4, 8, 16, 32, 64, 128]
    assert partitions_of(6, 4) == [2]


def test_a_line_for_each_division(capsys):
    main(["--devices", "8", *ASSUMED])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["partitions", "1", "2", "4", "8"]


@pytest.mark.parametrize("devices", ["0", "-1", "65"])
def test_devices_that_cannot_be_divided_are_one_sentence(devices, capsys):
    with pytest.raises(SystemExit) as end:
        main(["--devices", devices, "--k", "64", *ASSUMED])
    assert end.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"--devices is {devices} with --k 64; it must be from 1 to --k, or")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_groups_of_users_compute_the_same_layer(partitions):
    draw = np.random.default_rng(1)
    matrix = random_matrix(50, 20, density=0.2, format="csr", random_state=1)
    users, items = draw.normal(size=(50, 4)), draw.normal(size=(20, 4))
    to_users, to_items, sent = simulated_layer(matrix, users, items, partitions)
    np.testing.assert_allclose(to_users, matrix @ items)
    np.testing.assert_allclose(to_items, matrix.T @ users)
    assert sent == pytest.approx(2 * (partitions - 1) / partitions * items.nbytes)
