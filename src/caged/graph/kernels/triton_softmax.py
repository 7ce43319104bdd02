# mypy: ignore-errors
"""Triton kernels around the matrix products of a sampled softmax over the positives of a batch.

Three passes, and between them products that a library does best: unit rows of a batch with everything that belongs to
one triple; logits into their gradient, rows of a block at once; gradients of unit rows into full-size tables. Imported
only where there is a CUDA device, as all of Triton.
"""

import torch
import triton
import triton.language as tl

from caged.graph.kernels.triton_triples import _add_penalty, _half_squares, _places, _tile, _zeros_like

CELLS = 8192  # logits that one program holds: whole rows of them


@triton.jit
def _unit_pair(users, items, u, i, inside):
    """The rows of a user and an item, and one over their lengths; 0 for a zero row, so that cosines with it are 0."""
    user = tl.load(users + u, mask=inside, other=0.0)
    item = tl.load(items + i, mask=inside, other=0.0)
    user_square = tl.sum(user * user, axis=0)
    item_square = tl.sum(item * item, axis=0)
    user_inverse = tl.where(user_square > 0.0, 1.0 / tl.sqrt(user_square), 0.0)
    item_inverse = tl.where(item_square > 0.0, 1.0 / tl.sqrt(item_square), 0.0)
    return user * user_inverse, item * item_inverse, user_inverse, item_inverse


@triton.jit
def _unit_rows(
    users,
    items,
    user_rows,
    item_rows,
    user_of,
    positive_of,
    negative_of,
    weight_of,
    log_shares,
    drawn,
    queries,
    candidates,
    own_of,
    bias_of,
    parts,
    per_temperature,
    corrected,
    COLUMNS: tl.constexpr,  # noqa: N803 - as Triton writes constants
    WIDTH: tl.constexpr,  # noqa: N803
):
    triple = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(weight_of + triple)
    u, i, j = _places(user_of + triple, positive_of + triple, negative_of + triple, column, WIDTH)
    user, positive, _, _ = _unit_pair(users, items, u, i, inside)
    query = user * per_temperature
    place = triple.to(tl.int64) * WIDTH + column
    tl.store(queries + place, query.to(queries.dtype.element_ty), mask=inside)
    tl.store(candidates + place, positive.to(candidates.dtype.element_ty), mask=inside)
    item = tl.load(positive_of + triple)
    bias = tl.load(log_shares + item) * corrected
    tl.store(own_of + triple, tl.sum(query * positive, axis=0) + bias)
    is_candidate = (weight != 0.0) & (tl.load(drawn + item) != 0)
    tl.store(bias_of + triple, tl.where(is_candidate, bias, float("-inf")))
    if weight != 0.0:
        half_squares = _half_squares(user_rows, item_rows, u, i, j, inside)
        tl.atomic_add(parts + 1, (weight * half_squares).to(tl.float64), sem="relaxed")


