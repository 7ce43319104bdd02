"""Propagation on CUDA: one sparse kernel for both directions, or dense products on the tensor cores.

Sparse. A layer is one launch: programs of the rows of users first, then those of items, each reading its own half of
the pattern. Rows are cut into chunks of at most `CHUNK` edges, which keeps a popular item from being one long tail;
chunks of a cut row meet in atomic additions, whose order is not fixed, so results agree to rounding between runs. The
floor of a layer is reading the rows of both tables once per edge: 2 E K bytes-per-number. Weights that are factors of
nodes cost nothing per edge: sources are scaled where the table is rounded anyway, targets where sums are written. A
batch reads few rows of the result, so the last product of a forward pass may leave out the others. (The first product
of a backward pass could skip their zeros, but asking for each edge costs as much as it saves: measured, not kept.)

Dense. Both directions as padded M x N matrices in bfloat16 (or float32 on TF32 cores), accumulated in float32. It
wins where the graph is small and dense: the floor is 4 M N K flops per layer, at a rate far above that of gathers. The
two directions are independent and neither fills the chip, so they run side by side on two streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from caged.graph.operators import Factors, Tables

if TYPE_CHECKING:
    from caged.graph.pattern import BipartiteGraph

CHUNK = 64  # edges per program; measured on one H200: 512 is 1.1 to 1.7 times slower
WHOLE, FIRST, LATER = 0, 1, 2  # kinds of chunks: a row of its own, or the first or a later one of a row that is cut
PADDING = 64  # rows and columns of dense matrices come in multiples of this, for aligned tensor-core tiles


class Chunks(NamedTuple):
    """Pieces of rows of one side, or of users and then items."""

    row: Tensor  # of its side
    start: Tensor  # its first edge in the order of its side
    length: Tensor  # int8
    kind: Tensor  # int8


class SparseLayout:
    """The rows of users, then those of items, in chunks. It refers to the edges of the graph and copies none."""

    def __init__(self, graph: BipartiteGraph) -> None:
        self.user_count, self.item_count = graph.user_count, graph.item_count
        self.items, self.item_users = graph.items, graph.item_users
        users, items = (_chunks(offsets, graph.items.dtype) for offsets in (graph.user_offsets, graph.item_offsets))
        self.user_chunks = len(users.row)
        self.chunks = Chunks(*(torch.cat(both) for both in zip(users, items, strict=True)))


def _chunks(offsets: Tensor, row_type: torch.dtype) -> Chunks:
    degrees = offsets.diff()
    counts = ((degrees + (CHUNK - 1)) // CHUNK).clamp(min=1)  # a row without edges is written too
    row = torch.repeat_interleave(counts)
    number = torch.arange(len(row), device=offsets.device) - (counts.cumsum(0) - counts).index_select(0, row)
    start = offsets.index_select(0, row) + number * CHUNK
    length = (offsets.index_select(0, row + 1) - start).clamp_(max=CHUNK).to(torch.int8)
    kind = torch.where(counts.index_select(0, row) == 1, WHOLE, torch.where(number == 0, FIRST, LATER)).to(torch.int8)
    order = torch.argsort(length, descending=True, stable=True)  # a program takes chunks of about one length
    found = (row.to(row_type), start.to(offsets.dtype), length, kind)
    return Chunks(*(part.index_select(0, order) for part in found))


class SparseOperator:
    """W and its transpose as values per edge. Those in the order of users are the ones it is given, not copies."""

    skips_rows = True

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor, precision: str) -> None:
        self._layout = graph.sparse_layout
        self._by_item = graph.by_item
        self._table_type = _table_type(precision)
        self._to_user_by_item, self._to_item_by_item = (torch.empty_like(values) for values in (to_user, to_item))
        self.assign(to_user, to_item)

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        self._to_user, self._to_item = to_user, to_item
        torch.index_select(to_user, 0, self._by_item, out=self._to_user_by_item)
        torch.index_select(to_item, 0, self._by_item, out=self._to_item_by_item)

    def apply(
        self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool, rows: Tensor | None = None
    ) -> Tables:
        # (W^T)[u, i] is the weight of item <- user, so each side takes the other direction's values.
        forward = (self._to_user, self._to_item_by_item)
        values = (self._to_item, self._to_user_by_item) if transposed else forward
        matrix = _Matrix(self._layout, self._table_type, values=values)
        return matrix.polynomial(tables, layer_weights, None if transposed else rows)


class FactoredOperator:
    """W and its transpose as two numbers per node."""

    skips_rows = True

    def __init__(self, graph: BipartiteGraph, factors: Factors, precision: str) -> None:
        self._layout = graph.sparse_layout
        self._table_type = _table_type(precision)
        self._sent = torch.cat(factors.sent).float()
        symmetric = factors.sent is factors.received
        self._received = self._sent if symmetric else torch.cat(factors.received).float()

    def apply(
        self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool, rows: Tensor | None = None
    ) -> Tables:
        sent, received = (self._received, self._sent) if transposed else (self._sent, self._received)
        matrix = _Matrix(self._layout, self._table_type, sent=sent, received=received)
        return matrix.polynomial(tables, layer_weights, None if transposed else rows)


class _Matrix:
    """One direction of a sparse operator: `values` per edge of users and of items, or `sent` and `received` factors."""

    def __init__(
        self,
        layout: SparseLayout,
        table_type: torch.dtype,
        *,
        values: tuple[Tensor, Tensor] | None = None,
        sent: Tensor | None = None,
        received: Tensor | None = None,
    ) -> None:
        self._layout, self._table_type = layout, table_type
        self._values, self._received = values, received
        self._sent = None if sent is None else sent.unsqueeze(1)

    def polynomial(self, tables: Tables, layer_weights: Sequence[float], rows: Tensor | None) -> Tables:
        """sum_l layer_weights[l] * W^l tables; only the last product may leave `rows` out.

        Beside the result there is one table of sources at a time, and for a moment the sums that it is made of.
        """
        *lower, scale = layer_weights
        if not lower:
            return Tables(tables.users * scale, tables.items * scale)
        base = Tables(tables.users.contiguous(), tables.items.contiguous())
        sources = self._first_sources(base)
        for layer in range(len(lower) - 1, 0, -1):
            sources = self._next_sources(self._products(base, lower[layer], sources, scale, None))
            scale = 1.0
        sums = self._products(base, lower[0], sources, scale, rows)
        return Tables(sums[: self._layout.user_count], sums[self._layout.user_count :])

    def _first_sources(self, tables: Tables) -> Tensor:
        """The stacked table that a product reads, users first: scaled and rounded in one pass."""
        users = self._layout.user_count
        shape = (users + self._layout.item_count, tables.users.shape[1])
        stacked = torch.empty(shape, dtype=self._table_type, device=tables.users.device)
        for part, place in zip(tables, (slice(users), slice(users, None)), strict=True):
            if self._sent is None:
                stacked[place] = part
            else:
                torch.mul(part, self._sent[place], out=stacked[place])
        return stacked

    def _next_sources(self, sums: Tensor) -> Tensor:
        """The same from stacked sums, which may be overwritten."""
        if self._sent is None:
            return sums.to(self._table_type)
        same = sums.dtype == self._table_type
        return torch.mul(sums, self._sent, out=sums if same else torch.empty_like(sums, dtype=self._table_type))

    def _products(self, base: Tables, base_scale: float, sources: Tensor, scale: float, rows: Tensor | None) -> Tensor:
        """base_scale * base + scale * W sources."""
        from caged.graph.kernels.triton_products import add_weighted_rows

        out: Tensor = add_weighted_rows(
            base, base_scale, sources, scale, self._layout, values=self._values, received=self._received, rows=rows
        )
        return out


def _table_type(precision: str) -> torch.dtype:
    return torch.float32 if precision in ("float32", "tf32") else torch.bfloat16


class DenseOperator:
    """W and its transpose as two padded dense matrices."""

    skips_rows = False  # a batch touches most rows of a graph that is dense enough for this form

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor, precision: str) -> None:
        table_type = _table_type(precision)
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
