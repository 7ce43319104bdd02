# mypy: ignore-errors
"""Triton kernels. Imported only where there is a CUDA device: Triton comes with CUDA builds of torch."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

# Chunks are short and a program is a chain of dependent loads, so what counts is how many chunks are in flight: a
# program takes several of about the same length. Measured on one H200 on four graphs; one chunk per program is 1.1 to
# 1.2 times slower in float32, 1.3 to 1.8 times in bfloat16.
COLUMN_TILE = 64


class Tile(NamedTuple):
    """What a program takes."""

    chunks: int
    edges: int  # of each chunk at once
    warps: int


TILES = {torch.bfloat16: Tile(chunks=4, edges=1, warps=1), torch.float32: Tile(chunks=4, edges=2, warps=2)}


@triton.jit
def _weighted_rows(
    out,
    table,
    user_base,
    item_base,
    items,
    item_users,
    user_values,
    item_values,
    received,
    chunk_row,
    chunk_start,
    chunk_length,
    chunk_kind,
    flags,
    base_scale,
    table_scale,
    user_count,
    user_chunks,
    chunk_count,
    width,
    CHUNKS: tl.constexpr,  # noqa: N803 - Triton writes compile-time constants in capitals
    COLUMNS: tl.constexpr,  # noqa: N803
    EDGES: tl.constexpr,  # noqa: N803
    BASED: tl.constexpr,  # noqa: N803
    WEIGHTED: tl.constexpr,  # noqa: N803
    FACTORED: tl.constexpr,  # noqa: N803
    FLAGGED: tl.constexpr,  # noqa: N803
):
    # Chunks of users come first; a program takes those of one side only, and reads the half of the pattern that is
    # theirs. Places in tables are int64: rows times columns pass 2^31.
    program = tl.program_id(0)
    user_programs = tl.cdiv(user_chunks, CHUNKS)
    of_users = program < user_programs
    chunk = program * CHUNKS + tl.where(of_users, 0, user_chunks - user_programs * CHUNKS) + tl.arange(0, CHUNKS)
    wanted = chunk < tl.where(of_users, user_chunks, chunk_count)
    neighbours = tl.where(of_users, items, item_users)
    first_source = tl.where(of_users, user_count, 0).to(tl.int64)  # in the stacked tables
    first_target = tl.where(of_users, 0, user_count).to(tl.int64)

    row = tl.load(chunk_row + chunk, mask=wanted, other=0).to(tl.int64)
    start = tl.load(chunk_start + chunk, mask=wanted, other=0).to(tl.int64)
    length = tl.load(chunk_length + chunk, mask=wanted, other=0).to(tl.int32)
    kind = tl.load(chunk_kind + chunk, mask=wanted, other=0)
    node = first_target + row
    if FLAGGED:
        wanted = wanted & (tl.load(flags + node, mask=wanted, other=0) != 0)
        length = tl.where(wanted, length, 0)
    longest = tl.max(length, axis=0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < width
    totals = tl.zeros((CHUNKS, EDGES, COLUMNS), dtype=tl.float32)  # summed over edges once, at the end
    for offset in range(0, longest, EDGES):
        number = offset + tl.arange(0, EDGES)
        edge = start[:, None] + number[None, :]
        real = number[None, :] < length[:, None]
        source = first_source + tl.load(neighbours + edge, mask=real, other=0).to(tl.int64)
        place = source[:, :, None] * width + column[None, None, :]
        rows = tl.load(table + place, mask=real[:, :, None] & inside[None, None, :], other=0.0).to(tl.float32)
        if WEIGHTED:
            weight = tl.load(tl.where(of_users, user_values, item_values) + edge, mask=real, other=0.0)
            rows *= weight[:, :, None]
        totals += rows
    total = table_scale * tl.sum(totals, axis=1)
    if FACTORED:
        total *= tl.load(received + node, mask=wanted, other=0.0)[:, None]
    inside = wanted[:, None] & inside[None, :]
    if BASED:
        begins = inside & (kind != 2)[:, None]  # a later chunk of a row adds its sum only
        base = tl.where(of_users, user_base, item_base)
        total += base_scale * tl.load(base + row[:, None] * width + column[None, :], mask=begins, other=0.0)
    place = node[:, None] * width + column[None, :]
    tl.store(out + place, total, mask=inside & (kind == 0)[:, None])
    tl.atomic_add(out + place, total, mask=inside & (kind != 0)[:, None], sem="relaxed")


def add_weighted_rows(base, base_scale, table, table_scale, layout, *, values=None, received=None, rows=None):
    """base_scale * base[x] + table_scale * sum over the edges of x of weight * table[source], (M + N, K) in float32.

    `table` is stacked, users first, in bfloat16 or float32; `base` is a pair of tables, or None. `values` are the
    weights of the edges of users and of items, each in the order of its side; none stand for one. `received` (M + N,)
    multiplies the sum of a row. `rows` are flags per row; a row without one stays zero.
    """
    width = table.shape[1]
    columns = min(triton.next_power_of_2(width), COLUMN_TILE)
    chunk_count, user_chunks = len(layout.chunks.row), layout.user_chunks
    tile = TILES[table.dtype]
    programs = triton.cdiv(user_chunks, tile.chunks) + triton.cdiv(chunk_count - user_chunks, tile.chunks)
    out = torch.zeros(table.shape, device=table.device)
    based = base is not None and base_scale != 0
    _weighted_rows[(programs, triton.cdiv(width, columns))](
        out,
        table,
        *(base if based else (out, out)),  # a tensor stands in for one that is never read
        layout.items,
        layout.item_users,
        *((out, out) if values is None else values),
        out if received is None else received,
        *layout.chunks,
        out if rows is None else rows,
        base_scale,
        table_scale,
        layout.user_count,
        user_chunks,
        chunk_count,
        width,
        CHUNKS=tile.chunks,
        COLUMNS=columns,
        EDGES=tile.edges,
        BASED=based,
        WEIGHTED=values is not None,
        FACTORED=received is not None,
        FLAGGED=rows is not None,
        num_warps=tile.warps,
    )
    return out
