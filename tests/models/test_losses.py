"""Scores of a batch with their L2 term: what losses of any form are made of, plain and in one pass on CUDA."""

from __future__ import annotations

import math

import pytest
import torch

from caged.graph import Batch, Tables
from caged.models.encoder import gather
from caged.models.losses import bce, bpr_with_l2, head_scores_with_l2, l2_of_batch, l2_rows, scores_with_l2
from tests.graph.graphs import random_graph
from tests.models.short_runs import padded, some_batch

WIDTH = 24


def tensors_for(graph, *, heads):
    """Propagated and layer-0 tables, and two heads or none."""
    draw = torch.Generator().manual_seed(5)
    tables = [torch.randn(rows, WIDTH, generator=draw) for rows in (graph.user_count, graph.item_count) * 2]
    return [part.requires_grad_() for part in tables + [torch.randn(WIDTH, generator=draw) for _ in range(2 * heads)]]


def found_by(tensors, batch):
    final, layer0, heads = Tables(*tensors[:2]), Tables(*tensors[2:4]), tensors[4:]
    if heads:
        return head_scores_with_l2(final, layer0, batch, *heads)
    return scores_with_l2(final, layer0, batch)


def test_scores_and_penalty_by_hand():
    graph = random_graph(edges=60)
    batch = some_batch(graph, size=7)
    tensors = tensors_for(graph, heads=True)
    users, items, user_rows, item_rows, user_head, item_head = tensors
    pairs, of_users, of_items, penalty = found_by(tensors, batch)
    for triple in range(7):
        u, i, j = (int(part[triple]) for part in batch[:3])
        torch.testing.assert_close(pairs[:, triple], torch.stack((users[u] @ items[i], users[u] @ items[j])))
        torch.testing.assert_close(of_users[triple], users[u] @ user_head)
        torch.testing.assert_close(of_items[:, triple], torch.stack((items[i] @ item_head, items[j] @ item_head)))
    rows = (user_rows[batch.users.long()], item_rows[batch.positives.long()], item_rows[batch.negatives.long()])
    torch.testing.assert_close(penalty, l2_rows(batch.weight, *rows))
    for mine, other in zip(found_by(tensors[:4], batch), (pairs, penalty), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("size", [3, 400], ids=["tables longer than the batch", "shorter"])
def test_l2_of_a_batch_reads_a_row_once_and_counts_it_as_often_as_it_is_named(size):
    graph = random_graph(edges=60)
    batch = padded(Batch(*(part.repeat(size // 3 + 1)[:size] for part in some_batch(graph, size=7))))
    mine, plain = (Tables(*tensors_for(graph, heads=False)[2:]) for _ in range(2))
    found, expected = l2_of_batch(mine, batch), l2_rows(batch.weight, *gather(plain, batch))
    torch.testing.assert_close(found, expected)
    (1.7 * found).backward()
    (1.7 * expected).backward()
    for own, other in zip(mine, plain, strict=True):
        torch.testing.assert_close(own.grad, other.grad, rtol=1e-5, atol=1e-6)


def test_several_cross_entropies_at_once_are_those_one_by_one():
    positive, negative = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))
    weight = torch.full((8,), 1 / 8)
    together = bce(positive, negative, weight)
    torch.testing.assert_close(
        together, torch.stack([bce(*pair, weight) for pair in zip(positive, negative, strict=True)])
    )


@pytest.mark.gpu
@pytest.mark.parametrize("heads", [False, True])
def test_one_pass_on_cuda_equals_the_plain_one(heads):
    graph = random_graph(edges=60)
    batch = padded(some_batch(graph, size=37))
    plain = tensors_for(graph, heads=heads)
    fused = [part.detach().cuda().requires_grad_() for part in plain]
    expected, actual = found_by(plain, batch), found_by(fused, Batch(*(part.cuda() for part in batch)))
    draw = torch.Generator().manual_seed(2)
    slopes = [torch.randn(part.shape, generator=draw) * (batch.weight > 0) for part in expected[:-1]]
    slopes.append(torch.tensor(1.7))
    torch.autograd.backward(expected, slopes)
    torch.autograd.backward(actual, [slope.cuda() for slope in slopes])
    for mine, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine.detach().cpu(), other.detach(), rtol=1e-4, atol=1e-5)
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad.cpu(), other.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_a_loss_of_millions_of_triples_is_their_mean():
    """Added up one by one in float32, these would be 10% off: each is a few times the last bit of their sum."""
    count = 5_000_000
    rows = torch.zeros(count, dtype=torch.int32, device="cuda")
    batch = Batch(rows, rows, rows, torch.full((count,), 1.0 / count, device="cuda"))
    tables = Tables(torch.ones(1, 4, device="cuda"), torch.ones(1, 4, device="cuda"))
    losses = bpr_with_l2(tables, tables, batch, l2=0.0)
    assert losses.parts["bpr"].item() == pytest.approx(math.log(2), rel=1e-5)
    assert losses.parts["l2"].item() == pytest.approx(6.0, rel=1e-5)
