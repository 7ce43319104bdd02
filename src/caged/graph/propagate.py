"""Weighted propagation on the fixed pattern, forward and backward by Horner's rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from caged.graph.kernels.cpu import CpuOperator
from caged.graph.kernels.cpu_rows import NamedRows, picked
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
        ctx.fixed = (weights, layer_weights, rows)  # type: ignore[attr-defined]
        return weights.operator.apply(Tables(users, items), layer_weights, transposed=False, rows=rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, users: Tensor, items: Tensor) -> tuple[Tensor | None, ...]:
        weights, layer_weights, rows = ctx.fixed
        gradient = Tables(users.contiguous(), items.contiguous())
        return (*weights.operator.apply(gradient, layer_weights, transposed=True, rows=rows), None, None, None)


class PropagatedRows(NamedTuple):
    """Of the named users and items: their rows of `propagate`, and of the tables that it was given."""

    final: Tables
    layer0: Tables
    rows: Tables  # their numbers in the whole tables


def propagate_named(
    weights: Weights, tables: Tables, layer_weights: Sequence[float], flags: Tensor
) -> PropagatedRows | None:
    """Of the nodes that `flags` (M + N,) names, users first; None where it does not pay to treat them apart.

    The same rows and gradients as from whole tables, to the last bit, but whole tables are neither written nor, for the
    gradients of rows, filled with zeros and added up.
    """
    operator = weights.operator
    if not isinstance(operator, CpuOperator) or len(layer_weights) == 1:
        return None
    named = operator.named(flags, tables.users.shape[1])
    if named is None:
        return None
    found = _PropagateNamed.apply(*tables, operator, tuple(layer_weights), named)  # type: ignore[no-untyped-call]
    return PropagatedRows(Tables(*found[:2]), Tables(*found[2:]), Tables(named.users.rows, named.items.rows))


class _PropagateNamed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        users: Tensor,
        items: Tensor,
        operator: CpuOperator,
        layer_weights: tuple[float, ...],
        named: NamedRows,
    ) -> tuple[Tensor, ...]:
        ctx.fixed = (operator, layer_weights, named)  # type: ignore[attr-defined]
        tables = Tables(users, items)
        return (*operator.to_named(tables, layer_weights, named), *picked(tables, named))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        operator, layer_weights, named = ctx.fixed
        of_final, of_layer0 = Tables(*gradients[:2]), Tables(*gradients[2:])
        return (*operator.from_named(of_final, layer_weights, named, added=of_layer0), None, None, None)
