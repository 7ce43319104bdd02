# mypy: ignore-errors
"""Triton kernels on edges and on the rows that they carry. Imported only where there is a CUDA device: Triton comes
with CUDA builds of torch."""

import torch
import triton
import triton.language as tl

# One warp holds whole rows of a tile of edges x columns, so a product needs no memory that threads share. Edges come by
# user, so the row of the user is in the cache nearest to the warp for all but the first of its edges.
TILE = 1024
CELL_TILE = 1024  # cells of a dense matrix per program


@triton.jit
def _edge_dots(
    out,
    left,
    right,
    left_rows,
    right_rows,
    count,
    width,
    COLUMNS: tl.constexpr,  # noqa: N803 - Triton writes compile-time constants in capitals
    EDGES: tl.constexpr,  # noqa: N803
):
    edge = tl.program_id(0).to(tl.int64) * EDGES + tl.arange(0, EDGES)
    real = edge < count
    left_row = tl.load(left_rows + edge, mask=real, other=0).to(tl.int64)
    right_row = tl.load(right_rows + edge, mask=real, other=0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    inside = real[:, None] & (column < width)[None, :]
    lefts = tl.load(left + left_row[:, None] * width + column[None, :], mask=inside, other=0.0).to(tl.float32)
    rights = tl.load(right + right_row[:, None] * width + column[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(out + edge, tl.sum(lefts * rights, axis=1), mask=real)


def edge_dots(left, right, left_rows, right_rows):
    """out[e] = left[left_rows[e]] . right[right_rows[e]], in float32; both tables are contiguous."""
    count, width = len(left_rows), left.shape[1]
    out = torch.empty(count, dtype=torch.float32, device=left.device)
    columns = triton.next_power_of_2(width)
    edges = max(1, min(TILE // columns, 16))
    _edge_dots[(triton.cdiv(count, edges),)](
        out, left, right, left_rows, right_rows, count, width, COLUMNS=columns, EDGES=edges, num_warps=1
    )
    return out


@triton.jit
def _read_cells(out, matrix, cells, count, TILE: tl.constexpr):  # noqa: N803
    edge = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    real = edge < count
    cell = tl.load(cells + edge, mask=real, other=0).to(tl.int64)
    tl.store(out + edge, tl.load(matrix + cell, mask=real, other=0.0).to(tl.float32), mask=real)


@triton.jit
def _write_cells(matrix, values, cells, count, TILE: tl.constexpr):  # noqa: N803
    edge = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    real = edge < count
    cell = tl.load(cells + edge, mask=real, other=0).to(tl.int64)
    value = tl.load(values + edge, mask=real, other=0.0)
    tl.store(matrix + cell, value.to(matrix.dtype.element_ty), mask=real)


def read_cells(matrix, cells):
    """matrix.view(-1)[cells] in float32, in one pass."""
    out = torch.empty(len(cells), dtype=torch.float32, device=matrix.device)
    _read_cells[(triton.cdiv(len(cells), CELL_TILE),)](out, matrix, cells, len(cells), TILE=CELL_TILE)
    return out


def write_cells(matrix, cells, values):
    """matrix.view(-1)[cells] = values, rounded on the way."""
    _write_cells[(triton.cdiv(len(cells), CELL_TILE),)](matrix, values, cells, len(cells), TILE=CELL_TILE)


@triton.jit
def _row(hidden, start, rho, place, inside, EPSILON: tl.constexpr, UNIT: tl.constexpr):  # noqa: N803
    """A row of x = hidden + rho start, with `UNIT` divided by its length, and one over that length."""
    row = tl.load(hidden + place, mask=inside, other=0.0) + rho * tl.load(start + place, mask=inside, other=0.0)
    scale = 1.0 / tl.maximum(tl.sqrt(tl.sum(row * row, axis=0)), EPSILON)
    if UNIT:
        row *= scale
    return row, scale


@triton.jit
def _source_rows(
    scored,
    sent,
    residual,
    hidden,
    start,
    uniform,
    keep,
    rho,
    noise,
    width,
    COLUMNS: tl.constexpr,  # noqa: N803
    EPSILON: tl.constexpr,  # noqa: N803
    UNIT: tl.constexpr,  # noqa: N803
    NOISY: tl.constexpr,  # noqa: N803
    DROPPED: tl.constexpr,  # noqa: N803
    RESIDUAL: tl.constexpr,  # noqa: N803
):
    column = tl.arange(0, COLUMNS)
    inside = column < width
    place = tl.program_id(0).to(tl.int64) * width + column
    row, _ = _row(hidden, start, rho, place, inside, EPSILON, UNIT)
    moved = row
    if NOISY:
        push = tl.load(uniform + place, mask=inside, other=0.0)
        push *= noise / tl.maximum(tl.sqrt(tl.sum(push * push, axis=0)), EPSILON)
        moved = row + tl.where(row > 0, push, tl.where(row < 0, -push, 0.0))
    tl.store(scored + place, moved, mask=inside)
    if DROPPED:
        tl.store(sent + place, moved * tl.load(keep + place, mask=inside, other=0).to(tl.float32), mask=inside)
    if RESIDUAL:
        tl.store(residual + place, rho * (row - tl.load(start + place, mask=inside, other=0.0)), mask=inside)


@triton.jit
def _source_row_gradients(
    to_hidden,
    to_start,
    of_scored,
    of_sent,
    of_residual,
    hidden,
    start,
    keep,
    rho,
    width,
    COLUMNS: tl.constexpr,  # noqa: N803
    EPSILON: tl.constexpr,  # noqa: N803
    UNIT: tl.constexpr,  # noqa: N803
    DROPPED: tl.constexpr,  # noqa: N803
    RESIDUAL: tl.constexpr,  # noqa: N803
):
    column = tl.arange(0, COLUMNS)
    inside = column < width
    place = tl.program_id(0).to(tl.int64) * width + column
    row, scale = _row(hidden, start, rho, place, inside, EPSILON, UNIT)
    gradient = tl.load(of_scored + place, mask=inside, other=0.0)
    if DROPPED:
        kept = tl.load(keep + place, mask=inside, other=0).to(tl.float32)
        gradient += kept * tl.load(of_sent + place, mask=inside, other=0.0)
    if RESIDUAL:
        back = rho * tl.load(of_residual + place, mask=inside, other=0.0)
        gradient += back
    if UNIT:
        gradient = scale * (gradient - row * tl.sum(row * gradient, axis=0))
    tl.store(to_hidden + place, gradient, mask=inside)
    if RESIDUAL:
        tl.store(to_start + place, rho * gradient - back, mask=inside)


def source_rows(hidden, start, uniform, keep, *, rho, noise, unit, epsilon):
    """Rows (scored, sent, residual) of `models/apda/rows.py`; what is not asked for is None."""
    scored = torch.empty_like(hidden)
    sent = None if keep is None else torch.empty_like(hidden)
    residual = torch.empty_like(hidden) if rho else None
    _source_rows[(len(hidden),)](
        scored,
        scored if sent is None else sent,  # a tensor stands in for one that is neither read nor written
        scored if residual is None else residual,
        hidden,
        start,
        hidden if uniform is None else uniform,
        hidden if keep is None else keep.view(torch.uint8),
        rho,
        noise,
        hidden.shape[1],
        **_row_tile(hidden, epsilon, unit, keep, rho),
        NOISY=uniform is not None,
    )
    return scored, sent, residual


def source_row_gradients(gradients, hidden, start, keep, *, rho, unit, epsilon):
    """Gradients with respect to `hidden` and, with residuals, `start`, from those of what `source_rows` gave."""
    of_scored, of_sent, of_residual = gradients
    to_hidden = torch.empty_like(hidden)
    to_start = torch.empty_like(hidden) if rho else None
    _source_row_gradients[(len(hidden),)](
        to_hidden,
        to_hidden if to_start is None else to_start,
        of_scored,
        of_scored if keep is None else of_sent,
        of_scored if to_start is None else of_residual,
        hidden,
        start,
        hidden if keep is None else keep.view(torch.uint8),
        rho,
        hidden.shape[1],
        **_row_tile(hidden, epsilon, unit, keep, rho),
    )
    return to_hidden, to_start


def _row_tile(hidden, epsilon, unit, keep, rho):
    columns = triton.next_power_of_2(hidden.shape[1])
    return {
        "COLUMNS": columns,
        "EPSILON": epsilon,
        "UNIT": unit,
        "DROPPED": keep is not None,
        "RESIDUAL": bool(rho),
        "num_warps": 1 if columns <= 256 else 4,
    }
