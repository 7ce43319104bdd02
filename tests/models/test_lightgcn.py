"""The testable properties of LightGCN, one hand-worked step, and its options."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from caged.graph import Batch, BipartiteGraph, Tables, degree_weights, propagate, uniform_layers
from caged.models.contract import Stage
from caged.models.encoder import gather, scores
from caged.models.lightgcn import LightGCN, LightGCNConfig, layer_weights
from caged.models.losses import bpr, bpr_with_l2, l2_rows
from caged.seeding import Generators
from tests.graph.graphs import dense, graph_of, random_graph
from tests.models.logs import skewed


def prepared(graph, seed=1, **options):
    method = LightGCN(LightGCNConfig(**options))
    method.prepare(graph, Generators(seed))
    return method


def some_batch(graph, size=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    users = torch.randint(graph.user_count, (size,), generator=generator, dtype=torch.int32)
    items = torch.randint(graph.item_count, (2, size), generator=generator, dtype=torch.int32)
    return Batch(users, items[0], items[1], torch.full((size,), 1 / size))


def test_no_layers_is_matrix_factorisation():
    method = prepared(random_graph(), layers=0, embedding_size=8)
    vectors = method.scorer().vectors
    assert torch.equal(vectors.users, method.encoder.users)
    assert torch.equal(vectors.items, method.encoder.items)


def test_one_edge_meets_in_the_middle():
    method = prepared(graph_of([(0, 0)], 1, 1), layers=1, embedding_size=4)
    vectors = method.scorer().vectors
    torch.testing.assert_close(vectors.users, (method.encoder.users + method.encoder.items) / 2)
    torch.testing.assert_close(vectors.users, vectors.items)


def test_a_node_without_interactions_keeps_its_own_row():
    graph = random_graph()  # its last user and item have no edge
    method = prepared(graph, layers=3, embedding_size=8)
    vectors = method.scorer().vectors
    torch.testing.assert_close(vectors.users[-1], method.encoder.users[-1] / 4)
    torch.testing.assert_close(vectors.items[-1], method.encoder.items[-1] / 4)


def test_permuting_items_permutes_the_scores_and_nothing_else():
    log = skewed()
    order = np.random.default_rng(3).permutation(log.item_count)
    graph = BipartiteGraph.from_interactions(log)
    key = np.lexsort((order[log.items], log.users))
    relabelled = BipartiteGraph.from_edges(log.users[key], order[log.items][key], log.user_count, log.item_count)
    method, other = prepared(graph, embedding_size=8), prepared(relabelled, embedding_size=8)
    with torch.no_grad():
        other.encoder.items[torch.from_numpy(order)] = method.encoder.items
    everyone = torch.arange(log.user_count)
    torch.testing.assert_close(other.scorer()(everyone)[:, order], method.scorer()(everyone))


def test_gradient_by_horner_equals_autograd_through_a_dense_product():
    graph = random_graph(edges=60)
    method = prepared(graph, embedding_size=6, l2=0.01)
    batch = some_batch(graph)
    method.loss(batch).total.backward()

    matrix = dense(graph, degree_weights(graph)).float()
    stacked = torch.cat([method.encoder.users, method.encoder.items]).detach().requires_grad_()
    layer, total = stacked, stacked
    for _ in range(3):
        layer = matrix @ layer
        total = total + layer
    users, items = (total / 4).split([graph.user_count, graph.item_count])
    u, i, j = (users[batch.users.long()], items[batch.positives.long()], items[batch.negatives.long()])
    layer0 = stacked.split([graph.user_count, graph.item_count])
    rows = (layer0[0][batch.users.long()], layer0[1][batch.positives.long()], layer0[1][batch.negatives.long()])
    ranking = -torch.log(torch.sigmoid((u * i).sum(1) - (u * j).sum(1))).mean()
    penalty = sum(row.square().sum() for row in rows) / (2 * len(batch.users))
    (ranking + 0.01 * penalty).backward()

    ours = torch.cat([method.encoder.users.grad, method.encoder.items.grad])
    torch.testing.assert_close(ours, stacked.grad, rtol=1e-5, atol=1e-7)


def test_equal_scores_cost_ln_2():
    method = prepared(random_graph(), embedding_size=4)
    with torch.no_grad():
        method.encoder.items.fill_(0.0)
        method.encoder.users.fill_(0.0)
    assert method.loss(some_batch(method.encoder.graph)).parts["bpr"].item() == pytest.approx(math.log(2))


def test_loss_of_one_triple_by_hand():
    """s_ui = 1 * 2 = 2, s_uj = 1 * -1 = -1: softplus(-3) = ln(1 + e^-3); L2 = (1 + 4 + 1) / 2 = 3."""
    u, i, j = torch.tensor([[1.0]]), torch.tensor([[2.0]]), torch.tensor([[-1.0]])
    one = torch.ones(1)
    assert bpr((u * i).sum(1), (u * j).sum(1), one).item() == pytest.approx(math.log(1 + math.exp(-3)))
    assert l2_rows(one, u, i, j).item() == pytest.approx(3.0)


def test_padding_does_not_touch_the_loss():
    graph = random_graph()
    method = prepared(graph, embedding_size=4)
    small = some_batch(graph, size=5)
    padded = Batch(
        *(torch.nn.functional.pad(part, (0, 3)) for part in small[:3]),
        torch.nn.functional.pad(small.weight, (0, 3)),
    )
    assert method.loss(small).total.item() == pytest.approx(method.loss(padded).total.item(), rel=1e-6)


def test_gather_and_scores():
    graph = random_graph()
    method = prepared(graph, embedding_size=4)
    batch = some_batch(graph)
    vectors = method.encoder()
    positive, negative = scores(gather(vectors, batch))
    table = vectors.users @ vectors.items.T
    torch.testing.assert_close(positive, table[batch.users.long(), batch.positives.long()])
    torch.testing.assert_close(negative, table[batch.users.long(), batch.negatives.long()])


def test_layer_scale_one_is_the_mean_bit_for_bit():
    assert layer_weights(3, 1.0) == uniform_layers(3)
    graph = random_graph()
    method = prepared(graph, embedding_size=8)
    expected = propagate(degree_weights(graph), Tables(method.encoder.users, method.encoder.items), (0.25,) * 4)
    assert torch.equal(method.scorer().vectors.users, expected.users)


def test_initial_tables_have_the_published_scale():
    method = prepared(graph_of([(0, 0)], 400, 300), embedding_size=64)
    assert method.encoder.users.std().item() == pytest.approx(0.1, rel=0.02)
    assert abs(method.encoder.items.mean().item()) < 2e-3


def test_xavier_tables_have_a_scale_of_their_own_each():
    method = prepared(graph_of([(0, 0)], 400, 100), embedding_size=64, table_init="xavier")
    for table in method.encoder.parameters:
        assert table.std().item() == pytest.approx(math.sqrt(2 / (len(table) + 64)), rel=0.03)


@pytest.mark.parametrize(("option", "value"), [("layers", 1), ("layer_scale", 2.0), ("l2", 0.5), ("embedding_size", 3)])
def test_every_option_changes_the_loss(option, value):
    graph = random_graph(edges=60)
    defaults = {"embedding_size": 8, "layers": 3, "l2": 1e-4, "layer_scale": 1.0}
    batch = some_batch(graph)
    before = prepared(graph, **defaults).loss(batch).total.item()
    assert prepared(graph, **{**defaults, option: value}).loss(batch).total.item() != before


def test_parameters_are_the_two_tables():
    method = prepared(random_graph(), embedding_size=4)
    (group,) = method.parameters(Stage("train"))
    assert [tuple(p.shape) for p in group["params"]] == [(13, 4), (9, 4)]


@pytest.mark.gpu
@pytest.mark.parametrize("width", [1, 7, 64, 256])
def test_fused_loss_equals_the_plain_one(width):
    graph = random_graph(edges=60)
    batch = some_batch(graph, size=37)
    weight = torch.nn.functional.pad(torch.full((30,), 1 / 30), (0, 7))  # seven padded triples
    batch = batch._replace(weight=weight)
    draw = torch.Generator().manual_seed(5)
    rows = (graph.user_count, graph.item_count) * 2
    plain = [torch.randn(count, width, generator=draw).requires_grad_() for count in rows]
    fused = [table.detach().cuda().requires_grad_() for table in plain]
    expected = bpr_with_l2(Tables(*plain[:2]), Tables(*plain[2:]), batch, 0.3)
    actual = bpr_with_l2(Tables(*fused[:2]), Tables(*fused[2:]), Batch(*(part.cuda() for part in batch)), 0.3)
    (expected.total * 1.7).backward()
    (actual.total * 1.7).backward()
    assert actual.total.item() == pytest.approx(expected.total.item(), rel=1e-5)
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad.cpu(), other.grad, rtol=1e-4, atol=1e-6)
