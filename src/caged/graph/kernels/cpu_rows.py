"""Propagation on CPU for a batch, which names a part of the nodes: only its rows of the result are read, and only they
have a gradient.

So the last product of W is needed for these rows only, and the first product of its transpose reads these rows only.
Both walk a part of the edges, and tables that are zero outside the named rows are never filled. Sums have the same
terms in the same order as in `cpu`, less some zeros: the bits are the same.

Picking the edges takes as long as a product over a column block or two, so it pays where tables are wide and the batch
names a small part of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from caged.graph.operators import Tables

if TYPE_CHECKING:
    from caged.graph.kernels.cpu import CpuLayout, Direction, Side

# Measured with one thread on Epinions; they decide speed, never results.
LEAST_WIDTH = 128
MOST_EDGES = 0.6  # share of the edges that the named nodes may have, users and items together counted half each


@dataclass(frozen=True)
class Named:
    """The named rows of one side."""

    rows: Tensor
    places: Tensor  # of the rows in internal order, ascending

    @classmethod
    def of(cls, flags: Tensor, side: Side) -> Named:
        rows = flags.nonzero().squeeze(1)
        if side.place is None:
            return cls(rows, rows)
        places, order = side.place.index_select(0, rows).sort()
        return cls(rows.index_select(0, order), places)


class NamedRows(NamedTuple):
    users: Named
    items: Named


def named_rows(flags: Tensor, layout: CpuLayout) -> NamedRows:
    """`flags` (M + N,) mark the named nodes, users first."""
    users, items = flags[: layout.users.count], flags[layout.users.count :]
    return NamedRows(Named.of(users, layout.users), Named.of(items, layout.items))


def names_few_edges(named: NamedRows, layout: CpuLayout) -> bool:
    edges = layout.to_users.edges_to(named.users.places) + layout.to_items.edges_to(named.items.places)
    return edges < MOST_EDGES * 2 * len(layout.to_users.edges)


class _Part(NamedTuple):
    """Some edges of a run, as CSR over some target rows."""

    offsets: Tensor
    sources: Tensor
    edges: Tensor  # places in the direction's edge order


class PartOfDirection:
    """A direction with fewer edges. `values` are those of the whole direction."""

    def __init__(self, parts: list[_Part], values: Tensor) -> None:
        self._runs = [(part.offsets, part.sources, values.index_select(0, part.edges)) for part in parts]

    def __call__(self, table: Tensor) -> Tensor:
        from caged.graph.kernels.cpu import aggregate

        (offsets, sources, values), *others = self._runs
        sums = aggregate(offsets, sources, values, table)
        for offsets, sources, values in others:
            sums += aggregate(offsets, sources, values, table)
        return sums


def to_rows(direction: Direction, values: Tensor, places: Tensor) -> PartOfDirection:
    """Messages to the target rows at `places`; what comes out has one row for each of them."""
    parts = []
    for run in direction.runs:
        first = run.offsets.index_select(0, places)
        counts = run.offsets.index_select(0, places + 1) - first
        offsets = F.pad(counts.cumsum(0, dtype=counts.dtype), (1, 0))
        shift = torch.repeat_interleave(first - offsets[:-1], counts)
        edges = torch.arange(len(shift), dtype=shift.dtype).add_(shift)
        parts.append(_Part(offsets, run.sources.index_select(0, edges), edges + run.edges.start))
    return PartOfDirection(parts, values)


def from_rows(direction: Direction, values: Tensor, places: Tensor, source_count: int) -> PartOfDirection:
    """Messages from the source rows at `places`; it takes a table with one row for each of them."""
    number = torch.full((source_count,), -1, dtype=direction.runs[0].sources.dtype)
    number[places] = torch.arange(len(places), dtype=number.dtype)
    parts = []
    for run in direction.runs:
        numbers = number.index_select(0, run.sources)
        kept = numbers >= 0
        before = F.pad(kept.cumsum(0, dtype=run.offsets.dtype), (1, 0))
        edges = torch.from_numpy(np.flatnonzero(kept.numpy()))  # several times faster than torch's
        offsets = before.index_select(0, run.offsets)
        parts.append(_Part(offsets, numbers.index_select(0, edges), edges + run.edges.start))
    return PartOfDirection(parts, values)


def picked(tables: Tables, named: NamedRows) -> Tables:
    """The named rows of tables in row order."""
    return Tables(tables.users.index_select(0, named.users.rows), tables.items.index_select(0, named.items.rows))


def add_to_places(tables: Tables, named: NamedRows, rows: Tables, weight: float, others: Tables | None = None) -> None:
    """tables[named] += weight * rows, then += others, in internal order."""
    for side in range(2):
        table, places = tables[side], named[side].places
        sums = table.index_select(0, places).add_(rows[side], alpha=weight)
        table.index_copy_(0, places, sums if others is None else sums.add_(others[side]))
