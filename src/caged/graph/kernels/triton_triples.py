# mypy: ignore-errors
"""Triton kernels over the triples of a batch: scores, the loss of LightGCN, and their gradients.

One program per triple reads its rows from the tables and adds its gradients to full-size tables, so that no (B, K) rows
are ever gathered or scattered by themselves. Imported only where there is a CUDA device, as all of Triton.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _places(user_of, positive_of, negative_of, column, WIDTH: tl.constexpr):  # noqa: N803 - as Triton writes constants
    """Where the rows of a triple lie in the tables; the pointers are those of this triple."""
    u = tl.load(user_of).to(tl.int64) * WIDTH + column
    i = tl.load(positive_of).to(tl.int64) * WIDTH + column
    j = tl.load(negative_of).to(tl.int64) * WIDTH + column
    return u, i, j


@triton.jit
def _rows_of(users, items, u, i, j, inside):
    user = tl.load(users + u, mask=inside, other=0.0)
    positive = tl.load(items + i, mask=inside, other=0.0)
    negative = tl.load(items + j, mask=inside, other=0.0)
    return user, positive, negative


@triton.jit
def _half_squares(users, items, u, i, j, inside):
    user, positive, negative = _rows_of(users, items, u, i, j, inside)
    return 0.5 * tl.sum(user * user + positive * positive + negative * negative, axis=0)


@triton.jit
def _add_penalty(users, items, user_gradient, item_gradient, u, i, j, inside, scale):
    user, positive, negative = _rows_of(users, items, u, i, j, inside)
    tl.atomic_add(user_gradient + u, scale * user, mask=inside, sem="relaxed")
    tl.atomic_add(item_gradient + i, scale * positive, mask=inside, sem="relaxed")
    tl.atomic_add(item_gradient + j, scale * negative, mask=inside, sem="relaxed")


# ------------------------------------------------------------------------------------------- the loss of LightGCN


@triton.jit
def _bpr_triples(
    users,
    items,
    user_rows,
    item_rows,
    user_of,
    positive_of,
    negative_of,
    weight_of,
    ranking_weight_of,
    parts,
    COLUMNS: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
):
    triple = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(weight_of + triple)
    if weight != 0.0:  # zero is padding
        u, i, j = _places(user_of + triple, positive_of + triple, negative_of + triple, column, WIDTH)
        user, positive, negative = _rows_of(users, items, u, i, j, inside)
        margin = tl.sum(user * (positive - negative), axis=0)
        loss = tl.maximum(-margin, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(margin)))  # softplus(-margin)
        penalty = _half_squares(user_rows, item_rows, u, i, j, inside)
        tl.atomic_add(parts, (tl.load(ranking_weight_of + triple) * loss).to(tl.float64), sem="relaxed")
        tl.atomic_add(parts + 1, (weight * penalty).to(tl.float64), sem="relaxed")


@triton.jit
def _bpr_gradients(
    users,
    items,
    user_rows,
    item_rows,
    user_of,
    positive_of,
    negative_of,
    weight_of,
    ranking_weight_of,
    user_gradient,
    item_gradient,
    user_row_gradient,
    item_row_gradient,
    ranking_scale,
    penalty_scale,
    COLUMNS: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
):
    triple = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(weight_of + triple)
    if weight != 0.0:
        u, i, j = _places(user_of + triple, positive_of + triple, negative_of + triple, column, WIDTH)
        user, positive, negative = _rows_of(users, items, u, i, j, inside)
        margin = tl.sum(user * (positive - negative), axis=0)
        ranking_weight = tl.load(ranking_weight_of + triple)
        slope = -tl.load(ranking_scale) * ranking_weight / (1.0 + tl.exp(margin))  # of softplus(-margin)
        tl.atomic_add(user_gradient + u, slope * (positive - negative), mask=inside, sem="relaxed")
        tl.atomic_add(item_gradient + i, slope * user, mask=inside, sem="relaxed")
        tl.atomic_add(item_gradient + j, -slope * user, mask=inside, sem="relaxed")
        scale = tl.load(penalty_scale) * weight
        _add_penalty(user_rows, item_rows, user_row_gradient, item_row_gradient, u, i, j, inside, scale)


def bpr_parts(tables, batch, ranking_weight):
    """(bpr weighted by `ranking_weight`, l2 penalty) of a batch.

    `tables` = propagated users, items, layer-0 users, items.
    """
    parts = sums(2, batch.weight.device)
    _bpr_triples[(len(batch.users),)](*tables, *batch, ranking_weight, parts, **_tile(tables[0].shape[1]))
    return parts.float()


def bpr_gradients(tables, batch, ranking_weight, ranking, penalty):
    """Gradients of ranking * bpr + penalty * l2 with respect to the four tables; the scales are device scalars."""
    gradients = _zeros_like(tables)
    _bpr_gradients[(len(batch.users),)](
        *tables, *batch, ranking_weight, *gradients, ranking, penalty, **_tile(tables[0].shape[1])
    )
    return gradients


# ------------------------------------------------------------------------------------------- scores, for other losses


@triton.jit
def _triple_scores(
    users,
    items,
    user_rows,
    item_rows,
    user_head,
    item_head,
    user_of,
    positive_of,
    negative_of,
    weight_of,
    pairs,
    of_users,
    of_items,
    penalty,
    triples,
    HEADS: tl.constexpr,  # noqa: N803
    COLUMNS: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
):
    triple = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(weight_of + triple)
    u, i, j = _places(user_of + triple, positive_of + triple, negative_of + triple, column, WIDTH)
    user, positive, negative = _rows_of(users, items, u, i, j, inside)
    tl.store(pairs + triple, tl.sum(user * positive, axis=0))
    tl.store(pairs + triples + triple, tl.sum(user * negative, axis=0))
    if HEADS:
        to_users = tl.load(user_head + column, mask=inside, other=0.0)
        to_items = tl.load(item_head + column, mask=inside, other=0.0)
        tl.store(of_users + triple, tl.sum(user * to_users, axis=0))
        tl.store(of_items + triple, tl.sum(positive * to_items, axis=0))
        tl.store(of_items + triples + triple, tl.sum(negative * to_items, axis=0))
    if weight != 0.0:
        half_squares = _half_squares(user_rows, item_rows, u, i, j, inside)
        tl.atomic_add(penalty, (weight * half_squares).to(tl.float64), sem="relaxed")


@triton.jit
def _triple_gradients(
    users,
    items,
    user_rows,
    item_rows,
    user_head,
    item_head,
    user_of,
    positive_of,
    negative_of,
    weight_of,
    user_gradient,
    item_gradient,
    user_row_gradient,
    item_row_gradient,
    user_slopes,
    item_slopes,
    pair_slope_of,
    user_slope_of,
    item_slope_of,
    penalty_scale,
    triples,
    HEADS: tl.constexpr,  # noqa: N803
    COLUMNS: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
):
    triple = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(weight_of + triple)
    if weight != 0.0:
        u, i, j = _places(user_of + triple, positive_of + triple, negative_of + triple, column, WIDTH)
        user, positive, negative = _rows_of(users, items, u, i, j, inside)
        of_positive = tl.load(pair_slope_of + triple)
        of_negative = tl.load(pair_slope_of + triples + triple)
        to_user = of_positive * positive + of_negative * negative
        to_positive = of_positive * user
        to_negative = of_negative * user
        if HEADS:
            user_slope = tl.load(user_slope_of + triple)
            positive_slope = tl.load(item_slope_of + triple)
            negative_slope = tl.load(item_slope_of + triples + triple)
            to_user += user_slope * tl.load(user_head + column, mask=inside, other=0.0)
            head = tl.load(item_head + column, mask=inside, other=0.0)
            to_positive += positive_slope * head
            to_negative += negative_slope * head
            tl.atomic_add(user_slopes + tl.load(user_of + triple), user_slope, sem="relaxed")
            tl.atomic_add(item_slopes + tl.load(positive_of + triple), positive_slope, sem="relaxed")
            tl.atomic_add(item_slopes + tl.load(negative_of + triple), negative_slope, sem="relaxed")
        tl.atomic_add(user_gradient + u, to_user, mask=inside, sem="relaxed")
        tl.atomic_add(item_gradient + i, to_positive, mask=inside, sem="relaxed")
        tl.atomic_add(item_gradient + j, to_negative, mask=inside, sem="relaxed")
        scale = tl.load(penalty_scale) * weight
        _add_penalty(user_rows, item_rows, user_row_gradient, item_row_gradient, u, i, j, inside, scale)


def triple_scores(tables, heads, batch):
    """Scores of positives and negatives, (2, B), then the l2 penalty.

    With `heads` (b, a), each (K,), b.e_u, (B,), and a.e_i and a.e_j, (2, B), come between them.
    """
    count, device = len(batch.users), batch.weight.device
    pairs, of_items = torch.empty(2, count, device=device), torch.empty(2 if heads else 0, count, device=device)
    of_users, penalty = torch.empty(count if heads else 0, device=device), sums(1, device)
    _triple_scores[(count,)](
        *tables,
        *(heads or tables[:2]),  # never read where there are no heads
        *batch,
        pairs,
        of_users,
        of_items,
        penalty,
        count,
        HEADS=bool(heads),
        **_tile(tables[0].shape[1]),
    )
    penalty = penalty.squeeze(0).float()
    return (pairs, of_users, of_items, penalty) if heads else (pairs, penalty)


def triple_gradients(tables, heads, batch, *slopes):
    """Gradients of the four tables and of the heads; `slopes` are those of what `triple_scores` returns.

    They have to be zero where a triple is padding.
    """
    gradients = _zeros_like([*tables, *(table[:, 0] for table in tables[:2] if heads)])
    node_slopes = gradients[4:]
    pairs, *of_heads, penalty = (slope.contiguous() for slope in slopes)
    _triple_gradients[(len(batch.users),)](
        *tables,
        *(heads or tables[:2]),
        *batch,
        *gradients[:4],
        *(node_slopes or tables[:2]),
        pairs,
        *(of_heads or tables[:2]),
        penalty,
        len(batch.users),
        HEADS=bool(heads),
        **_tile(tables[0].shape[1]),
    )
    # A head's gradient is the sum of the rows that it met, each by its slope: one product per table.
    of_the_heads = [node_slopes[side] @ tables[side] for side in range(len(node_slopes))]
    return [*gradients[:4], *of_the_heads]


def sums(count, device):
    """Zeros to add to, one triple at a time. In float32 a sum near 1 has no room for a part of 1 / 5,000,000."""
    return torch.zeros(count, dtype=torch.float64, device=device)


def _zeros_like(tensors):
    """Zeros of these shapes, by one fill."""
    sizes = [tensor.numel() for tensor in tensors]
    zeros = torch.zeros(sum(sizes), device=tensors[0].device)
    return [part.view(tensor.shape) for part, tensor in zip(zeros.split(sizes), tensors, strict=True)]


def _tile(width):
    columns = triton.next_power_of_2(width)
    return {"COLUMNS": columns, "WIDTH": width, "num_warps": 4 if columns >= 128 else 1}
