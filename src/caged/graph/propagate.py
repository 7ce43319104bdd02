"""Weighted propagation on the fixed pattern, forward and backward by Horner's rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from caged.graph.operators import Tables
from caged.graph.weights import Weights


def uniform_layers(layers: int) -> tuple[float, ...]:
    """Weights 1/(L+1) of the layers 0..L: LightGCN's mean pooling."""
    return (1.0 / (layers + 1),) * (layers + 1)


def propagate(weights: Weights, tables: Tables, layer_weights: Sequence[float], rows: Tensor | None = None) -> Tables:
    """sum_l layer_weights[l] * W^l tables, with W the (M+N) x (M+N) matrix of the edge weights.

    Differentiable in the tables. The weights are constants; they must not change between forward and backward. With
    `rows`, flags of the users and then the items, other rows of the result may be wrong and must not be used.
    """
    return Tables(*_Propagate.apply(tables.users, tables.items, weights, tuple(layer_weights), rows))  # type: ignore[no-untyped-call]


def propagate_transposed(weights: Weights, tables: Tables, layer_weights: Sequence[float]) -> Tables:
    """sum_l layer_weights[l] * (W^T)^l tables: what `propagate` applies to gradients. Not differentiable."""
    return weights.operator.apply(tables, layer_weights, transposed=True)


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        users: Tensor,
        items: Tensor,
        weights: Weights,
        layer_weights: tuple[float, ...],
        rows: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.fixed = (weights, layer_weights)  # type: ignore[attr-defined]
        return weights.operator.apply(Tables(users, items), layer_weights, transposed=False, rows=rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, users: Tensor, items: Tensor) -> tuple[Tensor | None, ...]:
        weights, layer_weights = ctx.fixed
        gradient = Tables(users.contiguous(), items.contiguous())
        return (*propagate_transposed(weights, gradient, layer_weights), None, None, None)
