"""The rows of a batch instead of whole tables: no loss shows the difference."""

from __future__ import annotations

import pytest
import torch

from caged.graph.kernels import cpu_rows
from caged.models.lightgcn import LightGCN, LightGCNConfig
from tests.graph.graphs import random_graph
from tests.models.short_runs import padded, prepared, some_batch


@pytest.mark.parametrize("loss", [{}, {"loss": "softmax", "gamma": 0.3, "known": "mask"}], ids=["bpr", "softmax"])
def test_rows_of_a_batch_give_loss_and_gradients_of_whole_tables(monkeypatch, loss):
    graph = random_graph(seed=2, user_count=40, item_count=30, edges=200)
    batch = padded(some_batch(graph))
    found = []
    for least in (1, 10**6):
        monkeypatch.setattr(cpu_rows, "LEAST_WIDTH", least)
        monkeypatch.setattr(cpu_rows, "MOST_EDGES", 2.0)
        method = prepared(LightGCN(LightGCNConfig(embedding_size=8, **loss)), graph)
        rows = method.encoder.batch_rows(batch)
        assert (len(rows.final.users) < graph.user_count) == (least == 1)
        value = method.loss(batch).total
        value.backward()
        found.append((value.detach(), *(table.grad for table in method.encoder.parameters)))
    for short, whole in zip(*found, strict=True):
        assert torch.equal(short, whole)
