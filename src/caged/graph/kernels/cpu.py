"""Propagation on CPU: `embedding_bag` over column blocks and source blocks, rows dealt out by degree.

`embedding_bag` is the fastest stock sparse-dense product on CPU. It reads one row of the source table per edge, in an
order that the hardware cannot foresee, so what decides the speed is where these rows lie and what else is touched:

- Columns go in blocks of 64 through all layers before the next block starts, of 32 on graphs with many nodes: 256
  columns would need several times the cache for the same number of random reads. Fewer than 32 lose to the cost per
  edge.
- Where a column block of the source table is still larger than the second-level cache, the edges are walked by runs of
  source rows that fit, and the sums added up. Short rows would be cut into crumbs by this, so it needs some edges per
  row and run.
- Threads take contiguous runs of target rows. Where that would leave one of them with clearly more edges, rows are
  dealt out by degree like cards, so that every run holds its share of heavy rows. The order is internal: tables come
  and go in row order, which costs a copy of each, so a side that is balanced already stays as it is.
- Everything else (scaling, adding the layer-0 table, copying the column block) is bound by memory, so there are few
  such passes, they reuse their memory, and the last addition writes into place.

Each row is summed in a fixed order by one thread, so results do not depend on how threads are scheduled.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from caged.graph.by_item import users_of
from caged.graph.kernels import cpu_rows
from caged.graph.kernels.cpu_rows import (
    NamedRows,
    add_to_places,
    from_rows,
    named_rows,
    names_few_edges,
    picked,
    to_rows,
)
from caged.graph.operators import Factors, Tables

if TYPE_CHECKING:
    from caged.graph.pattern import BipartiteGraph

# Measured on two cores with 1.25 MiB of second-level cache each; they decide speed, never results beyond rounding.
COLUMNS = 64  # per block
COLUMNS_OF_LARGE_TABLES = 32
LARGE_TABLE_ROWS = 2**14
SOURCE_BYTES = 2**20  # of a column block of one run of source rows
EDGES_PER_RUN = 16  # mean edges of a target row in a run; with fewer, adding up costs more than the cache saves
TOLERATED_IMBALANCE = 1.1  # edges of the busiest thread over the mean; below it the copies cost more


def aggregate(offsets: Tensor, sources: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """out[r] = sum over e in [offsets[r], offsets[r+1]) of values[e] * table[sources[e]]; rows without edges are 0."""
    return F.embedding_bag(sources, table, offsets, mode="sum", per_sample_weights=values, include_last_offset=True)


Values = tuple[Tensor, Tensor]  # of messages to users and to items, each in the edge order of its direction


class Side:
    """Users or items: the internal order of their rows, None where it is the row order."""

    def __init__(self, degrees: Tensor, threads: int) -> None:
        self.count = len(degrees)
        self.order: Tensor | None = None
        self.place: Tensor | None = None  # of each row in the order
        if _imbalance(degrees, threads) > TOLERATED_IMBALANCE:
            by_degree = torch.argsort(degrees, descending=True, stable=True)
            self.order = torch.cat([by_degree[hand::threads] for hand in range(threads)])
            self.place = torch.empty_like(self.order)
            self.place[self.order] = torch.arange(self.count)

    def places(self, rows: Tensor) -> Tensor:
        return rows.long() if self.place is None else self.place[rows.long()]

    def in_order(self, values: Tensor) -> Tensor:
        """A number per row in internal order."""
        return values if self.order is None else values.index_select(0, self.order)

    def enter(self, columns: Tensor, out: Tensor) -> Tensor:
        """A column block in internal order, written to `out`."""
        return out.copy_(columns) if self.order is None else torch.index_select(columns, 0, self.order, out=out)

    def leave(self, sums: Tensor, start: Tensor, weight: float, out: Tensor) -> None:
        """out = sums + weight * start, in row order; `sums` may be overwritten."""
        if self.place is None:
            torch.add(sums, start, alpha=weight, out=out)
        else:
            self.put_back(sums.add_(start, alpha=weight), out)

    def put_back(self, sums: Tensor, out: Tensor) -> None:
        """out = sums in row order."""
        if self.place is None:
            out.copy_(sums)
        else:
            torch.index_select(sums, 0, self.place, out=out)


class _Run(NamedTuple):
    """The edges from one run of source rows, as CSR over all target rows."""

    offsets: Tensor
    sources: Tensor
    edges: slice  # of the direction's edge order


class Direction:
    """Messages to one side: edges ordered by (run of source rows, target row), in internal places."""

    def __init__(self, targets: Tensor, sources: Tensor, target_count: int, source_count: int, columns: int) -> None:
        index = targets.dtype
        runs = _run_count(target_count, source_count, len(targets), columns)
        bag = (sources.long() * runs // source_count) * target_count + targets.long()
        # The sort is stable and its input sorted already, so each row keeps its edges in row order of the other side.
        order = torch.argsort(bag, stable=True)
        ends = F.pad(torch.bincount(bag, minlength=runs * target_count).cumsum(0), (1, 0))
        ordered = sources.index_select(0, order)
        self.edges = order.to(index)
        self.runs = []
        for run in range(runs):
            offsets = ends[run * target_count : (run + 1) * target_count + 1]
            edges = slice(int(offsets[0]), int(offsets[-1]))
            self.runs.append(_Run((offsets - offsets[0]).to(index), ordered[edges], edges))

    def products(self, of_targets: Tensor, of_sources: Tensor, dtype: torch.dtype) -> Tensor:
        """A value per edge, following `edges`: that of its target times that of its source, both in internal order."""
        values = torch.empty(len(self.edges), dtype=dtype)
        for run in self.runs:
            targets = torch.repeat_interleave(run.offsets.diff())
            values[run.edges] = of_targets.index_select(0, targets) * of_sources.index_select(0, run.sources)
        return values

    def edges_to(self, places: Tensor) -> int:
        """How many edges these target rows have."""
        return sum(int((run.offsets[places + 1] - run.offsets[places]).sum()) for run in self.runs)

    def __call__(self, values: Tensor, table: Tensor) -> Tensor:
        """The weighted sums of source rows for every target row; `values` follow `edges`."""
        first, *others = self.runs
        sums = aggregate(first.offsets, first.sources, values[first.edges], table)
        for run in others:
            sums += aggregate(run.offsets, run.sources, values[run.edges], table)
        return sums


class CpuLayout:
    """The pattern in its internal order, shared by all weights on one graph."""

    def __init__(self, graph: BipartiteGraph, threads: int) -> None:
        self.users = Side(graph.user_degrees, threads)
        self.items = Side(graph.item_degrees, threads)
        index = torch.promote_types(graph.items.dtype, graph.user_offsets.dtype)  # rows and offsets have to agree
        users = self.users.places(users_of(graph.user_offsets, 0, graph.edge_count)).to(index)
        items = self.items.places(graph.items).to(index)
        large = max(graph.user_count, graph.item_count) > LARGE_TABLE_ROWS
        self.columns = COLUMNS_OF_LARGE_TABLES if large else COLUMNS
        self.to_users = Direction(users, items, graph.user_count, graph.item_count, self.columns)
        self.to_items = Direction(items, users, graph.item_count, graph.user_count, self.columns)

    def products(self, factors: Factors, dtype: torch.dtype) -> Values:
        """The weights that the factors stand for."""
        (of_user_sources, of_item_sources), (of_user_targets, of_item_targets) = (
            (self.users.in_order(part.users), self.items.in_order(part.items)) for part in factors
        )
        return (
            self.to_users.products(of_user_targets, of_item_sources, dtype),
            self.to_items.products(of_item_targets, of_user_sources, dtype),
        )


class _Scratch:
    """Memory for one column block of both tables, twice, used again by every block.

    Fresh memory is handed out page by page on first touch, which takes longer than what is written to it.
    """

    def __init__(self, tables: Tables, columns: int) -> None:
        columns = min(columns, tables.users.shape[1])
        self._buffers = [[part.new_empty(len(part) * columns) for part in tables] for _ in range(2)]

    def _take(self, which: int, block: Tables) -> Tables:
        users, items = self._buffers[which]
        return Tables(
            users[: block.users.numel()].view_as(block.users), items[: block.items.numel()].view_as(block.items)
        )

    def start(self, layout: CpuLayout, block: Tables) -> Tables:
        """The block in internal order."""
        buffers = self._take(0, block)
        return Tables(layout.users.enter(block.users, buffers.users), layout.items.enter(block.items, buffers.items))

    def scaled(self, start: Tables, factor: float) -> Tables:
        buffers = self._take(1, start)
        return Tables(
            torch.mul(start.users, factor, out=buffers.users), torch.mul(start.items, factor, out=buffers.items)
        )


class CpuOperator:
    """W and its transpose for one set of edge weights."""

    skips_rows = True

    def __init__(self, layout: CpuLayout, forward: Values, transposed: Values) -> None:
        self._layout, self._forward, self._transposed = layout, forward, transposed

    @classmethod
    def of_edges(cls, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor) -> CpuOperator:
        return cls(graph.cpu_layout, *_edge_values(graph.cpu_layout, to_user, to_item))

    @classmethod
    def of_factors(cls, graph: BipartiteGraph, factors: Factors, dtype: torch.dtype) -> CpuOperator:
        """The same operator as `of_edges` from the weights that the factors stand for, to the bit."""
        layout = graph.cpu_layout
        forward = layout.products(factors, dtype)
        symmetric = factors.sent is factors.received
        return cls(layout, forward, forward if symmetric else layout.products(factors.transposed, dtype))

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        self._forward, self._transposed = _edge_values(self._layout, to_user, to_item)

    @torch.no_grad()
    def apply(
        self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool, rows: Tensor | None = None
    ) -> Tables:
        """sum_l layer_weights[l] * W^l tables, by Horner's rule, one column block after the other."""
        first, *upper = layer_weights
        if not upper:
            return Tables(tables.users * first, tables.items * first)
        named = None if rows is None else self.named(rows, tables.users.shape[1])
        if named is not None:
            return self._named_only(tables, layer_weights, named, transposed=transposed)
        values = self._transposed if transposed else self._forward
        out = Tables(torch.empty_like(tables.users), torch.empty_like(tables.items))
        scratch = _Scratch(tables, self._layout.columns)
        for columns in _column_blocks(tables.users.shape[1], self._layout.columns):
            start = scratch.start(self._layout, Tables(tables.users[:, columns], tables.items[:, columns]))
            sums = self._horner(start, scratch.scaled(start, upper[-1]), values, upper[:-1])
            self._layout.users.leave(sums.users, start.users, first, out.users[:, columns])
            self._layout.items.leave(sums.items, start.items, first, out.items[:, columns])
        return out

    def named(self, flags: Tensor, width: int) -> NamedRows | None:
        """The flagged rows, users first, where it pays to treat them apart."""
        if width < cpu_rows.LEAST_WIDTH:
            return None
        named = named_rows(flags, self._layout)
        return named if names_few_edges(named, self._layout) else None

    def _named_only(
        self, tables: Tables, layer_weights: Sequence[float], named: NamedRows, *, transposed: bool
    ) -> Tables:
        """`apply` with rows: those of the result that are not named are left as the memory was."""
        if transposed:
            return self.from_named(picked(tables, named), layer_weights, named)
        found = self.to_named(tables, layer_weights, named)
        return Tables(
            torch.empty_like(tables.users).index_copy_(0, named.users.rows, found.users),
            torch.empty_like(tables.items).index_copy_(0, named.items.rows, found.items),
        )

    @torch.no_grad()
    def to_named(self, tables: Tables, layer_weights: Sequence[float], named: NamedRows) -> Tables:
        """The named rows of sum_l layer_weights[l] * W^l tables; there is a layer above 0."""
        layout, (users, items) = self._layout, named
        first, *middle, last = layer_weights
        to_users = to_rows(layout.to_users, self._forward[0], users.places)
        to_items = to_rows(layout.to_items, self._forward[1], items.places)
        width = tables.users.shape[1]
        found = Tables(*(part.new_empty(len(side.rows), width) for part, side in zip(tables, named, strict=True)))
        scratch = _Scratch(tables, layout.columns)
        for columns in _column_blocks(width, layout.columns):
            start = scratch.start(layout, Tables(tables.users[:, columns], tables.items[:, columns]))
            hidden = self._added(start, scratch.scaled(start, last), self._forward, middle)
            own = Tables(start.users.index_select(0, users.places), start.items.index_select(0, items.places))
            torch.add(to_users(hidden.items), own.users, alpha=first, out=found.users[:, columns])
            torch.add(to_items(hidden.users), own.items, alpha=first, out=found.items[:, columns])
        return found

    @torch.no_grad()
    def from_named(
        self, given: Tables, layer_weights: Sequence[float], named: NamedRows, added: Tables | None = None
    ) -> Tables:
        """sum_l layer_weights[l] * (W^T)^l tables, of tables that hold the rows `given` and are zero elsewhere.

        The rows `added` are added to the named ones of the result.
        """
        layout, (users, items) = self._layout, named
        first, *middle, last = layer_weights
        from_items = from_rows(layout.to_users, self._transposed[0], items.places, layout.items.count)
        from_users = from_rows(layout.to_items, self._transposed[1], users.places, layout.users.count)
        width = given.users.shape[1]
        out = Tables(given.users.new_empty(layout.users.count, width), given.items.new_empty(layout.items.count, width))
        for columns in _column_blocks(width, layout.columns):
            start = Tables(given.users[:, columns], given.items[:, columns])
            hidden = Tables(from_items(start.items * last), from_users(start.users * last))
            for weight in reversed(middle):
                add_to_places(hidden, named, start, weight)
                hidden = self._layer(self._transposed, hidden)
            others = None if added is None else Tables(added.users[:, columns], added.items[:, columns])
            add_to_places(hidden, named, start, first, others)
            layout.users.put_back(hidden.users, out.users[:, columns])
            layout.items.put_back(hidden.items, out.items[:, columns])
        return out

    def _horner(self, start: Tables, hidden: Tables, values: Values, middle: Sequence[float]) -> Tables:
        """W (... W (W hidden + middle[-1] start) + middle[-2] start ...), nothing added after the last product."""
        return self._layer(values, self._added(start, hidden, values, middle))

    def _added(self, start: Tables, hidden: Tables, values: Values, middle: Sequence[float]) -> Tables:
        """The same before the last product."""
        for weight in reversed(middle):
            users, items = self._layer(values, hidden)
            hidden = Tables(users.add_(start.users, alpha=weight), items.add_(start.items, alpha=weight))
        return hidden

    def _layer(self, values: Values, hidden: Tables) -> Tables:
        layout = self._layout
        return Tables(layout.to_users(values[0], hidden.items), layout.to_items(values[1], hidden.users))


