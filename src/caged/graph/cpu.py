"""Propagation on CPU: `embedding_bag` over column blocks, rows dealt out by degree.

`embedding_bag` is the fastest stock sparse-dense product on CPU. Two things around it decide the speed:

- Columns go in blocks of 64 through all layers before the next block starts. A block of both tables then stays in the
  cache between its random reads (10,000 nodes: 2.5 MB), where 256 columns would not.
- Threads take contiguous runs of rows. Where that would leave one of them with clearly more edges, rows are dealt out
  by degree like cards, so that every run holds its share of heavy rows. The order is internal: tables come and go in
  row order, which costs a copy of each, so a side that is balanced already stays as it is.

Each row is summed in a fixed order by one thread, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from caged.graph.tables import Tables

if TYPE_CHECKING:
    from caged.graph.bipartite import BipartiteGraph

COLUMNS = 64  # per block
TOLERATED_IMBALANCE = 1.1  # edges of the busiest thread over the mean; measured: below it the copies cost more


def aggregate(offsets: Tensor, sources: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """out[r] = sum over e in [offsets[r], offsets[r+1]) of values[e] * table[sources[e]]; rows without edges are 0."""
    return F.embedding_bag(sources, table, offsets, mode="sum", per_sample_weights=values, include_last_offset=True)


class Side:
    """Users or items: the internal order of their rows, None where it is the row order."""

    def __init__(self, degrees: Tensor, threads: int) -> None:
        self.order: Tensor | None = None
        self.place: Tensor | None = None  # of each row in the order
        if _imbalance(degrees, threads) > TOLERATED_IMBALANCE:
            by_degree = torch.argsort(degrees, descending=True, stable=True)
            self.order = torch.cat([by_degree[hand::threads] for hand in range(threads)])
            self.place = torch.empty_like(self.order)
            self.place[self.order] = torch.arange(len(degrees))
            degrees = degrees[self.order]
        self.offsets = F.pad(degrees.cumsum(0), (1, 0)).to(degrees.dtype)

    def places(self, rows: Tensor) -> Tensor:
        return rows.long() if self.place is None else self.place[rows.long()]

    def enter(self, columns: Tensor) -> Tensor:
        """A column block in internal order."""
        return columns.contiguous() if self.order is None else columns.index_select(0, self.order)

    def leave(self, columns: Tensor) -> Tensor:
        return columns if self.place is None else columns.index_select(0, self.place)


class CpuLayout:
    """The pattern in its internal order, shared by all weights on one graph."""

    def __init__(self, graph: BipartiteGraph, threads: int) -> None:
        self.users = Side(graph.user_degrees, threads)
        self.items = Side(graph.item_degrees, threads)
        users, items = self.users.places(graph.users), self.items.places(graph.items)
        # Stable sorts of edges that are sorted already keep each row's edges in row order of the other side.
        self.edges_by_user = torch.argsort(users, stable=True)
        self.edges_by_item = torch.argsort(items, stable=True)
        self.sources_of_users = items[self.edges_by_user].to(graph.items.dtype)
        self.sources_of_items = users[self.edges_by_item].to(graph.users.dtype)


class CpuOperator:
    """W and its transpose for one set of edge weights."""

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor) -> None:
        self._layout = graph.cpu_layout
        self.assign(to_user, to_item)

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        by_user, by_item = self._layout.edges_by_user, self._layout.edges_by_item
        self._forward = (to_user.index_select(0, by_user), to_item.index_select(0, by_item))
        # (W^T)[u, i] is the weight of item <- user, so each direction takes the other one's vector.
        self._transposed = (to_item.index_select(0, by_user), to_user.index_select(0, by_item))

    def apply(self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool) -> Tables:
        """sum_l layer_weights[l] * W^l tables, by Horner's rule, one column block after the other."""
        values = self._transposed if transposed else self._forward
        out = Tables(torch.empty_like(tables.users), torch.empty_like(tables.items))
        layout = self._layout
        for columns in _column_blocks(tables.users.shape[1]):
            block = Tables(layout.users.enter(tables.users[:, columns]), layout.items.enter(tables.items[:, columns]))
            result = self._horner(block, values, layer_weights)
            out.users[:, columns] = layout.users.leave(result.users)
            out.items[:, columns] = layout.items.leave(result.items)
        return out

    def _horner(self, block: Tables, values: tuple[Tensor, Tensor], layer_weights: Sequence[float]) -> Tables:
        layout = self._layout
        *lower, last = layer_weights
        hidden = Tables(block.users * last, block.items * last)
        for weight in reversed(lower):
            users = aggregate(layout.users.offsets, layout.sources_of_users, values[0], hidden.items)
            items = aggregate(layout.items.offsets, layout.sources_of_items, values[1], hidden.users)
            hidden = Tables(users.add_(block.users, alpha=weight), items.add_(block.items, alpha=weight))
        return hidden


def _imbalance(degrees: Tensor, threads: int) -> float:
    """Edges of the busiest of `threads` equal runs of rows, over their mean."""
    run = -(-len(degrees) // threads)
    edges = torch.stack([degrees[first : first + run].sum() for first in range(0, len(degrees), run)])
    return float(edges.max() * threads / edges.sum())


def _column_blocks(width: int) -> list[slice]:
    """As few blocks of at most COLUMNS columns as possible, as equal as possible."""
    count = -(-width // COLUMNS)
    edges = [width * block // count for block in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
