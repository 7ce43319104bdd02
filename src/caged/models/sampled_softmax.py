"""The sampled softmax over the candidates of a batch, its gradient written out, in blocks of logits.

With rows x_b (users), y_b (positives) and z_c (candidates), and b in the same chunk of consecutive rows as c:

    own_b = x_b . y_b + own_bias_b
    l_bc  = x_b . z_c + bias_c              for c with key_c != key_b, -inf otherwise
    loss  = sum_b weight_b [ log(exp(own_b) + sum_c exp(l_bc)) - own_b ]

The gradient is known as soon as a block of logits is there, up to the one factor that comes back to the loss: with
p_bc = exp(l_bc) / (exp(own_b) + sum_c' exp(l_bc')), it is weight_b p_bc for l_bc and weight_b (p_b - 1) for own_b. So
the forward pass takes it along, no logit is kept or computed twice, and the backward pass is a multiplication. A block
has at most `BLOCK_BYTES` of float32 logits, or one row, whatever the size of batch and chunk. Shapes are fixed and
nothing is read back, so that a CUDA graph can hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from caged.models.matrix_products import add_product, product

# A block stays in the second-level cache of a core (measured, benchmarks/README.md), for oneDNN in a larger one (4% of
# the loss over distinct rows); on CUDA it fills the chip.
BLOCK_BYTES = {"cpu": 2 * 2**20, "onednn": 4 * 2**20, "cuda": 64 * 2**20}

Known = Callable[[slice, slice], Tensor]  # rows and candidates of a block -> (b, c), true where a candidate is left out


class Problem(NamedTuple):
    """All but the rows: what the loss takes as constant. (B,) each."""

    weight: Tensor  # of each row
    keys: Tensor  # of the positive; a candidate with the same key is none
    own_bias: Tensor
    candidate_keys: Tensor
    bias: Tensor  # of the candidates; -inf: left out
    chunk: int  # rows that share their candidates
    known: Known | None = None
    operands: torch.dtype = torch.float32  # of the matrix products; sums are float32


def sampled_softmax(users: Tensor, positives: Tensor, candidates: Tensor, problem: Problem) -> Tensor:
    """The loss above; rows are (B, K), and `candidates` may be `positives`."""
    loss: Tensor = _SampledSoftmax.apply(users, positives, candidates, problem)  # type: ignore[no-untyped-call]
    return loss


def unit_rows(rows: Tensor) -> Tensor:
    """Every row divided by its length; a zero row stays zero and gets no gradient, so that cosines with it are 0."""
    unit: Tensor = _UnitRows.apply(rows)  # type: ignore[no-untyped-call]
    return unit


class _UnitRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        inverse = torch.where(length > 0, length.reciprocal(), 0.0)
        unit = rows * inverse
        ctx.save_for_backward(unit, inverse)
        return unit

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        along = (unit * gradient).sum(1, keepdim=True)
        return torch.addcmul(gradient, unit, along, value=-1).mul_(inverse)


class _SampledSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, users: Tensor, positives: Tensor, candidates: Tensor, problem: Problem) -> Tensor:
        own = torch.linalg.vecdot(users, positives) + problem.own_bias
        losses, own_slopes = torch.empty_like(own), torch.empty_like(own)
        to_users, to_candidates = torch.empty_like(users), torch.empty_like(candidates)
        operands, sides = (part.to(problem.operands) for part in (users, candidates))
        for chunk in slices(0, len(users), problem.chunk):
            shared, same = sides[chunk], _SameKeys(problem.candidate_keys[chunk])
            for number, rows in enumerate(blocks(chunk, users.device.type)):
                exponentials = _logits(operands[rows], shared, rows, chunk, problem, same)
                largest = torch.maximum(exponentials.amax(1), own[rows])  # finite: own is
                exponentials.sub_(largest.unsqueeze(1)).exp_()
                own_share = (own[rows] - largest).exp_()
                total = exponentials.sum(1).add_(own_share)
                losses[rows] = total.log().add_(largest).sub_(own[rows])
                slope = problem.weight[rows] / total
                own_slopes[rows] = own_share.mul_(slope).sub_(problem.weight[rows])
                shares = exponentials.to(problem.operands)
                to_users[rows] = product(shares, shared).mul_(slope.unsqueeze(1))
                scaled = (users[rows] * slope.unsqueeze(1)).to(problem.operands)
                add_product(to_candidates[chunk], shares.T, scaled, first=number == 0)
        own_slopes.unsqueeze_(1)
        ctx.save_for_backward(torch.addcmul(to_users, positives, own_slopes), users * own_slopes, to_candidates)
        return problem.weight @ losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * slope for gradient in ctx.saved_tensors), None)


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def blocks(chunk: slice, device: str) -> Iterator[slice]:
    """Rows of a chunk whose logits with all candidates of it fit `BLOCK_BYTES`."""
    width = chunk.stop - chunk.start
    return slices(chunk.start, chunk.stop, max(1, BLOCK_BYTES[device] // (4 * width)))


class _SameKeys:
    """The keys of the candidates of a chunk, which may not be those of a row.

    Few are, so on CPU they are looked up: comparing all takes longer than a product. At worst they are as many as the
    logits of a block. On CUDA their number must not be read back, so all are compared.
    """

    def __init__(self, keys: Tensor) -> None:
        self._keys = keys
        if keys.device.type == "cpu":
            self._sorted, self._order = keys.sort()

    def leave_out(self, logits: Tensor, keys: Tensor) -> None:
        """-inf where a row (b,) and a candidate have the same key."""
        if keys.device.type != "cpu":
            logits.masked_fill_(keys.unsqueeze(1) == self._keys, -torch.inf)
            return
        first, last = (torch.searchsorted(self._sorted, keys, right=right) for right in (False, True))
        counts = last - first
        row = torch.repeat_interleave(counts)
        place = torch.arange(len(row)) + (first - (counts.cumsum(0) - counts)).index_select(0, row)
        flat = self._order.index_select(0, place).add_(row, alpha=logits.shape[1])
        logits.view(-1).index_fill_(0, flat, -torch.inf)


def _logits(users: Tensor, candidates: Tensor, rows: slice, chunk: slice, problem: Problem, same: _SameKeys) -> Tensor:
    """l_bc of a block."""
    logits = product(users, candidates.T).add_(problem.bias[chunk])
    same.leave_out(logits, problem.keys[rows])
    if problem.known is not None:
        logits.masked_fill_(problem.known(rows, chunk), -torch.inf)
    return logits
