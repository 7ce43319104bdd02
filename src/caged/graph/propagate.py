"""Weighted propagation on the fixed pattern, forward and backward by Horner's rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from caged.graph.bipartite import BipartiteGraph, EdgeWeights


class Tables(NamedTuple):
    """One row per user and one per item; layer-0 embeddings, their propagated form, or gradients of either."""

    users: Tensor  # (M, K)
    items: Tensor  # (N, K)


def uniform_layers(layers: int) -> tuple[float, ...]:
    """Weights 1/(L+1) of the layers 0..L: LightGCN's mean pooling."""
    return (1.0 / (layers + 1),) * (layers + 1)


def aggregate(offsets: Tensor, sources: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """out[r] = sum over e in [offsets[r], offsets[r+1]) of values[e] * table[sources[e]]; rows without edges are 0.

    On CPU this is `embedding_bag`, the fastest stock sparse-dense product there (its own backward is slow, which is why
    `propagate` never uses it); elsewhere a CSR product.
    """
    if table.device.type == "cpu":
        return F.embedding_bag(sources, table, offsets, mode="sum", per_sample_weights=values, include_last_offset=True)
    shape = (len(offsets) - 1, len(table))
    matrix = torch.sparse_csr_tensor(offsets, sources, values, size=shape, check_invariants=False)
    return matrix @ table


def propagate(graph: BipartiteGraph, weights: EdgeWeights, tables: Tables, layer_weights: Sequence[float]) -> Tables:
    """sum_l layer_weights[l] * W^l tables, with W the (M+N) x (M+N) matrix of the edge weights.

    Differentiable in the tables. The weights are constants; they must not change between forward and backward.
    """
    return Tables(*_Propagate.apply(tables.users, tables.items, graph, weights, tuple(layer_weights)))  # type: ignore[no-untyped-call]


def propagate_transposed(
    graph: BipartiteGraph, weights: EdgeWeights, tables: Tables, layer_weights: Sequence[float]
) -> Tables:
    """sum_l layer_weights[l] * (W^T)^l tables: what `propagate` applies to gradients. Not differentiable."""
    # (W^T)[u, i] is the weight of item <- user, so each direction takes the other one's vector.
    return _horner(graph, weights.to_item, weights.to_user_by_item, tables, layer_weights)


def _horner(
    graph: BipartiteGraph,
    to_users: Tensor,
    to_items_by_item: Tensor,
    tables: Tables,
    layer_weights: Sequence[float],
) -> Tables:
    """h = a_L E, then h = W h + a_l E for l = L-1 .. 0: L products, nothing stored in between."""
    users, items = tables
    *lower, last = layer_weights
    hidden = Tables(users * last, items * last)
    for weight in reversed(lower):
        to_users_now = aggregate(graph.user_offsets, graph.items, to_users, hidden.items)
        to_items_now = aggregate(graph.item_offsets, graph.item_users, to_items_by_item, hidden.users)
        hidden = Tables(to_users_now.add_(users, alpha=weight), to_items_now.add_(items, alpha=weight))
    return hidden


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        users: Tensor,
        items: Tensor,
        graph: BipartiteGraph,
        weights: EdgeWeights,
        layer_weights: tuple[float, ...],
    ) -> tuple[Tensor, Tensor]:
        ctx.fixed = (graph, weights, layer_weights)  # type: ignore[attr-defined]
        return _horner(graph, weights.to_user, weights.to_item_by_item, Tables(users, items), layer_weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        graph, weights, layer_weights = ctx.fixed
        gradient = Tables(users.contiguous(), items.contiguous())
        return (*propagate_transposed(graph, weights, gradient, layer_weights), None, None, None)
