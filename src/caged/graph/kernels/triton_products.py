# mypy: ignore-errors
"""Triton kernels. Imported only where there is a CUDA device: Triton comes with CUDA builds of torch."""

import torch
import triton
import triton.language as tl

# Chunks are short and a program is a chain of dependent loads, so what counts is how many chunks are in flight: a
# program takes several of about the same length. Measured on one H200 on four graphs; one chunk per program is 1.1 to
# 1.2 times slower in float32, 1.3 to 1.8 times in bfloat16.
COLUMN_TILE = 64
CHUNKS_PER_PROGRAM = 4


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
    chunk_count,
    width,
    CHUNKS: tl.constexpr,  # noqa: N803 - Triton writes compile-time constants in capitals
    COLUMNS: tl.constexpr,  # noqa: N803
    EDGES: tl.constexpr,  # noqa: N803
    FLAGGED: tl.constexpr,  # noqa: N803
):
    chunk = tl.program_id(0) * CHUNKS + tl.arange(0, CHUNKS)
    wanted = chunk < chunk_count
    row = tl.load(chunk_row + chunk, mask=wanted, other=0)
    start = tl.load(chunk_start + chunk, mask=wanted, other=0)
    end = tl.load(chunk_end + chunk, mask=wanted, other=0)
    kind = tl.load(chunk_kind + chunk, mask=wanted, other=0)
    if FLAGGED:
        wanted = wanted & (tl.load(flags + row, mask=wanted, other=0) != 0)
        end = tl.where(wanted, end, start)
    longest = tl.max(end - start, axis=0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < width
    totals = tl.zeros((CHUNKS, EDGES, COLUMNS), dtype=tl.float32)  # summed over edges once, at the end
    for offset in range(0, longest, EDGES):
        edge = start[:, None] + offset + tl.arange(0, EDGES)[None, :]
        real = edge < end[:, None]
        source = tl.load(sources + edge, mask=real, other=0).to(tl.int64)
        weight = tl.load(values + edge, mask=real, other=0.0)
        place = source[:, :, None] * width + column[None, None, :]
        rows = tl.load(table + place, mask=real[:, :, None] & inside[None, None, :], other=0.0)
        totals += rows.to(tl.float32) * weight[:, :, None]
    total = table_scale * tl.sum(totals, axis=1)
    place = row[:, None] * width + column[None, :]
    inside = wanted[:, None] & inside[None, :]
    begins = inside & (kind != 2)[:, None]  # a later chunk of a row adds its sum only
    total += base_scale * tl.load(base + place, mask=begins, other=0.0)
    tl.store(out + place, total, mask=inside & (kind == 0)[:, None])
    tl.atomic_add(out + place, total, mask=inside & (kind != 0)[:, None], sem="relaxed")


def add_weighted_rows(base, base_scale, table, table_scale, values, layout, rows=None):
    """base_scale * base[r] + table_scale * sum over the edges e of row r of values[e] * table[sources[e]], in float32.

    `rows` are flags per row; a row without one stays zero.
    """
    width = table.shape[1]
    columns = min(triton.next_power_of_2(width), COLUMN_TILE)
    chunk_count = len(layout.chunk_row)
    half = table.dtype == torch.bfloat16
    out = torch.zeros_like(base)
    _weighted_rows[(triton.cdiv(chunk_count, CHUNKS_PER_PROGRAM), triton.cdiv(width, columns))](
        out,
        base,
        table,
        values,
        layout.sources,
        layout.chunk_row,
        layout.chunk_start,
        layout.chunk_end,
        layout.chunk_kind,
        base if rows is None else rows,  # never read where nothing is flagged
        base_scale,
        table_scale,
        chunk_count,
        width,
        CHUNKS=CHUNKS_PER_PROGRAM,
        COLUMNS=columns,
        EDGES=1 if half else 2,
        FLAGGED=rows is not None,
        num_warps=1 if half else 2,
    )
    return out
