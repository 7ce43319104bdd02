"""Losses on a batch of triples, each formula in its docstring. `weight` is `Batch.weight`: it sums to one."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from caged.columns import WHOLE, Columns
from caged.graph import Batch, Tables
from caged.models.contract import Losses
from caged.models.encoder import gather, scores

CORRELATION_EPSILON = 1e-8  # of a variance; far above the rounding noise of scores of order one


def bpr(positive: Tensor, negative: Tensor, weight: Tensor) -> Tensor:
    """Bayesian personalised ranking: mean over triples of softplus(s_uj - s_ui) = -log sigmoid(s_ui - s_uj).

    >>> import torch
    >>> bpr(torch.zeros(2), torch.zeros(2), torch.full((2,), 0.5)).item()  # ln 2 when all scores are equal
    0.6931471824645996
    """
    return weight @ F.softplus(negative - positive)


def bce(positive: Tensor, negative: Tensor, weight: Tensor) -> Tensor:
    """Binary cross-entropy with one negative per positive: mean of -log sigmoid(s_ui) - log(1 - sigmoid(s_uj)).

    Scores are (B,), or (n, B) for n losses at once.

    >>> import torch
    >>> bce(torch.zeros(2), torch.zeros(2), torch.full((2,), 0.5)).item()  # 2 ln 2 when all scores are zero
    1.3862943649291992
    """
    return (F.softplus(-positive) + F.softplus(negative)) @ weight


def squared_correlation(values: Tensor, others: Tensor, weight: Tensor) -> Tensor:
    """rho^2 = cov(x, y)^2 / ((var(x) + eps) (var(y) + eps)), Pearson's, over the triples of a batch; in [0, 1].

    Both epsilons stand inside the square roots of rho, so that a batch without variance gives 0 and a finite gradient.
    `others` is taken as constant.

    >>> import torch
    >>> x, quarter = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.full((4,), 0.25)
    >>> round(squared_correlation(x, 5 - 2 * x, quarter).item(), 6)
    1.0
    >>> squared_correlation(x, torch.ones(4), quarter).item()
    0.0
    """
    rho2: Tensor = _SquaredCorrelation.apply(values, others, weight)  # type: ignore[no-untyped-call]
    return rho2


class _SquaredCorrelation(torch.autograd.Function):
    """The gradient, 2 c / (v s) w (y - x c / v) with c, v, s the covariance and both variances, takes a third of the
    kernels that recording every operation would."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, others: Tensor, weight: Tensor) -> Tensor:
        both = torch.stack((values, others))
        both = both - (both @ weight).unsqueeze(1)
        weighted = both * weight
        covariance = weighted[0] @ both[1]
        variances = (weighted * both).sum(1) + CORRELATION_EPSILON
        ctx.save_for_backward(weighted, covariance, variances)
        return (covariance.square() / variances.prod()).clamp(max=1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        weighted, covariance, variances = ctx.saved_tensors
        direction = torch.addcmul(weighted[1], weighted[0], covariance / variances[0], value=-1)
        return 2 * slope * (covariance / variances.prod()) * direction, None, None


def l2_rows(weight: Tensor, *rows: Tensor) -> Tensor:
    """(1 / 2B) sum over the batch of |e_u|^2 + |e_i|^2 + |e_j|^2, rows of layer 0 counted with multiplicity.

    LightGCN's own convention, and the only L2 term here: half the squared norm of the layer-0 rows that occur in the
    batch, not of all parameters and not of propagated rows.

    >>> import torch
    >>> l2_rows(torch.tensor([0.5, 0.5]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).item()  # (25 + 1) / 4
    6.5
    """
    return 0.5 * sum((weight @ part.square().sum(1) for part in rows), start=weight.new_zeros(()))


def bpr_with_l2(final: Tables, layer0: Tables, batch: Batch, l2: float, columns: Columns = WHOLE) -> Losses:
    """`bpr` of the propagated rows plus `l2` times `l2_rows` of the layer-0 rows: the loss of LightGCN.

    On CUDA both, and their gradients, come from one pass over the triples; the values are the same to rounding. Where
    other ranks hold further columns, the scores are sums over the ranks.
    """
    ranking, penalty = _bpr_and_l2(final, layer0, batch, batch.weight, columns)
    return Losses(ranking + l2 * penalty, {"bpr": ranking, "l2": penalty})


def scaled_bpr_with_l2(
    final: Tables, layer0: Tables, batch: Batch, scale: Tensor, l2: float, columns: Columns = WHOLE
) -> Losses:
    """`bpr_with_l2` with the scores of a triple multiplied by its `scale`, (B,).

    It is the user's row that is scaled: scale e_u.(e_i - e_j). So each triple brings its own user row.
    """
    own_rows = torch.arange(len(batch.users), device=batch.users.device)
    scaled = scale.unsqueeze(1) * final.users.index_select(0, batch.users)
    start = layer0.users.index_select(0, batch.users)
    renumbered = batch._replace(users=own_rows)
    return bpr_with_l2(Tables(scaled, final.items), Tables(start, layer0.items), renumbered, l2, columns)


def weighted_bpr_with_l2(
    final: Tables, layer0: Tables, batch: Batch, importance: Tensor, l2: float, columns: Columns = WHOLE
) -> Losses:
    """mean of importance_b softplus(s_uj - s_ui), plus `l2` times `l2_rows`, which is not weighted.

    `importance` (B,) is constant. With ones it is `bpr_with_l2`, on CPU to the last bit.
    """
    ranking, penalty = _bpr_and_l2(final, layer0, batch, batch.weight * importance, columns)
    return Losses(ranking + l2 * penalty, {"bpr": ranking, "l2": penalty})


def bce_with_l2(final: Tables, layer0: Tables, batch: Batch, l2: float, columns: Columns = WHOLE) -> Losses:
    """`bce` of the propagated rows plus `l2` times `l2_rows` of the layer-0 rows."""
    (positive, negative), penalty = scores_with_l2(final, layer0, batch, columns)
    ranking = bce(positive, negative, batch.weight)
    return Losses(ranking + l2 * penalty, {"bce": ranking, "l2": penalty})


def l2_of_batch(layer0: Tables, batch: Batch) -> Tensor:
    """`l2_rows` of the rows of a batch, for losses with scores of their own."""
    if batch.weight.is_cuda:
        constant = Tables(layer0.users.detach(), layer0.items.detach())
        return scores_with_l2(constant, layer0, batch)[1]
    items, twice = torch.cat((batch.positives, batch.negatives)), torch.cat((batch.weight, batch.weight))
    return _l2_of_named(layer0.users, batch.users, batch.weight) + _l2_of_named(layer0.items, items, twice)


def _l2_of_named(table: Tensor, named: Tensor, weight: Tensor) -> Tensor:
    """`l2_rows` of the rows `named` (B,), each of which is read once, however often it is named."""
    if len(table) > len(named):
        rows, named = named.unique(return_inverse=True)
        table = table.index_select(0, rows)
    counted = weight.new_zeros(len(table)).index_add_(0, named, weight)
    half: Tensor = _HalfSquares.apply(table, counted)  # type: ignore[no-untyped-call]
    return half


class _HalfSquares(torch.autograd.Function):
    """1/2 sum_r weight_r |e_r|^2, one pass over the rows each way."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(rows, weight)
        half: Tensor = 0.5 * (weight @ torch.linalg.vecdot(rows, rows))
        return half

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        return rows * (weight * slope).unsqueeze(1), None


def scores_with_l2(final: Tables, layer0: Tables, batch: Batch, columns: Columns = WHOLE) -> tuple[Tensor, Tensor]:
    """(2, B) scores s_ui and s_uj of the propagated rows, and `l2_rows` of the layer-0 rows: for losses of any form.

    On CUDA it is one pass over the triples each way; triples of weight zero, which are padding, get no gradient there.
    Both are sums over the ranks where several hold the columns.
    """
    if batch.weight.is_cuda:
        pairs, penalty = _Scores.apply(batch, *final, *layer0)  # type: ignore[no-untyped-call]
    else:
        pairs, penalty = torch.stack(scores(gather(final, batch))), l2_of_batch(layer0, batch)
    pairs, penalty = columns.join(pairs, penalty)
    return pairs, penalty


class HeadScores(NamedTuple):
    pairs: Tensor  # (2, B): e_u.e_i, e_u.e_j
    of_users: Tensor  # (B,): b.e_u
    of_items: Tensor  # (2, B): a.e_i, a.e_j
    penalty: Tensor  # (): `l2_rows` of layer 0


def head_scores_with_l2(
    final: Tables, layer0: Tables, batch: Batch, user_head: Tensor, item_head: Tensor
) -> HeadScores:
    """`scores_with_l2` together with products of the propagated rows with heads b and a, each (K,)."""
    if batch.weight.is_cuda:
        return HeadScores(*_Scores.apply(batch, *final, *layer0, user_head, item_head))  # type: ignore[no-untyped-call]
    rows = gather(final, batch)
    of_items = torch.stack((rows.positives @ item_head, rows.negatives @ item_head))
    penalty = l2_of_batch(layer0, batch)
    return HeadScores(torch.stack(scores(rows)), rows.users @ user_head, of_items, penalty)


def _bpr_and_l2(final: Tables, layer0: Tables, batch: Batch, weight: Tensor, columns: Columns) -> tuple[Tensor, Tensor]:
    """Both parts of `bpr_with_l2`, triples weighted by `weight` in the first."""
    if columns.size > 1:
        (positive, negative), penalty = scores_with_l2(final, layer0, batch, columns)
        return bpr(positive, negative, weight), penalty
    if weight.is_cuda:
        ranking, penalty = _BprWithL2.apply(batch, weight, *final, *layer0)  # type: ignore[no-untyped-call]
        return ranking, penalty
    return bpr(*scores(gather(final, batch)), weight), l2_of_batch(layer0, batch)


class _BprWithL2(torch.autograd.Function):
    """The tables are read again for the gradients: cheaper than keeping or scaling full-size ones."""

    @staticmethod
    def forward(ctx: Any, batch: Batch, ranking_weight: Tensor, *tables: Tensor) -> tuple[Tensor, Tensor]:
        from caged.graph.kernels.triton_triples import bpr_parts

        ctx.batch, ctx.ranking_weight = batch, ranking_weight
        ctx.save_for_backward(*tables)
        ranking, penalty = bpr_parts(tables, batch, ranking_weight).unbind()
        return ranking, penalty

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ranking: Tensor, penalty: Tensor) -> tuple[Tensor | None, ...]:
        from caged.graph.kernels.triton_triples import bpr_gradients

        scales = (ranking, penalty)
        gradients = bpr_gradients(ctx.saved_tensors, ctx.batch, ctx.ranking_weight, *scales)
        return (None, None, *gradients)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, batch: Batch, *tensors: Tensor) -> tuple[Tensor, ...]:
        from caged.graph.kernels.triton_triples import triple_scores

        ctx.batch = batch
        ctx.save_for_backward(*tensors)
        found: tuple[Tensor, ...] = triple_scores(tensors[:4], tensors[4:], batch)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        from caged.graph.kernels.triton_triples import triple_gradients

        tables, heads = ctx.saved_tensors[:4], ctx.saved_tensors[4:]
        return (None, *triple_gradients(tables, heads, ctx.batch, *slopes))
