"""The testable properties of MACR, and the scan of its constant."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from caged.config import build
from caged.data import carve_validation
from caged.errors import ConfigError
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph, Tables
from caged.models import macr
from caged.models.contract import DotScorer, EpochContext
from caged.models.encoder import gather, scores
from caged.models.lightgcn_bce import LightGCNBCE, LightGCNBCEConfig
from caged.models.losses import HeadScores, bce
from caged.models.macr import MACR, MACRConfig, counterfactual, losses_of
from tests.graph.graphs import dense, dense_propagate, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import padded, prepared, some_batch, trained


def vectors_of(seed=0, users=7, items=11, width=4):
    draw = torch.Generator().manual_seed(seed)
    return Tables(torch.randn(users, width, generator=draw), torch.randn(items, width, generator=draw))


def heads(seed=1, width=4):
    return torch.randn(2, width, generator=torch.Generator().manual_seed(seed)).unbind()


def score_table(vectors, item_head, user_head, c):
    return DotScorer(counterfactual(vectors, item_head, user_head, c))(torch.arange(len(vectors.users)))


def ranking(table):
    return table.argsort(dim=1, descending=True).tolist()


@pytest.mark.parametrize("c", [0.0, 1.5, 40.0])
def test_scores_are_the_formula(c):
    vectors, (a, b) = vectors_of(), heads()
    gate = torch.sigmoid(vectors.users @ b).unsqueeze(1) * torch.sigmoid(vectors.items @ a)
    expected = (vectors.users @ vectors.items.T - c) * gate
    torch.testing.assert_close(score_table(vectors, a, b, c), expected, rtol=1e-4, atol=1e-5)
    assert counterfactual(vectors, a, b, c).users.shape == (7, 5)


@pytest.mark.parametrize("c", [0.0, 1.5, 40.0])
def test_the_ranking_does_not_depend_on_the_user_head(c):
    vectors, (a, b) = vectors_of(), heads()
    assert ranking(score_table(vectors, a, b, c)) == ranking(score_table(vectors, a, -2 * b, c))


def test_c_zero_ranks_by_match_times_item_gate():
    vectors, (a, b) = vectors_of(), heads()
    expected = vectors.users @ vectors.items.T * torch.sigmoid(vectors.items @ a)
    assert ranking(score_table(vectors, a, b, 0.0)) == ranking(expected)


def test_a_huge_c_ranks_by_ascending_item_gate():
    vectors, (a, b) = vectors_of(), heads()
    least_popular_first = (vectors.items @ a).argsort().tolist()
    assert ranking(score_table(vectors, a, b, 1e5)) == [least_popular_first] * 7


@pytest.mark.parametrize("c", [0.0, 3.0, 40.0])
def test_heads_at_zero_rank_as_lightgcn_bce_at_every_c(c):
    graph = random_graph()
    method = prepared(MACR(MACRConfig(embedding_size=4, c=c)), graph)
    other = prepared(LightGCNBCE(LightGCNBCEConfig(embedding_size=4)), graph)
    with torch.no_grad():
        method.item_head.zero_()
        method.user_head.zero_()
    everyone = torch.arange(graph.user_count)
    plain = other.scorer()(everyone)
    torch.testing.assert_close(method.scorer()(everyone), (plain - c) / 4, rtol=1e-5, atol=1e-5)
    if c < 10:  # beyond, float32 cannot tell close scores apart
        assert ranking(method.scorer()(everyone)) == ranking(plain)


def test_a_more_popular_item_loses_below_c_and_gains_above():
    """One column is the match, the other feeds the head: y_k = 1, and y_i grows by one."""
    vectors = Tables(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    a, b = torch.tensor([0.0, 1.0]), torch.zeros(2)
    below, above = score_table(vectors, a, b, 2.0)[0], score_table(vectors, a, b, 0.5)[0]
    assert below[1] < below[0]
    assert above[1] > above[0]


def test_frozen_heads_at_zero_have_the_gradient_of_a_quarter_of_the_scores():
    graph = random_graph()
    batch = some_batch(graph)
    method = prepared(MACR(MACRConfig(embedding_size=4, alpha=0.0, beta=0.0, l2=0.1)), graph)
    with torch.no_grad():
        method.item_head.zero_()
        method.user_head.zero_()
    method.loss(batch).total.backward()

    other = prepared(LightGCNBCE(LightGCNBCEConfig(embedding_size=4, l2=0.1)), graph)
    positive, negative = scores(gather(other.encoder(), batch))
    loss = bce(positive / 4, negative / 4, batch.weight) + 0.1 * other.loss(batch).parts["l2"]
    loss.backward()
    for mine, theirs in zip(method.encoder.parameters, other.encoder.parameters, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_matched_is_the_mean_of_the_diagonal_of_all_pairs():
    drawn = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    positive, negative, of_user, of_positive, of_negative = drawn
    found = HeadScores(drawn[:2], of_user, drawn[3:], torch.tensor(0.0))
    gates = [torch.sigmoid(part) * torch.sigmoid(of_user) for part in (of_positive, of_negative)]
    weight = torch.full((6,), 1 / 6)
    matrix = F.softplus(-torch.outer(gates[0], positive)) + F.softplus(torch.outer(gates[1], negative))
    branches = [bce(of_positive, of_negative, weight), bce(of_user, of_user, weight)]
    matched, all_pairs = (losses_of(found, fusion, weight) for fusion in ("matched", "allpairs"))
    torch.testing.assert_close(matched, torch.stack((matrix.diagonal().mean(), *branches)))
    torch.testing.assert_close(all_pairs, torch.stack((matrix.mean(), *branches)))


def test_all_pairs_is_the_broadcast_of_the_official_code():
    """(B,) scores times (B, 1) gates: entry [r, c] is y_k[c] gate[r]."""
    positive, gate = torch.tensor([1.0, 2.0]), torch.tensor([[3.0], [4.0]])
    assert (positive * gate).tolist() == torch.outer(gate.squeeze(1), positive).tolist() == [[3, 6], [4, 8]]


@pytest.mark.parametrize("rows", [1, 4, 6, 100])
def test_blocks_of_all_pairs_are_the_whole_matrix(monkeypatch, rows):
    monkeypatch.setattr(macr, "PAIR_BYTES", rows * 6 * 4)
    pairs, gates = torch.randn(2, 2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).unbind()
    weight = torch.tensor([0.3, 0.3, 0.2, 0.1, 0.1, 0.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(macr.all_pairs, (pairs.requires_grad_(), gates.requires_grad_(), weight))


def test_the_history_has_the_health_of_the_item_head(caplog):
    """Beside the loss of a head of zeros; whoever ends above it is told."""
    train, _ = carve_validation(skewed(), seed=1)
    method = MACR(MACRConfig(embedding_size=4, c=0.0, alpha=0.0))
    ctx = EpochContext("train", 1, 1, None, losses={"item": 1.5})
    prepared(method, BipartiteGraph.from_interactions(train))
    method.end_epoch(ctx)
    assert ctx.log["item_head"] == {"loss": 1.5, "zero_head": pytest.approx(2 * math.log(2))}
    method.finish(EpochContext("finish", 0, 0, None))
    assert "item head ended with a loss of 1.5000, no better than a head of zeros (1.3863)" in caplog.text
    caplog.clear()
    method.end_epoch(EpochContext("train", 2, 1, None, losses={"item": 1.2}))
    method.finish(EpochContext("finish", 0, 0, None))
    assert not caplog.text


def test_loss_of_one_triple_by_hand():
    """e_u = 1, e_i = 2, e_j = -1, a = b = ln 3: y_u = ln 3 (gate 3/4), y_i = 2 ln 3 (9/10), y_j = -ln 3 (1/4)."""
    ln3 = math.log(3)
    method = prepared(MACR(MACRConfig(embedding_size=1, layers=0, alpha=0.5, beta=0.25, l2=2.0)), random_graph())
    batch = some_batch(method.encoder.graph, size=1)
    with torch.no_grad():
        method.item_head.fill_(ln3)
        method.user_head.fill_(ln3)
        method.encoder.users[batch.users.long()] = 1.0
        method.encoder.items[batch.positives.long()] = 2.0
        method.encoder.items[batch.negatives.long()] = -1.0
    losses = method.loss(batch)
    match = math.log(1 + math.exp(-2 * 0.9 * 0.75)) + math.log(1 + math.exp(-1 * 0.25 * 0.75))
    item, user = -math.log(0.9) - math.log(0.75), -math.log(0.75) - math.log(0.25)
    assert losses.parts["bce"].item() == pytest.approx(match)
    assert losses.parts["item"].item() == pytest.approx(item)
    assert losses.parts["user"].item() == pytest.approx(user)
    assert losses.total.item() == pytest.approx(match + 0.5 * item + 0.25 * user + 2.0 * 3.0)


def expected_loss(method, batch, tables, item_head, user_head):
    """(1) to (6) in float64 on the dense matrix."""
    config, encoder = method.config, method.encoder
    rows = dense_propagate(dense(encoder.graph, encoder.weights), torch.cat(tables), encoder.layer_weights)
    users, items = rows.split([len(table) for table in tables])
    u, i, j = (part.long() for part in batch[:3])

    def cost(score, label):
        return F.binary_cross_entropy_with_logits(score, torch.full_like(score, label))

    def fused(item):
        gate = torch.sigmoid(items[item] @ item_head) * torch.sigmoid(users[u] @ user_head)
        return (users[u] * items[item]).sum(1) * (gate if config.fusion == "matched" else gate.unsqueeze(1))

    match = cost(fused(i), 1.0) + cost(fused(j), 0.0)
    of_item = cost(items[i] @ item_head, 1.0) + cost(items[j] @ item_head, 0.0)
    of_user = cost(users[u] @ user_head, 1.0) + cost(users[u] @ user_head, 0.0)
    squares = sum(table[row].square().sum() for table, row in zip((*tables, tables[1]), (u, i, j), strict=True))
    return match + config.alpha * of_item + config.beta * of_user + config.l2 * squares / (2 * len(u))


@pytest.mark.parametrize("fusion", ["matched", "allpairs"])
def test_loss_and_gradients_are_those_of_the_definition(fusion):
    """Every branch trains its head and, through the propagated rows, both tables."""
    graph = random_graph()
    batch = some_batch(graph)
    options = {"alpha": 0.7, "beta": 0.4, "l2": 0.1}
    method = prepared(MACR(MACRConfig(embedding_size=4, layers=2, fusion=fusion, **options)), graph)
    trained_here = [*method.encoder.parameters, method.item_head, method.user_head]
    for table in method.encoder.parameters:
        table.data.mul_(10.0)  # rows of length 2, so that y_u is not near the minimum of (5)
    users, items, item_head, user_head = wanted = [part.detach().double().requires_grad_() for part in trained_here]
    losses = method.loss(batch)
    losses.total.backward()
    expected = expected_loss(method, batch, (users, items), item_head, user_head)
    expected.backward()
    torch.testing.assert_close(losses.total.double(), expected, rtol=1e-5, atol=1e-6)
    for mine, theirs in zip(trained_here, wanted, strict=True):
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fusion", ["matched", "allpairs"])
def test_padding_does_not_touch_the_loss(fusion):
    method = prepared(MACR(MACRConfig(embedding_size=4, fusion=fusion)), random_graph())
    batch = some_batch(method.encoder.graph)
    assert method.loss(padded(batch)).total.item() == pytest.approx(method.loss(batch).total.item(), rel=1e-6)


def test_heads_start_within_the_xavier_bound_and_apart():
    method = prepared(MACR(MACRConfig(embedding_size=500)), random_graph())
    bound = math.sqrt(6 / 501)
    for head in (method.item_head, method.user_head):
        assert 0.98 * bound < head.abs().max().item() <= bound
    assert not torch.equal(method.item_head, method.user_head)


# ---------------------------------------------------------------- the constant


def split_log():
    return carve_validation(skewed(user_count=60), seed=1)


def test_c_is_scanned_on_validation_after_training():
    train, valid = split_log()
    candidates = (0.0, 0.01, 0.1, 1.0, 10.0)
    method, _ = trained(MACR(MACRConfig(embedding_size=8, c_candidates=candidates)), train, valid=valid)
    validate = make_validator(train, valid, k=5, metrics=("recall@5",))
    values = [validate(method._scorer(c))["recall@5"] for c in candidates]
    assert len(set(values)) > 1
    assert method.scanned == [list(pair) for pair in zip(candidates, values, strict=True)]
    assert method.c == candidates[int(np.argmax(values))]  # the first of the best
    assert validate(method.scorer())["recall@5"] == max(values)


def test_the_epoch_is_chosen_at_c_zero():
    """Scanning changes nothing but c: the trained tables are those of c = 0."""
    train, valid = split_log()
    scanned, _ = trained(MACR(MACRConfig(embedding_size=8)), train, valid=valid, epochs=5)
    at_zero, _ = trained(MACR(MACRConfig(embedding_size=8, c=0.0)), train, valid=valid, epochs=5)
    for name, value in scanned.state().tensors.items():
        assert torch.equal(value, at_zero.state().tensors[name])


def test_a_given_c_is_kept_and_no_validation_means_zero():
    train, valid = split_log()
    assert trained(MACR(MACRConfig(embedding_size=8, c=7.0)), train, valid=valid)[0].c == 7.0
    assert trained(MACR(MACRConfig(embedding_size=8)), train)[0].c == 0.0


def test_c_travels_with_the_state():
    method = prepared(MACR(MACRConfig(embedding_size=4)), random_graph())
    asked = []

    def validate(scorer):
        asked.append(scorer)
        return {"recall@9": float(len(asked) == 3), "ndcg@9": 1.0}

    method.finish(EpochContext("finish", 0, 0, validate, monitor="recall@9"))
    assert (len(asked), method.c) == (9, 1.0)
    other = prepared(MACR(MACRConfig(embedding_size=4)), random_graph())
    other.load_state(method.state().clone())
    assert (other.c, other.scanned) == (1.0, method.scanned)


@pytest.mark.parametrize(("given", "meant"), [("scan", "scan"), ("2.5", 2.5), (40, 40.0)])
def test_c_is_a_number_or_scan(given, meant):
    assert build(MACRConfig, {"c": given}, "method").c == meant


def test_other_words_are_errors():
    with pytest.raises(ConfigError, match=r"method\.c is 'best'; allowed are numbers and scan"):
        build(MACRConfig, {"c": "best"}, "method")
    with pytest.raises(ConfigError, match="c_candidates is empty"):
        build(MACRConfig, {"c_candidates": []}, "method")


@pytest.mark.parametrize(("option", "value"), [("alpha", 1.0), ("beta", 1.0), ("fusion", "matched"), ("l2", 0.5)])
def test_every_option_changes_the_loss(option, value):
    graph = random_graph()
    batch = some_batch(graph)
    before, after = (
        prepared(MACR(MACRConfig(embedding_size=4, **options)), graph).loss(batch).total.item()
        for options in ({}, {option: value})
    )
    assert before != after
