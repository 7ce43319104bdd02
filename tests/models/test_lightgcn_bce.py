"""LightGCN with binary cross-entropy: the loss, and nothing else, differs from LightGCN."""

from __future__ import annotations

import math

import pytest
import torch

from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.models.lightgcn_bce import LightGCNBCE, LightGCNBCEConfig
from caged.models.losses import bce
from tests.graph.graphs import random_graph
from tests.models.short_runs import padded, prepared, some_batch


def test_loss_of_one_triple_by_hand():
    """s_ui = 2, s_uj = -1: ln(1 + e^-2) + ln(1 + e^-1)."""
    found = bce(torch.tensor([2.0]), torch.tensor([-1.0]), torch.ones(1)).item()
    assert found == pytest.approx(math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-1)))


def test_the_loss_equals_the_logarithms_of_its_definition():
    graph = random_graph()
    method = prepared(LightGCNBCE(LightGCNBCEConfig(embedding_size=4, l2=0.3)), graph)
    batch = some_batch(graph)
    losses = method.loss(batch)
    table = torch.sigmoid(method.scorer()(torch.arange(graph.user_count)))
    positive = table[batch.users.long(), batch.positives.long()]
    negative = table[batch.users.long(), batch.negatives.long()]
    torch.testing.assert_close(losses.parts["bce"], -(positive.log() + (1 - negative).log()).mean())
    torch.testing.assert_close(losses.total, losses.parts["bce"] + 0.3 * losses.parts["l2"])


def test_everything_but_the_ranking_loss_is_lightgcn():
    graph = random_graph()
    method = prepared(LightGCNBCE(LightGCNBCEConfig(embedding_size=4)), graph)
    other = prepared(LightGCN(LightGCNConfig(embedding_size=4)), graph)
    everyone = torch.arange(graph.user_count)
    assert torch.equal(method.scorer()(everyone), other.scorer()(everyone))
    batch = some_batch(graph)
    assert torch.equal(method.loss(batch).parts["l2"], other.loss(batch).parts["l2"])
    assert method.loss(batch).total.item() != other.loss(batch).total.item()


def test_padding_does_not_touch_the_loss():
    method = prepared(LightGCNBCE(LightGCNBCEConfig(embedding_size=4)), random_graph())
    batch = some_batch(method.encoder.graph)
    assert method.loss(padded(batch)).total.item() == pytest.approx(method.loss(batch).total.item(), rel=1e-6)
