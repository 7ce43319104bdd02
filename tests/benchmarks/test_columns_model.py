"""The formulas: what is sent, what is held, and that groups of users compute the same layer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random as random_matrix

from benchmarks.columns_model import Machine, Shape, cost, sent_in_a_step, simulated_layer

SHAPE = Shape(users=20e6, items=2e6, interactions=1e9, width=64, layers=2)
MACHINE = Machine(seconds_per_row=2e-11, bytes_per_second=1e11)


def test_a_step_of_bpr_sends_two_scores_per_triple():
    assert sent_in_a_step("lightgcn", 2048, 64, 1) == 0
    assert sent_in_a_step("lightgcn", 2048, 64, 2) == 4 * (2 * 2048 + 1)
    assert sent_in_a_step("lightgcn", 2048, 64, 4) == 1.5 * 4 * (2 * 2048 + 1)


def test_a_step_of_the_softmax_sends_the_own_columns_of_two_rows():
    assert sent_in_a_step("softmax", 2048, 64, 4) == 3 * 4 * (2 * 2048 * 16 + 1)
    assert sent_in_a_step("softmax", 2048, 65, 4) == 3 * 4 * (2 * 2048 * 17 + 1)  # as the widest rank


def test_columns_divide_tables_and_partitions_the_graph():
    alone, columns, both = (cost(SHAPE, *given, MACHINE) for given in ((1, 1), (4, 1), (4, 2)))
    assert alone.sent == 0
    assert columns.graph == alone.graph
    assert columns.memory - columns.graph <= 0.35 * (alone.memory - alone.graph)
    assert both.graph == pytest.approx(alone.graph / 2, rel=0.02)  # all items are in each
    assert both.sent > columns.sent
    assert alone.computing / 4 < columns.computing < alone.computing / 2  # finding the rows is not divided
    assert both.computing < columns.computing


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_groups_of_users_compute_the_same_layer(partitions):
    draw = np.random.default_rng(1)
    matrix = random_matrix(50, 20, density=0.2, format="csr", random_state=1)
    users, items = draw.normal(size=(50, 4)), draw.normal(size=(20, 4))
    to_users, to_items, sent = simulated_layer(matrix, users, items, partitions)
    np.testing.assert_allclose(to_users, matrix @ items)
    np.testing.assert_allclose(to_items, matrix.T @ users)
    assert sent == pytest.approx(2 * (partitions - 1) / partitions * items.nbytes)
