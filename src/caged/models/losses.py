"""Losses on a batch of triples, each formula in its docstring. `weight` is `Batch.weight`: it sums to one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from caged.graph import Batch
from caged.models.base import Losses, Vectors
from caged.models.encoder import gather, scores


def bpr(positive: Tensor, negative: Tensor, weight: Tensor) -> Tensor:
    """Bayesian personalised ranking: mean over triples of softplus(s_uj - s_ui) = -log sigmoid(s_ui - s_uj).

    >>> import torch
    >>> bpr(torch.zeros(2), torch.zeros(2), torch.full((2,), 0.5)).item()  # ln 2 when all scores are equal
    0.6931471824645996
    """
    return weight @ F.softplus(negative - positive)


def l2_rows(weight: Tensor, *rows: Tensor) -> Tensor:
    """(1 / 2B) sum over the batch of |e_u|^2 + |e_i|^2 + |e_j|^2, rows of layer 0 counted with multiplicity.

    LightGCN's own convention, and the only L2 term here: half the squared norm of the layer-0 rows that occur in the
    batch, not of all parameters and not of propagated rows.

    >>> import torch
    >>> l2_rows(torch.tensor([0.5, 0.5]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).item()  # (25 + 1) / 4
    6.5
    """
    return 0.5 * sum((weight @ part.square().sum(1) for part in rows), start=weight.new_zeros(()))


def bpr_with_l2(final: Vectors, layer0: Vectors, batch: Batch, l2: float) -> Losses:
    """`bpr` of the propagated rows plus `l2` times `l2_rows` of the layer-0 rows: the loss of LightGCN.

    On CUDA both, and their gradients, come from one pass over the triples; the values are the same to rounding.
    """
    if batch.weight.is_cuda:
        ranking, penalty = _BprWithL2.apply(batch, *final, *layer0)  # type: ignore[no-untyped-call]
    else:
        ranking = bpr(*scores(gather(final, batch)), batch.weight)
        penalty = l2_rows(batch.weight, *gather(layer0, batch))
    return Losses(ranking + l2 * penalty, {"bpr": ranking, "l2": penalty})


class _BprWithL2(torch.autograd.Function):
    """The tables are read again for the gradients: cheaper than keeping or scaling full-size ones."""

    @staticmethod
    def forward(ctx: Any, batch: Batch, *tables: Tensor) -> tuple[Tensor, Tensor]:
        from caged.graph.triton_kernels import bpr_parts

        ctx.batch = batch
        ctx.save_for_backward(*tables)
        ranking, penalty = bpr_parts(tables, batch).unbind()  # type: ignore[no-untyped-call]
        return ranking, penalty

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ranking: Tensor, penalty: Tensor) -> tuple[Tensor | None, ...]:
        from caged.graph.triton_kernels import bpr_gradients

        return (None, *bpr_gradients(ctx.saved_tensors, ctx.batch, ranking, penalty))  # type: ignore[no-untyped-call]
