"""What the item-item methods share: the training matrix R, its rows on the device, and scores that are R[u] times
something. Their memory grows with the square of the catalogue or with its neighbour lists, so it has a stated bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from caged.errors import DeviceError
from caged.graph import BipartiteGraph

GIB = 2**30


def check_memory(needed: int, limit_gib: float, what: str, instead: str) -> None:
    """Refuse a model of `needed` bytes beyond the limit, before anything is allocated."""
    if needed > limit_gib * GIB:
        raise DeviceError(
            f"{what} needs {needed / GIB:.2f} GiB, and method.memory_gib allows {limit_gib:g}; "
            f"raise method.memory_gib if the machine has the memory, or {instead}"
        )


def training_matrix(graph: BipartiteGraph) -> Any:
    """R as a scipy CSR matrix (M, N) of float64 ones."""
    import numpy as np
    from scipy.sparse import csr_matrix

    items, offsets = graph.items.cpu().numpy(), graph.user_offsets.cpu().numpy()
    return csr_matrix((np.ones(len(items)), items, offsets), shape=(graph.user_count, graph.item_count))


def user_rows(graph: BipartiteGraph, users: Tensor) -> Tensor:
    """(b,) users -> (b, N) float32 rows of R."""
    start = graph.user_offsets.long().index_select(0, users)
    count = graph.user_degrees.long().index_select(0, users)
    row = torch.repeat_interleave(count)
    # Entry j of the block lies at j + (start of its user - entries of the users before).
    shift = start - (count.cumsum(0) - count)
    edge = shift.index_select(0, row) + torch.arange(len(row), device=row.device)
    rows = torch.zeros(len(users), graph.item_count, device=graph.device)
    rows.view(-1).index_fill_(0, row * graph.item_count + graph.items.index_select(0, edge), 1.0)
    return rows


@dataclass(frozen=True, eq=False)
class HistoryScorer:
    """Scores that are a linear function of what the user has interacted with; no product of fixed vectors."""

    graph: BipartiteGraph
    scores_of: Callable[[Tensor], Tensor]  # (b, N) rows of R -> (b, N) scores
    vectors: None = None

    def __call__(self, users: Tensor) -> Tensor:
        return self.scores_of(user_rows(self.graph, users))
