"""EASE against its definition, written down densely."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.errors import DeviceError
from caged.graph import BipartiteGraph
from caged.models import ease
from caged.models.ease import EASE, EASEConfig, ease_weights, inverse_of, needed_bytes
from caged.models.item_item import training_matrix, user_rows
from caged.threads import threads
from tests.graph.graphs import CORNERS, random_graph
from tests.models.logs import checkerboard, skewed
from tests.models.short_runs import prepared


def matrix_of(graph):
    matrix = np.zeros((graph.user_count, graph.item_count))
    matrix[graph.users.numpy(), graph.items.numpy()] = 1.0
    return matrix


def fitted(graph, **options):
    method = prepared(EASE(EASEConfig(**options)), graph)
    method.fit_closed_form()
    return method


def literal(matrix, ridge):
    """B column by column: ridge regression of an item on all others."""
    count = matrix.shape[1]
    weights = np.zeros((count, count))
    for item in range(count):
        others = np.delete(np.arange(count), item)
        x, y = matrix[:, others], matrix[:, item]
        weights[others, item] = np.linalg.solve(x.T @ x + ridge * np.eye(count - 1), x.T @ y)
    return weights


@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize("ridge", [0.5, 20.0])
def test_scores_equal_one_regression_per_item(name, ridge):
    graph = CORNERS[name]()
    matrix = matrix_of(graph)
    everyone = torch.arange(graph.user_count)
    scores = fitted(graph, ridge=ridge).scorer()(everyone)
    np.testing.assert_allclose(scores.numpy(), matrix @ literal(matrix, ridge), rtol=1e-5, atol=1e-6)


def test_single_precision_agrees():
    graph = BipartiteGraph.from_interactions(skewed())
    double, single = (fitted(graph, ridge=10.0, precision=each).weights for each in ("float64", "float32"))
    torch.testing.assert_close(single, double, rtol=1e-3, atol=1e-4)


def test_no_item_recommends_itself():
    assert fitted(random_graph()).weights.diagonal().abs().max().item() == 0.0


def test_a_checkerboard_is_solved():
    held_out = {user: (user + 4) % 12 for user in range(0, 12, 3)}
    log = checkerboard(12, held_out)
    graph = BipartiteGraph.from_interactions(log)
    scores = fitted(graph, ridge=1.0).scorer()(torch.arange(12)).numpy()
    scores[log.users, log.items] = -np.inf
    assert {user: int(scores[user].argmax()) for user in held_out} == held_out


def test_a_larger_ridge_gives_smaller_weights():
    graph = random_graph()
    small, large = (fitted(graph, ridge=each).weights.norm().item() for each in (1.0, 100.0))
    assert large < small


def test_blocks_of_the_gram_matrix_give_the_same(monkeypatch):
    graph = random_graph()
    whole = fitted(graph).weights
    monkeypatch.setattr(ease, "GRAM_BLOCK_CELLS", 2 * graph.item_count)
    assert torch.equal(fitted(graph).weights, whole)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_inverse_is_one_on_any_number_of_threads(count, monkeypatch):
    monkeypatch.setattr(ease, "SOLVE_COLUMNS", 7)
    rows = torch.randn(30, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    matrix = rows @ rows.T + torch.eye(30)
    with threads(count):
        inverse = inverse_of(torch.linalg.cholesky(matrix))
        assert torch.get_num_threads() == count
    torch.testing.assert_close(inverse @ matrix, torch.eye(30, dtype=torch.float64))


@pytest.mark.parametrize("count", [2, 3])
def test_on_few_threads_the_inverse_gets_one(count, monkeypatch):
    """On two threads that share their cores, LAPACK's inverse took 27 s for what one thread does in 0.4 s."""
    seen = []
    plain = torch.cholesky_inverse

    def watched(factor):
        seen.append(torch.get_num_threads())
        return plain(factor)

    monkeypatch.setattr(torch, "cholesky_inverse", watched)
    with threads(count):
        fitted(random_graph())
    assert seen == [1]


def test_beyond_the_memory_it_refuses_before_allocating():
    graph = BipartiteGraph.from_edges(np.array([0]), np.array([0]), 1, 30_000)
    with pytest.raises(DeviceError) as caught:
        prepared(EASE(EASEConfig()), graph)
    message = str(caught.value)
    assert "ease on 30000 items in float64 needs 23.47 GiB, and method.memory_gib allows 16" in message
    assert "method.precision=float32" in message
    assert "\n" not in message
    assert needed_bytes(30_000, "float64") == 28 * 30_000**2
    assert needed_bytes(30_000, "float32") == 16 * 30_000**2


def test_the_limit_can_be_moved():
    graph = random_graph()
    with pytest.raises(DeviceError):
        prepared(EASE(EASEConfig(memory_gib=1e-9)), graph)
    assert torch.isfinite(fitted(graph, memory_gib=0.001).weights).all()


def test_a_matrix_that_is_not_positive_definite_is_an_error():
    with pytest.raises(DeviceError, match=r"not positive definite in float32; use method\.precision=float64"):
        ease_weights(torch.tensor([[1.0, 2.0], [2.0, 1.0]]), 0.5)


@pytest.mark.parametrize("name", CORNERS)
def test_rows_of_the_training_matrix(name):
    graph = CORNERS[name]()
    users = torch.tensor([graph.user_count - 1, 0, graph.user_count - 1])
    np.testing.assert_array_equal(user_rows(graph, users).numpy(), matrix_of(graph)[users.numpy()])
    np.testing.assert_array_equal(training_matrix(graph).toarray(), matrix_of(graph))
