"""The softmax loss of the backbone and its L2 term on CUDA: three kernels around three matrix products.

The same as `sampled_softmax` of unit rows and `l2_rows`, for candidates that are the positives of the batch, which is
what training does unless somebody asks otherwise. No row is gathered or scattered by itself, and what happens to a
logit between two products happens in one pass. As there, the forward pass takes the gradient along.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from caged.graph import Batch, Tables
from caged.models.matrix_products import add_product, product
from caged.models.sampled_softmax import blocks, slices

MOST_CANDIDATES = 8192  # of a row: one program of the kernels holds it as a whole


class Candidates(NamedTuple):
    """What the loss takes as constant, beside the batch."""

    log_shares: Tensor  # (items,): log q
    drawn: Tensor  # (items,): whether the sampler ever draws it
    temperature: float
    gamma: float
    chunk: int  # rows that share their candidates
    operands: torch.dtype  # of the matrix products; sums are float32


def fits(batch: Batch, chunk: int) -> bool:
    """Whether the kernels can take the batch."""
    return batch.weight.is_cuda and min(chunk, len(batch.users)) <= MOST_CANDIDATES


def fused_softmax(final: Tables, layer0: Tables, batch: Batch, given: Candidates) -> tuple[Tensor, Tensor]:
    """The loss of the propagated rows, and `l2_rows` of the layer-0 rows."""
    ranking, penalty = _FusedSoftmax.apply(batch, given, *final, *layer0)  # type: ignore[no-untyped-call]
    return ranking, penalty


class _FusedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, batch: Batch, given: Candidates, *tables: Tensor) -> tuple[Tensor, Tensor]:
        from caged.graph.kernels.triton_softmax import slopes_of_logits, unit_rows_of
        from caged.graph.kernels.triton_triples import sums

        parts = sums(2, batch.weight.device)
        queries, candidates, own, bias = unit_rows_of(
            tables,
            batch,
            given.log_shares,
            given.drawn,
            parts,
            temperature=given.temperature,
            gamma=given.gamma,
            operands=given.operands,
        )
        own_slopes = torch.empty_like(own)
        to_queries, to_candidates = (torch.empty(queries.shape, device=own.device) for _ in range(2))
        for rows, chunk, first in _pieces(len(own), given.chunk, own.device.type):
            logits = product(queries[rows], candidates[chunk].T)
            slopes = logits if given.operands == torch.float32 else torch.empty_like(logits, dtype=given.operands)
            slopes_of_logits(logits, slopes, own, bias, batch, own_slopes, parts, rows, chunk)
            to_queries[rows] = product(slopes, candidates[chunk])
            add_product(to_candidates[chunk], slopes.T, queries[rows], first=first)
        ctx.batch, ctx.temperature = batch, given.temperature
        ctx.save_for_backward(to_queries, to_candidates, own_slopes, *tables)
        ranking, penalty = parts.float().unbind()
        return ranking, penalty

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ranking: Tensor, penalty: Tensor) -> tuple[Tensor | None, ...]:
        from caged.graph.kernels.triton_softmax import table_gradients

        to_queries, to_candidates, own_slopes, *tables = ctx.saved_tensors
        gradients = table_gradients(
            tables,
            ctx.batch,
            to_queries,
            to_candidates,
            own_slopes,
            ranking,
            penalty,
            temperature=ctx.temperature,
        )
        return (None, None, *gradients)


def _pieces(count: int, size: int, device: str) -> Iterator[tuple[slice, slice, bool]]:
    """Rows, the chunk they belong to, and whether they are its first."""
    for chunk in slices(0, count, size):
        for number, rows in enumerate(blocks(chunk, device)):
            yield rows, chunk, number == 0
