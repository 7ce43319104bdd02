"""Propagation on CUDA: one sparse kernel for both directions, or dense products on the tensor cores.

Sparse. The graph is one (M+N) x (M+N) matrix over the stacked tables, so a layer is one launch. Rows are cut into
chunks of at most `CHUNK` edges, which keeps a popular item from being one long tail; chunks of a cut row meet in
atomic additions, whose order is not fixed, so results agree to rounding between runs. The floor of a layer is reading
the rows of both tables once per edge: 2 E K bytes-per-number through the L2 cache. A batch reads few rows of the
result, so the last product of a forward pass may leave out the others. (The first product of a backward pass could skip
their zeros, but asking for each edge costs as much as it saves: measured, not kept.)

Dense. Both directions as padded M x N matrices in bfloat16 (or float32 on TF32 cores), accumulated in float32. It
wins where the graph is small and dense: the floor is 4 M N K flops per layer, at a rate far above that of gathers. The
two directions are independent and neither fills the chip, so they run side by side on two streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from caged.graph.operators import Tables

if TYPE_CHECKING:
    from caged.graph.pattern import BipartiteGraph

CHUNK = 64  # edges per program; measured on one H200: 512 is 1.1 to 1.7 times slower
PADDING = 64  # rows and columns of dense matrices come in multiples of this, for aligned tensor-core tiles


class SparseLayout:
    """The stacked pattern: node ids 0..M-1 are users, M..M+N-1 items; edges of users first, then those of items."""

    def __init__(self, graph: BipartiteGraph) -> None:
        users, items = graph.user_count, graph.item_count
        self.node_count = users + items
        self.sources = torch.cat((graph.items + users, graph.item_users))
        offsets = torch.cat((graph.user_offsets, graph.item_offsets[1:] + graph.edge_count)).long()
        degrees = offsets.diff()
        chunks = ((degrees + CHUNK - 1) // CHUNK).clamp(min=1)  # a row without edges is written too
        row = torch.repeat_interleave(torch.arange(self.node_count, device=graph.device), chunks)
        number = torch.arange(len(row), device=graph.device) - (chunks.cumsum(0) - chunks)[row]
        start = offsets[row] + number * CHUNK
        end = torch.minimum(start + CHUNK, offsets[row + 1])
        kind = (chunks > 1)[row].int() + (number > 0).int()  # 0: a whole row, 1: the first of a cut row, 2: a later one
        # Programs take chunks of about one length; chunks of users stay before those of items.
        order = torch.argsort((end - start) + (CHUNK + 1) * (row < users).long(), descending=True, stable=True)
        self.chunk_row, self.chunk_start, self.chunk_end = row[order], start[order], end[order]
        self.chunk_kind = kind[order].to(torch.int32)


class SparseOperator:
    """W and its transpose as values on the stacked pattern."""

    skips_rows = True

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor, precision: str) -> None:
        self._layout = graph.sparse_layout
        self._by_item = graph.by_item
        self._table_type = torch.float32 if precision in ("float32", "tf32") else torch.bfloat16
        self._forward = to_user.new_empty(2 * graph.edge_count)
        self._transposed = torch.empty_like(self._forward)
        self.assign(to_user, to_item)

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        edges = len(to_user)
        self._forward[:edges] = to_user
        self._forward[edges:] = to_item.index_select(0, self._by_item)
        self._transposed[:edges] = to_item
        self._transposed[edges:] = to_user.index_select(0, self._by_item)

    def apply(
        self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool, rows: Tensor | None = None
    ) -> Tables:
        values = self._transposed if transposed else self._forward
        stacked = torch.cat(tables)
        *lower, scale = layer_weights
        hidden = stacked if lower else stacked * scale
        for layer in range(len(lower) - 1, -1, -1):
            # Only the last product of a forward pass may leave rows out.
            wanted = rows if layer == 0 and not transposed else None
            table = hidden.to(self._table_type)
            hidden = _products(stacked, lower[layer], table, scale, values, self._layout, wanted)
            scale = 1.0
        return Tables(hidden[: len(tables.users)], hidden[len(tables.users) :])


class DenseOperator:
    """W and its transpose as two padded dense matrices."""

    skips_rows = False  # a batch touches most rows of a graph that is dense enough for this form

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor, precision: str) -> None:
        table_type = torch.float32 if precision in ("float32", "tf32") else torch.bfloat16
        self._tf32 = precision == "tf32"
        self._shape = (graph.user_count, graph.item_count)
        self._users, self._items = graph.users.long(), graph.items.long()
        padded = [-(-count // PADDING) * PADDING for count in self._shape]
        self._to_user = torch.zeros(padded[0], padded[1], device=graph.device, dtype=table_type)
        self._to_item = torch.zeros(padded[1], padded[0], device=graph.device, dtype=table_type)
        self._side = torch.cuda.Stream(graph.device)
        self._buffers: dict[int, tuple[Tables, Tables]] = {}
        self.assign(to_user, to_item)

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        self._to_user[self._users, self._items] = to_user.to(self._to_user.dtype)
        self._to_item[self._items, self._users] = to_item.to(self._to_item.dtype)

    def apply(
        self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool, rows: Tensor | None = None
    ) -> Tables:
        *lower, last = layer_weights
        if not lower:
            return Tables(tables.users * last, tables.items * last)
        to_user = self._to_item.T if transposed else self._to_user  # (M, N), padded
        to_item = self._to_user.T if transposed else self._to_item  # (N, M), padded
        width = tables.users.shape[1]
        buffers = self._buffers_for(width)
        if self._tf32 != torch.backends.cuda.matmul.allow_tf32:
            torch.backends.cuda.matmul.allow_tf32 = self._tf32
        # Allocated here, on the stream that outlives the call; the side stream only writes between fork and join.
        sums = Tables(tables.users.new_empty(len(to_user), width), tables.items.new_empty(len(to_item), width))
        main = torch.cuda.current_stream(tables.users.device)
        self._side.wait_stream(main)
        with torch.cuda.stream(self._side):
            torch.mul(tables.items, last, out=buffers[0].items[: self._shape[1]])
        torch.mul(tables.users, last, out=buffers[0].users[: self._shape[0]])
        for step, weight in enumerate(reversed(lower)):
            final = step == len(lower) - 1
            hidden, following = buffers[step % 2], buffers[(step + 1) % 2]
            main.wait_stream(self._side)
            self._side.wait_stream(main)
            with torch.cuda.stream(self._side):
                _step(to_item, hidden.users, sums.items, tables.items, weight, None if final else following.items)
            _step(to_user, hidden.items, sums.users, tables.users, weight, None if final else following.users)
        main.wait_stream(self._side)
        return Tables(sums.users[: self._shape[0]], sums.items[: self._shape[1]])

    def _buffers_for(self, width: int) -> tuple[Tables, Tables]:
        """Two places for hidden rows, used in turn. Fixed: padding stays zero, and two streams share them."""
        if width not in self._buffers:
            rows = (len(self._to_user), len(self._to_item))

            def pair() -> Tables:
                return Tables(*(self._to_user.new_zeros(count, width) for count in rows))

            self._buffers[width] = (pair(), pair())
        return self._buffers[width]


def _step(matrix: Tensor, hidden: Tensor, sums: Tensor, table: Tensor, weight: float, following: Tensor | None) -> None:
    """matrix @ hidden + weight * table: in `sums` if it is the last layer, else rounded into `following`."""
    product = _product(matrix, hidden, sums)[: len(table)]
    torch.add(product, table, alpha=weight, out=product if following is None else following[: len(table)])


def _product(matrix: Tensor, table: Tensor, out: Tensor) -> Tensor:
    """matrix @ table into `out`, accumulated in float32."""
    if matrix.dtype == torch.float32:
        return torch.mm(matrix, table, out=out)
    return torch.mm(matrix, table, out_dtype=torch.float32, out=out)


def _products(
    base: Tensor,
    base_scale: float,
    table: Tensor,
    table_scale: float,
    values: Tensor,
    layout: SparseLayout,
    rows: Tensor | None,
) -> Tensor:
    """base_scale * base[r] + table_scale * sum over the edges of row r of values[e] * table[sources[e]]."""
    from caged.graph.kernels.triton_products import add_weighted_rows

    out: Tensor = add_weighted_rows(base, base_scale, table, table_scale, values, layout, rows)
    return out
