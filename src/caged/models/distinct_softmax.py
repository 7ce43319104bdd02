"""The sampled softmax on CPU where a batch's candidates are its own positives: over its distinct users and items.

A batch names popular items and active users more than once. Of a chunk with distinct users x, distinct items i and n_i
rows of item i:

    l_xi    = x . y_i + bias_i
    S_x     = sum_i n_i exp(l_xi)
    total_b = S_x - (n_i - 1) exp(l_xi)                 for a row b of user x and item i
    loss    = sum_b weight_b [ log total_b - l_xi ]

That is the loss of `sampled_softmax`: a row competes with itself and with all rows of other items. S_x holds n_i times
exp(l_xi) and one of them stays in total_b, so the difference magnifies rounding errors n_i times at most. With
slope_x the sum of weight_b / total_b over the rows of x, the gradient is

    d loss / d l_xi = n_i exp(l_xi) slope_x - sum_b weight_b [ 1 + (n_i - 1) exp(l_xi) / total_b ]

with the sum over the rows b of x and i. All of it goes through the products with the distinct rows: on Epinions they
multiply a third fewer numbers. The n_i are put on the item rows, not on the logits. As in `sampled_softmax`, the
forward pass takes the gradient along, in blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from caged.models.matrix_products import add_product, by_onednn, product
from caged.models.sampled_softmax import BLOCK_BYTES, slices

ALIGNED = 16  # numbers of a cache line: products write rows that begin with one some 5% faster
ROUNDED_TO = 128  # rows, for oneDNN: it makes code for every shape that it meets and keeps it, a megabyte each time
MOST_COPIES = 128  # n_i for which this is used: 5 of float32's 7 digits are left at worst


class Pairs(NamedTuple):
    """The rows of a batch, by the numbers that its users and items have among the distinct ones."""

    users: Tensor  # (B,)
    items: Tensor  # (B,)
    weight: Tensor  # (B,), above 0

    def part(self, rows: slice) -> Pairs:
        return Pairs(*(values[rows] for values in self))

    def by_user(self) -> Pairs:
        order = self.users.argsort(stable=True)
        return Pairs(*(values.index_select(0, order) for values in self))


def distinct_softmax(users: Tensor, items: Tensor, bias: Tensor, pairs: Pairs, chunk: int) -> Tensor:
    """The loss above of distinct rows (X, K) and (Y, K), each of which some pair names; `bias` (Y,) is constant.

    `chunk` consecutive pairs share their candidates.
    """
    loss: Tensor = _DistinctSoftmax.apply(users, items, bias, pairs, chunk)  # type: ignore[no-untyped-call]
    return loss


class _DistinctSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, users: Tensor, items: Tensor, bias: Tensor, pairs: Pairs, chunk: int) -> Tensor:
        if len(pairs.weight) <= chunk:
            loss, to_users, to_items = _of_chunk(users, items, bias, pairs)
        else:
            loss, to_users, to_items = users.new_zeros(()), torch.zeros_like(users), torch.zeros_like(items)
            for rows in slices(0, len(pairs.weight), chunk):
                own = pairs.part(rows)
                named, user_numbers = own.users.unique(return_inverse=True)
                sold, item_numbers = own.items.unique(return_inverse=True)
                given = (users.index_select(0, named), items.index_select(0, sold), bias.index_select(0, sold))
                part, *slopes = _of_chunk(*given, own._replace(users=user_numbers, items=item_numbers))
                loss += part
                to_users.index_add_(0, named, slopes[0])
                to_items.index_add_(0, sold, slopes[1])
        ctx.save_for_backward(to_users, to_items)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * slope for gradient in ctx.saved_tensors), None, None, None)


def _of_chunk(users: Tensor, items: Tensor, bias: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and its gradients, where all pairs share their candidates."""
    pairs = pairs.by_user()
    user_count, item_count = len(users), len(items)
    if by_onednn(users):
        users, items, bias = _rounded_up(users), _rounded_up(items), _rounded_up(bias, -torch.inf)
    counts = torch.bincount(pairs.items, minlength=len(items)).to(users.dtype)
    counted = items * counts.unsqueeze(1)
    to_users, to_items = torch.empty_like(users), torch.empty_like(items)
    blocks = list(slices(0, len(users), _block_rows(users, len(items))))
    ends = torch.searchsorted(pairs.users, torch.tensor([block.stop for block in blocks])).tolist()
    memory = _memory(users, blocks[0].stop, len(items))
    losses, start = [], 0
    for block, end in zip(blocks, ends, strict=True):
        own, start = pairs.part(slice(start, end)), end
        room = None if memory is None else memory[: block.stop - block.start]
        logits = product(users[block], items.T, memory=room).add_(bias)
        losses.append(_into_slopes(logits, own._replace(users=own.users - block.start), counts))
        to_users[block] = product(logits, counted)
        add_product(to_items, logits.T, users[block], first=block.start == 0)
    to_items.mul_(counts.unsqueeze(1))
    return pairs.weight @ torch.cat(losses), to_users[:user_count], to_items[:item_count]


def _memory(users: Tensor, rows: int, item_count: int) -> Tensor | None:
    """For the logits of a block; oneDNN brings its own."""
    if by_onednn(users):
        return None
    return users.new_empty((rows, -(-item_count // ALIGNED) * ALIGNED))[:, :item_count]


def _block_rows(users: Tensor, item_count: int) -> int:
    """Users whose logits with all items are a block: at most `BLOCK_BYTES`, or the fewest rows that there may be."""
    if not by_onednn(users):
        return max(1, BLOCK_BYTES["cpu"] // (4 * item_count))
    return max(ROUNDED_TO, BLOCK_BYTES["onednn"] // (4 * item_count) // ROUNDED_TO * ROUNDED_TO)


def _rounded_up(rows: Tensor, value: float = 0.0) -> Tensor:
    """With rows of `value` behind them, which no pair names: an item with a bias of -inf has no share in anything."""
    return F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, -len(rows) % ROUNDED_TO), value=value)


def _into_slopes(logits: Tensor, pairs: Pairs, counts: Tensor) -> Tensor:
    """The losses of pairs whose users the logits (x, Y) belong to; the logits become their gradient over `counts`."""
    stride = logits.stride(0)
    cells = pairs.users * stride + pairs.items
    flat = logits.as_strided((stride * (len(logits) - 1) + logits.shape[1],), (1,))
    largest = logits.amax(1)
    own = flat.index_select(0, cells).sub_(largest.index_select(0, pairs.users))
    logits.sub_(largest.unsqueeze(1)).exp_()
    share, count = flat.index_select(0, cells), counts.index_select(0, pairs.items)
    others = (count - 1) * share  # of the same item
    total = torch.mv(logits, counts).index_select(0, pairs.users).sub_(others)
    weight = pairs.weight / total
    logits.mul_(logits.new_zeros(len(logits), 1).index_add_(0, pairs.users, weight.unsqueeze(1)))
    flat.index_add_(0, cells, others.mul_(weight).add_(pairs.weight).div_(count), alpha=-1)
    return total.log_().sub_(own)
