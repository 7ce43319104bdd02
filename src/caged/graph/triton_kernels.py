# mypy: ignore-errors
"""Triton kernels. Imported only where there is a CUDA device: Triton comes with CUDA builds of torch."""

import torch
import triton
import triton.language as tl

# One warp holds whole rows of a tile of edges x columns, so summing over edges stays within a thread. Measured on one
# H200: four edges at a time are best at 128 columns, eight at 64.
COLUMN_TILE = 128
TILE = 512


@triton.jit
def _weighted_rows(
    out,
    base,
    table,
    values,
    sources,
    chunk_row,
    chunk_start,
    chunk_end,
    chunk_kind,
    flags,
    base_scale,
    table_scale,
    width,
    COLUMNS: tl.constexpr,  # noqa: N803 - Triton writes compile-time constants in capitals
    EDGES: tl.constexpr,  # noqa: N803
    ROWS_FLAGGED: tl.constexpr,  # noqa: N803
    SOURCES_FLAGGED: tl.constexpr,  # noqa: N803
):
    chunk = tl.program_id(0)
    row = tl.load(chunk_row + chunk)
    wanted = True
    if ROWS_FLAGGED:
        wanted = tl.load(flags + row) != 0
    if wanted:
        column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = column < width
        start = tl.load(chunk_start + chunk)
        end = tl.load(chunk_end + chunk)
        totals = tl.zeros((EDGES, COLUMNS), dtype=tl.float32)  # summed over edges once, at the end
        for first in range(start, end, EDGES):
            edge = first + tl.arange(0, EDGES)
            real = edge < end
            source = tl.load(sources + edge, mask=real, other=0).to(tl.int64)
            weight = tl.load(values + edge, mask=real, other=0.0)
            if SOURCES_FLAGGED:
                real = real & (tl.load(flags + source, mask=real, other=0) != 0)
            rows = tl.load(
                table + source[:, None] * width + column[None, :], mask=real[:, None] & inside[None, :], other=0.0
            )
            totals += rows.to(tl.float32) * weight[:, None]
        total = table_scale * tl.sum(totals, axis=0)
        place = row * width + column
        kind = tl.load(chunk_kind + chunk)
        if kind != 2:  # a later chunk adds its sum only
            total += base_scale * tl.load(base + place, mask=inside, other=0.0)
        if kind == 0:
            tl.store(out + place, total, mask=inside)
        else:
            tl.atomic_add(out + place, total, mask=inside, sem="relaxed")


def add_weighted_rows(base, base_scale, table, table_scale, values, layout, rows=None, sources=None):
    """base_scale * base[r] + table_scale * sum over the edges e of row r of values[e] * table[sources[e]], in float32.

    `rows` and `sources` are flags per node, at most one of them given: with `rows`, rows without a flag stay zero;
    with `sources`, rows of the table without a flag count as zero.
    """
    width = table.shape[1]
    columns = min(triton.next_power_of_2(width), COLUMN_TILE)
    grid = (len(layout.chunk_row), triton.cdiv(width, columns))
    out = torch.zeros_like(base)
    flags = rows if rows is not None else sources
    _weighted_rows[grid](
        out,
        base,
        table,
        values,
        layout.sources,
        layout.chunk_row,
        layout.chunk_start,
        layout.chunk_end,
        layout.chunk_kind,
        base if flags is None else flags,  # never read where nothing is flagged
        base_scale,
        table_scale,
        width,
        COLUMNS=columns,
        EDGES=min(TILE // columns, 16),
        ROWS_FLAGGED=rows is not None,
        SOURCES_FLAGGED=sources is not None,
        num_warps=1,
    )
    return out


@triton.jit
def _places(row, column, WIDTH: tl.constexpr):  # noqa: N803
    return tl.load(row).to(tl.int64) * WIDTH + column


@triton.jit
def _rows_of(users, items, u, i, j, inside):
    user = tl.load(users + u, mask=inside, other=0.0)
    positive = tl.load(items + i, mask=inside, other=0.0)
    negative = tl.load(items + j, mask=inside, other=0.0)
    return user, positive, negative


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
    parts,
    COLUMNS: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
):
    triple = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(weight_of + triple)
    if weight != 0.0:  # zero is padding
        u = _places(user_of + triple, column, WIDTH)
        i = _places(positive_of + triple, column, WIDTH)
        j = _places(negative_of + triple, column, WIDTH)
        user, positive, negative = _rows_of(users, items, u, i, j, inside)
        margin = tl.sum(user * (positive - negative), axis=0)
        loss = tl.maximum(-margin, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(margin)))  # softplus(-margin)
        user, positive, negative = _rows_of(user_rows, item_rows, u, i, j, inside)
        squares = tl.sum(user * user + positive * positive + negative * negative, axis=0)
        tl.atomic_add(parts, weight * loss, sem="relaxed")
        tl.atomic_add(parts + 1, 0.5 * weight * squares, sem="relaxed")


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
        u = _places(user_of + triple, column, WIDTH)
        i = _places(positive_of + triple, column, WIDTH)
        j = _places(negative_of + triple, column, WIDTH)
        user, positive, negative = _rows_of(users, items, u, i, j, inside)
        margin = tl.sum(user * (positive - negative), axis=0)
        slope = -tl.load(ranking_scale) * weight / (1.0 + tl.exp(margin))  # of softplus(-margin)
        tl.atomic_add(user_gradient + u, slope * (positive - negative), mask=inside, sem="relaxed")
        tl.atomic_add(item_gradient + i, slope * user, mask=inside, sem="relaxed")
        tl.atomic_add(item_gradient + j, -slope * user, mask=inside, sem="relaxed")
        scale = tl.load(penalty_scale) * weight
        user, positive, negative = _rows_of(user_rows, item_rows, u, i, j, inside)
        tl.atomic_add(user_row_gradient + u, scale * user, mask=inside, sem="relaxed")
        tl.atomic_add(item_row_gradient + i, scale * positive, mask=inside, sem="relaxed")
        tl.atomic_add(item_row_gradient + j, scale * negative, mask=inside, sem="relaxed")


def bpr_parts(tables, batch):
    """(bpr, l2 penalty) of a batch; `tables` = propagated users, items, layer-0 users, items."""
    parts = torch.zeros(2, device=batch.weight.device)
    _bpr_triples[(len(batch.users),)](*tables, *batch, parts, **_tile(tables[0].shape[1]))
    return parts


def bpr_gradients(tables, batch, ranking, penalty):
    """Gradients of ranking * bpr + penalty * l2 with respect to the four tables; the scales are device scalars."""
    width = tables[0].shape[1]
    sizes = [table.numel() for table in tables]
    zeros = torch.zeros(sum(sizes), device=batch.weight.device)  # one fill instead of four
    gradients = [part.view(-1, width) for part in zeros.split(sizes)]
    _bpr_gradients[(len(batch.users),)](*tables, *batch, *gradients, ranking, penalty, **_tile(width))
    return gradients


def _tile(width):
    columns = triton.next_power_of_2(width)
    return {"COLUMNS": columns, "WIDTH": width, "num_warps": 4 if columns >= 128 else 1}
