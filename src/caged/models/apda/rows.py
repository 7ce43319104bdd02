"""What a node gives to the messages of an APDA layer: (1), (2) and the two ends of (6) and (7) in `method.py`.

    x = hidden + rho start,   h = x / |x|                                                  (1)
    h~ = h + nu sign(h) n(U)                                                               (2)
    scored = h~,   sent = keep h~,   residual = rho (h - start)

Eight operations on tables of M + N rows. On CUDA they are one pass forward and one backward: with g the sum of what
comes back to h (noise and mask are constants, and sign has no slope),

    x : (g - h (h . g)) / |x|,    start : rho times that - rho g_residual
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

EPSILON = 1e-12  # norms below it count as this; a zero row stays zero


class Sources(NamedTuple):
    """(M + N, K) each; None where it would be `scored` itself, or zero."""

    scored: Tensor
    sent: Tensor | None
    residual: Tensor | None


def unit_rows(rows: Tensor) -> Tensor:
    """n: every row divided by its length."""
    return F.normalize(rows, dim=1, eps=EPSILON)


def source_rows(
    hidden: Tensor,
    start: Tensor,
    *,
    rho: float,
    unit: bool = True,
    noise: float = 0.0,
    uniform: Tensor | None = None,
    keep: Tensor | None = None,
) -> Sources:
    """The rows of a layer. Without `unit`, h = x; without `uniform`, no noise; without `keep`, nothing is dropped.

    `uniform` holds numbers from (0, 1), `keep` truth values, both per entry.
    """
    if hidden.is_cuda:
        return Sources(*_SourceRows.apply(hidden, start, uniform, keep, rho, noise, unit))  # type: ignore[no-untyped-call]
    rows = torch.add(hidden, start, alpha=rho) if rho else hidden
    rows = unit_rows(rows) if unit else rows
    scored = rows if uniform is None else torch.addcmul(rows, rows.detach().sign(), unit_rows(uniform), value=noise)
    return Sources(scored, None if keep is None else scored * keep, rho * (rows - start) if rho else None)


class _SourceRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        start: Tensor,
        uniform: Tensor | None,
        keep: Tensor | None,
        rho: float,
        noise: float,
        unit: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        from caged.graph.kernels.triton_edges import source_rows as fused

        ctx.save_for_backward(hidden, start, keep)
        ctx.fixed = {"rho": rho, "unit": unit, "epsilon": EPSILON}
        rows: tuple[Tensor, Tensor | None, Tensor | None] = fused(
            hidden.contiguous(), start.contiguous(), uniform, keep, noise=noise, **ctx.fixed
        )
        return rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        from caged.graph.kernels.triton_edges import source_row_gradients

        hidden, start, keep = ctx.saved_tensors
        given = [None if part is None else part.contiguous() for part in gradients]
        to_hidden, to_start = source_row_gradients(given, hidden.contiguous(), start.contiguous(), keep, **ctx.fixed)
        return (to_hidden, to_start, None, None, None, None, None)
