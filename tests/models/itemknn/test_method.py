"""ItemKNN against its definition, written down densely with loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from caged.errors import DeviceError
from caged.graph import BipartiteGraph
from caged.models.item_item import training_matrix
from caged.models.itemknn import ItemKNN, ItemKNNConfig
from caged.models.itemknn.method import weighted_matrix
from tests.graph.graphs import CORNERS, graph_of, random_graph
from tests.models.logs import checkerboard
from tests.models.short_runs import prepared

WEIGHTINGS = ["none", "tfidf", "bm25"]


def fitted(graph, **options):
    method = prepared(ItemKNN(ItemKNNConfig(**options)), graph)
    method.fit_closed_form()
    return method


def literal_weight(weighting, user_degree, item_degree, item_count, mean_degree, k1=1.2, b=0.75):
    idf = math.log((item_count + 1) / (user_degree + 1))
    length = 1 - b + b * item_degree / mean_degree
    return {"none": 1.0, "tfidf": idf, "bm25": idf * (k1 + 1) / (1 + k1 * length)}[weighting]


def literal(graph, neighbours, shrinkage, weighting):
    """Scores (M, N), one number after the other."""
    owned = [set() for _ in range(graph.user_count)]
    for user, item in zip(graph.users.tolist(), graph.items.tolist(), strict=True):
        owned[user].add(item)
    count, mean_degree = graph.item_count, graph.edge_count / graph.item_count
    x = np.zeros((graph.user_count, count))
    for user, items in enumerate(owned):
        for item in items:
            degree = sum(item in others for others in owned)
            x[user, item] = literal_weight(weighting, len(items), degree, count, mean_degree)
    scores = np.zeros((graph.user_count, count))
    for i in range(count):
        similar = {}
        for j in range(count):
            scale = np.linalg.norm(x[:, i]) * np.linalg.norm(x[:, j]) + shrinkage
            if j != i and scale > 0:
                similar[j] = x[:, i] @ x[:, j] / scale
        kept = sorted(similar, key=lambda j: (-round(similar[j], 12), j))[:neighbours]
        for user, items in enumerate(owned):
            scores[user, i] = sum(similar[j] for j in kept if j in items)
    return scores


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize(("neighbours", "shrinkage"), [(100, 0.0), (3, 2.5), (1, 10.0)])
def test_scores_equal_the_definition(name, neighbours, shrinkage, weighting):
    graph = CORNERS[name]()
    method = fitted(graph, neighbours=neighbours, shrinkage=shrinkage, weighting=weighting)
    scores = method.scorer()(torch.arange(graph.user_count)).numpy()
    np.testing.assert_allclose(scores, literal(graph, neighbours, shrinkage, weighting), rtol=1e-5, atol=1e-6)


def test_cosine_by_hand():
    """Items 0 and 1 share two of their users (3 and 2 of them): 2 / sqrt(6); with shrinkage 1, 2 / (sqrt(6) + 1)."""
    graph = graph_of([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 2)], 3, 3)
    assert fitted(graph, shrinkage=0.0).similarities[0, 0].item() == pytest.approx(2 / math.sqrt(6))
    assert fitted(graph, shrinkage=1.0).similarities[0, 0].item() == pytest.approx(2 / (math.sqrt(6) + 1))


def test_weights_by_hand():
    """N = 3; user 0 has two items, user 1 has one; degrees 2 and 1, mean 1."""
    matrix = training_matrix(graph_of([(0, 0), (0, 1), (1, 0)], 2, 3))
    tfidf = weighted_matrix(matrix, "tfidf", 1.2, 0.75)
    assert tfidf.toarray().ravel().tolist() == pytest.approx([math.log(4 / 3), math.log(4 / 3), 0, math.log(2), 0, 0])
    bm25 = weighted_matrix(matrix, "bm25", 1.2, 0.75)
    assert bm25[1, 0] == pytest.approx(math.log(2) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2)))
    assert matrix.data.tolist() == [1.0] * 3


def test_the_nearest_come_first_and_ties_go_to_the_smaller_row():
    graph = graph_of([(u, i) for u in range(3) for i in range(5)], 3, 5)  # all similarities are equal
    method = fitted(graph, neighbours=2)
    assert method.neighbours.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]
    values = fitted(random_graph(), neighbours=4).similarities
    assert (values[:, :-1] >= values[:, 1:]).all()


def test_no_item_is_its_own_neighbour():
    method = fitted(random_graph(), neighbours=100)
    own = method.neighbours == torch.arange(len(method.neighbours)).unsqueeze(1)
    assert method.similarities[own].abs().sum().item() == 0.0


def test_a_checkerboard_is_solved():
    held_out = {user: (user + 4) % 12 for user in range(0, 12, 3)}
    log = checkerboard(12, held_out)
    scores = fitted(BipartiteGraph.from_interactions(log)).scorer()(torch.arange(12)).numpy()
    scores[log.users, log.items] = -np.inf
    assert {user: int(scores[user].argmax()) for user in held_out} == held_out


def test_shrinkage_lowers_similarities_from_few_users():
    graph = graph_of([(0, 0), (0, 1), *((u, i) for u in range(1, 9) for i in (2, 3))], 9, 4)
    method = fitted(graph, shrinkage=5.0)
    assert method.similarities[0, 0] < method.similarities[2, 0]
    plain = fitted(graph, shrinkage=0.0)
    assert plain.similarities[0, 0].item() == pytest.approx(plain.similarities[2, 0].item())


@pytest.mark.parametrize("option", [{"bm25_k1": 3.0}, {"bm25_b": 0.1}])
def test_bm25_has_two_parameters(option):
    graph = random_graph()
    base = {"weighting": "bm25", "shrinkage": 1.0}
    assert not torch.equal(fitted(graph, **base).similarities, fitted(graph, **base, **option).similarities)


def test_beyond_the_memory_it_refuses_before_allocating():
    with pytest.raises(DeviceError) as caught:
        prepared(ItemKNN(ItemKNNConfig(memory_gib=0.01)), random_graph())
    message = str(caught.value)
    assert "itemknn with 9 neighbours of 9 items needs" in message
    assert "method.memory_gib allows 0.01" in message
    assert "fewer method.neighbours" in message