def _edge_values(layout: CpuLayout, to_user: Tensor, to_item: Tensor) -> tuple[Values, Values]:
    """Weights per edge, user-major, as W and as its transpose want them."""
    by_user, by_item = layout.to_users.edges, layout.to_items.edges
    forward = (to_user.index_select(0, by_user), to_item.index_select(0, by_item))
    if torch.equal(to_user, to_item):
        return forward, forward
    # (W^T)[u, i] is the weight of item <- user, so each direction takes the other one's vector.
    return forward, (to_item.index_select(0, by_user), to_user.index_select(0, by_item))


def _imbalance(degrees: Tensor, threads: int) -> float:
    """Edges of the busiest of `threads` equal runs of rows, over their mean."""
    run = -(-len(degrees) // threads)
    edges = torch.stack([degrees[first : first + run].sum() for first in range(0, len(degrees), run)])
    return float(edges.max() * threads / edges.sum())


def _run_count(target_count: int, source_count: int, edge_count: int, columns: int) -> int:
    """Into how many runs of source rows the edges of a direction are cut."""
    to_fit_the_cache = -(-4 * columns * source_count // SOURCE_BYTES)
    return max(1, min(to_fit_the_cache, edge_count // (EDGES_PER_RUN * target_count)))


def _column_blocks(width: int, most: int) -> list[slice]:
    """As few blocks of at most `most` columns as possible, as equal as possible."""
    count = -(-width // most)
    edges = [width * block // count for block in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
