"""Item-item edges beside the user-item pattern, and propagation over both.

With W the matrix of the edge weights and S = S^T that of the item-item edges, zero outside its item block,

    out = sum_l a_l (W + S)^l E        forward:  h = a_L E;  h = W h + S h + a_l E   for l = L-1 .. 0
    dE  = sum_l a_l (W^T + S)^l g      backward: the same with W^T

There are at most a few edges per item, so S h is one gather and one `index_add_`: in a fixed order on CPU, by atomic
additions on CUDA.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from caged.graph.operators import Tables
from caged.graph.propagate import propagate
from caged.graph.weights import Weights


class ItemEdges:
    """A fixed number of places for undirected item-item edges, each with one weight for both directions.

    A place without an edge has weight 0. New edges are assigned in place, so whoever holds these buffers (a captured
    step among them) sees the change. All arguments have shape (capacity,).
    """

    def __init__(self, firsts: Tensor, seconds: Tensor, weights: Tensor) -> None:
        self.capacity = len(firsts)
        # Both directions one after the other, so that a product is a single gather.
        self.targets = torch.cat((firsts, seconds)).long()
        self.sources = torch.cat((seconds, firsts)).long()
        self.values = torch.cat((weights, weights)).unsqueeze(1)  # (2 * capacity, 1)

    def assign(self, firsts: Tensor, seconds: Tensor, weights: Tensor) -> None:
        """Take other edges, as many as there are places."""
        self.targets.copy_(torch.cat((firsts, seconds)))
        self.sources.copy_(torch.cat((seconds, firsts)))
        self.values.copy_(torch.cat((weights, weights)).unsqueeze(1))

    def add_products(self, sums: Tensor, table: Tensor) -> None:
        """sums += S table, in place; both (N, K)."""
        sums.index_add_(0, self.targets, table.index_select(0, self.sources) * self.values)


def propagate_with_items(
    weights: Weights,
    edges: ItemEdges,
    tables: Tables,
    layer_weights: Sequence[float],
    rows: Tensor | None = None,
) -> Tables:
    """sum_l layer_weights[l] * (W + S)^l tables; `rows` as in `propagate`.

    Differentiable in the tables. Weights and edges are constants; they must not change between forward and backward.
    Without a place for any edge it is `propagate`, to the last bit.
    """
    if edges.capacity == 0:
        return propagate(weights, tables, layer_weights, rows)
    return Tables(*_PropagateWithItems.apply(*tables, weights, edges, tuple(layer_weights), rows))  # type: ignore[no-untyped-call]


class _PropagateWithItems(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        users: Tensor,
        items: Tensor,
        weights: Weights,
        edges: ItemEdges,
        layer_weights: tuple[float, ...],
        rows: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.fixed = (weights, edges, layer_weights)  # type: ignore[attr-defined]
        return _horner(weights, edges, Tables(users, items), layer_weights, transposed=False, rows=rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, users: Tensor, items: Tensor) -> tuple[Tensor | None, ...]:
        weights, edges, layer_weights = ctx.fixed
        gradient = Tables(users.contiguous(), items.contiguous())
        return (*_horner(weights, edges, gradient, layer_weights, transposed=True), None, None, None, None)


def _horner(
    weights: Weights,
    edges: ItemEdges,
    tables: Tables,
    layer_weights: Sequence[float],
    *,
    transposed: bool,
    rows: Tensor | None = None,
) -> Tables:
    *lower, last = layer_weights
    hidden = Tables(tables.users * last, tables.items * last)
    for layer in range(len(lower) - 1, -1, -1):
        wanted = rows if layer == 0 else None  # what is not the result is read whole
        sums = weights.operator.apply(hidden, (0.0, 1.0), transposed=transposed, rows=wanted)
        edges.add_products(sums.items, hidden.items)
        if lower[layer] != 0:
            for part, start in zip(sums, tables, strict=True):
                part.add_(start, alpha=lower[layer])
        hidden = sums
    return hidden
