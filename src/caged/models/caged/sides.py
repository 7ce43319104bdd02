"""The two directions of a message in CAGED: which rows of A~ it belongs to, and sums over them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from caged.graph import BipartiteGraph, Tables, Weights


class Pairs(NamedTuple):
    """Directed pairs, as row numbers of the two tables that they point into."""

    neighbours: Tensor  # (B,) x
    centres: Tensor  # (B,) c


class Side(NamedTuple):
    """The messages to one side of the graph: the rows of A~ whose centres are users, or items."""

    name: str  # to_user | to_item
    edges: Pairs  # neighbour and centre of each edge, user-major
    offsets: Tensor  # CSR rows of the centres
    order: Tensor | None  # edges sorted by centre; None: they are
    base: Tensor  # (E,) A~
    normaliser: Tensor  # F of each centre, its row sum of A~

    def sums(self, values: Tensor) -> Tensor:
        """Row sums of an edge vector."""
        return _reduced(values, "sum", 0.0, self.offsets, self.order)

    def maxima(self, values: Tensor) -> Tensor:
        """Row maxima of an edge vector; -inf where a row has no edge."""
        return _reduced(values, "max", -torch.inf, self.offsets, self.order)

    def per_edge(self, of_centres: Tensor) -> Tensor:
        """A number per centre, repeated for each of its edges."""
        return of_centres.index_select(0, self.edges.centres)


def sides_of(graph: BipartiteGraph, weights: Weights) -> tuple[Side, Side]:
    """Messages to users and messages to items; `weights` are A~."""

    def side(name: str, edges: Pairs, offsets: Tensor, order: Tensor | None, base: Tensor) -> Side:
        normaliser = _reduced(base.double(), "sum", 0.0, offsets, order).to(base.dtype)
        return Side(name, edges, offsets, order, base.clone(), normaliser)

    return (
        side("to_user", Pairs(graph.items, graph.users), graph.user_offsets, None, weights.to_user),
        side("to_item", Pairs(graph.users, graph.items), graph.item_offsets, graph.by_item, weights.to_item),
    )


def rows_of(side: Side, vectors: Tables) -> tuple[Tensor, Tensor]:
    """The tables of neighbours and centres of one side."""
    return (vectors.items, vectors.users) if side.name == "to_user" else (vectors.users, vectors.items)


def _reduced(values: Tensor, how: str, start: float, offsets: Tensor, order: Tensor | None) -> Tensor:
    """Row by row, in a fixed order: the same bits on every call, on CUDA too."""
    ordered = values if order is None else values.index_select(0, order)
    # unsafe: the offsets are known to be sound, and looking at them would wait for the device on every call.
    return torch.segment_reduce(ordered, how, offsets=offsets, initial=start, unsafe=True)