@triton.jit
def _slopes_of_logits(
    logits,
    slopes,
    own_of,
    bias_of,
    key_of,
    weight_of,
    own_slope_of,
    parts,
    first_row,
    row_count,
    first_candidate,
    candidate_count,
    ROWS: tl.constexpr,  # noqa: N803
    COLUMNS: tl.constexpr,  # noqa: N803
):
    """weight_b p_bc of a block of rows and all candidates of its chunk, and what belongs to the rows' own positives."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    real_row = row < row_count
    real_column = column < candidate_count
    inside = real_row[:, None] & real_column[None, :]
    cell = row.to(tl.int64)[:, None] * candidate_count + column[None, :]
    bias = tl.load(bias_of + first_candidate + column, mask=real_column, other=float("-inf"))
    candidate = tl.load(key_of + first_candidate + column, mask=real_column, other=-1)
    key = tl.load(key_of + first_row + row, mask=real_row, other=-2)
    own = tl.load(own_of + first_row + row, mask=real_row, other=0.0)
    weight = tl.load(weight_of + first_row + row, mask=real_row, other=0.0)
    logit = tl.load(logits + cell, mask=inside, other=0.0) + bias[None, :]
    logit = tl.where(candidate[None, :] == key[:, None], float("-inf"), logit)
    largest = tl.maximum(tl.max(logit, axis=1), own)  # finite: own is
    share = tl.exp(logit - largest[:, None])
    own_share = tl.exp(own - largest)
    total = tl.sum(share, axis=1) + own_share
    slope = weight / total
    tl.store(slopes + cell, (share * slope[:, None]).to(slopes.dtype.element_ty), mask=inside)
    tl.store(own_slope_of + first_row + row, own_share * slope - weight, mask=real_row)
    loss = weight * (tl.log(total) + largest - own)
    tl.atomic_add(parts, tl.sum(loss, axis=0).to(tl.float64), sem="relaxed")


@triton.jit
def _table_gradients(
    users,
    items,
    user_rows,
    item_rows,
    user_of,
    positive_of,
    negative_of,
    weight_of,
    to_queries,
    to_candidates,
    own_slope_of,
    user_gradient,
    item_gradient,
    user_row_gradient,
    item_row_gradient,
    ranking_scale,
    penalty_scale,
    per_temperature,
    COLUMNS: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
):
    triple = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(weight_of + triple)
    if weight != 0.0:  # padding is no candidate either
        u, i, j = _places(user_of + triple, positive_of + triple, negative_of + triple, column, WIDTH)
        user, positive, user_inverse, item_inverse = _unit_pair(users, items, u, i, inside)
        place = triple.to(tl.int64) * WIDTH + column
        own_slope = tl.load(own_slope_of + triple)
        scale = tl.load(ranking_scale)
        to_user = tl.load(to_queries + place, mask=inside, other=0.0) + own_slope * positive
        to_user *= scale * per_temperature
        to_positive = tl.load(to_candidates + place, mask=inside, other=0.0) + own_slope * per_temperature * user
        to_positive *= scale
        # What lies along a unit row would change its length only.
        to_user = user_inverse * (to_user - user * tl.sum(user * to_user, axis=0))
        to_positive = item_inverse * (to_positive - positive * tl.sum(positive * to_positive, axis=0))
        tl.atomic_add(user_gradient + u, to_user, mask=inside, sem="relaxed")
        tl.atomic_add(item_gradient + i, to_positive, mask=inside, sem="relaxed")
        penalty = tl.load(penalty_scale) * weight
        _add_penalty(user_rows, item_rows, user_row_gradient, item_row_gradient, u, i, j, inside, penalty)


def unit_rows_of(tables, batch, log_shares, drawn, parts, *, temperature, gamma, operands):
    """Queries (unit rows of users over the temperature) and candidates (of positives) as `operands`, own logits and
    biases, (B,); adds the l2 penalty to `parts[1]`. `tables` = propagated users, items, layer-0 users, items."""
    count, width = len(batch.users), tables[0].shape[1]
    device = batch.weight.device
    queries, candidates = (torch.empty(count, width, dtype=operands, device=device) for _ in range(2))
    own, bias = (torch.empty(count, device=device) for _ in range(2))
    _unit_rows[(count,)](
        *tables,
        *batch,
        log_shares,
        drawn.view(torch.uint8),
        queries,
        candidates,
        own,
        bias,
        parts,
        1.0 / temperature,
        gamma - 1.0,
        **_tile(width),
    )
    return queries, candidates, own, bias


def slopes_of_logits(logits, slopes, own, bias, batch, own_slopes, parts, rows, chunk):
    """`slopes` <- weight_b p_bc of the logits of `rows` against `chunk`, both slices of the batch.

    Also the `own_slopes` of these rows, and their loss, which is added to `parts[0]`.
    """
    row_count, candidate_count = logits.shape
    columns = triton.next_power_of_2(candidate_count)
    tile = max(1, min(CELLS // columns, 8))
    _slopes_of_logits[(triton.cdiv(row_count, tile),)](
        logits,
        slopes,
        own,
        bias,
        batch.positives,
        batch.weight,
        own_slopes,
        parts,
        rows.start,
        row_count,
        chunk.start,
        candidate_count,
        ROWS=tile,
        COLUMNS=columns,
        num_warps=8,
    )


def table_gradients(tables, batch, to_queries, to_candidates, own_slopes, ranking, penalty, *, temperature):
    """Of ranking * softmax + penalty * l2, with respect to the four tables; the scales are device scalars."""
    gradients = _zeros_like(tables)
    _table_gradients[(len(batch.users),)](
        *tables,
        *batch,
        to_queries,
        to_candidates,
        own_slopes,
        *gradients,
        ranking,
        penalty,
        1.0 / temperature,
        **_tile(tables[0].shape[1]),
    )
    return gradients
