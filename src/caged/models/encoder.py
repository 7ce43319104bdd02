"""The LightGCN encoder: two trainable tables, propagated over the graph; and what methods that hold one share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from caged.columns import WHOLE, Columns
from caged.graph import Batch, BipartiteGraph, Tables, Weights, propagate, propagate_named
from caged.models.contract import ConfigT, DotScorer, Method, ParamGroup, Scorer, Stage, State
from caged.models.fold_in import FoldIn, fold_in_by_degree
from caged.seeding import Generators

TABLES = ("users", "items")  # of `LightGCNEncoder.state`: what methods put into `by_columns`
TABLE_INITS = ("normal", "xavier")
NORMAL_SCALE = 0.1
DRAWN_ROWS = 2**16  # at a time; a multiple of 16


def xavier_scale(rows: int, columns: int) -> float:
    """Standard deviation of a Xavier-normal matrix.

    >>> xavier_scale(30, 2)
    0.25
    """
    return math.sqrt(2.0 / (rows + columns))


def drawn(rows: int, width: int, scale: float, draw: torch.Generator, own: slice) -> Tensor:
    """The columns `own` of a table of N(0, scale^2), with the numbers that they have in the whole table.

    It is drawn in blocks of rows, so that it is never there as a whole where only a part is kept. Blocks do not change
    the numbers: torch draws normal ones in groups of 16, and a block has a multiple of that, but for the last, which
    is not the smallest.
    """
    if own == slice(None):
        return torch.empty(rows, width).normal_(0.0, scale, generator=draw)
    starts = list(range(0, rows, DRAWN_ROWS))[: max(1, rows // DRAWN_ROWS)]
    blocks = [
        torch.empty(stop - start, width).normal_(0.0, scale, generator=draw)[:, own].clone()
        for start, stop in zip(starts, [*starts[1:], rows], strict=True)
    ]
    return torch.cat(blocks)


class Triples(NamedTuple):
    """Rows of a batch: users u, positives i, negatives j."""

    users: Tensor  # (B, K)
    positives: Tensor  # (B, K)
    negatives: Tensor  # (B, K)


class BatchRows(NamedTuple):
    """Vectors that hold the rows of a batch, and the batch with the numbers that these rows have there."""

    final: Tables  # propagated
    layer0: Tables
    batch: Batch


def _renumbered(batch: Batch, rows: Tables, tables: Tables) -> Batch:
    """Row `rows[n]` of the tables becomes row n."""
    users, items = (
        torch.empty(len(table), dtype=batch.users.dtype).index_copy_(0, kept, torch.arange(len(kept)).to(batch.users))
        for table, kept in zip(tables, rows, strict=True)
    )
    return batch._replace(
        users=users.index_select(0, batch.users),
        positives=items.index_select(0, batch.positives),
        negatives=items.index_select(0, batch.negatives),
    )


class LightGCNEncoder:
    """E = sum_l a_l W^l E0, with trainable E0 = (user table, item table), edge weights W and layer weights a."""

    def __init__(
        self,
        graph: BipartiteGraph,
        weights: Weights,
        *,
        embedding_size: int,
        layer_weights: Sequence[float],
        generators: Generators,
        table_init: str = "normal",
        init_stream: str = "init",
        columns: Columns = WHOLE,
    ) -> None:
        self.graph = graph
        self.columns = columns
        self.weights = weights
        self.layer_weights = tuple(layer_weights)
        draw = generators.on_host(init_stream)  # the same start on every device

        def table(rows: int) -> nn.Parameter:
            scale = xavier_scale(rows, embedding_size) if table_init == "xavier" else NORMAL_SCALE
            return nn.Parameter(drawn(rows, embedding_size, scale, draw, columns.own).to(graph.device))

        self.users = table(graph.user_count)
        self.items = table(graph.item_count)

    def __call__(self, batch: Batch | None = None) -> Tables:
        """Propagated user and item vectors; with a batch, its rows are right and no others may be used."""
        rows = None if batch is None else self.rows_of(batch)
        return propagate(self.weights, self.layer0, self.layer_weights, rows)

    def rows_of(self, batch: Batch) -> Tensor | None:
        """A flag per node, users first: whether the batch names it. None where propagation has no use for them."""
        return self._flags(batch) if self.weights.operator.skips_rows else None

    def batch_rows(self, batch: Batch) -> BatchRows:
        """What a loss reads of propagated and layer-0 vectors; whole tables where rows alone would save nothing."""
        found = None
        if self.weights.operator.skips_rows:
            found = propagate_named(self.weights, self.layer0, self.layer_weights, self._flags(batch))
        if found is None:
            return BatchRows(self(batch), self.layer0, batch)
        return BatchRows(found.final, found.layer0, _renumbered(batch, found.rows, self.layer0))

    def _flags(self, batch: Batch) -> Tensor:
        first_item = len(self.users)
        named = torch.cat((batch.users, batch.positives + first_item, batch.negatives + first_item))
        flags = torch.zeros(first_item + len(self.items), dtype=torch.uint8, device=named.device)
        return flags.index_fill_(0, named.long(), 1)

    def whole(self, vectors: Tables) -> Tables:
        """Vectors of this rank's columns -> vectors of all columns, for ranking."""
        return Tables(*map(self.columns.whole, vectors))

    @property
    def layer0(self) -> Tables:
        """The trainable tables themselves."""
        return Tables(self.users, self.items)

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [self.users, self.items]

    def state(self) -> dict[str, Tensor]:
        return {"users": self.users.data, "items": self.items.data}


def gather(vectors: Tables, batch: Batch) -> Triples:
    """The rows of a batch."""
    items = vectors.items.index_select(0, torch.cat((batch.positives, batch.negatives)))
    positives, negatives = items.chunk(2)
    return Triples(vectors.users.index_select(0, batch.users), positives, negatives)


def scores(rows: Triples) -> tuple[Tensor, Tensor]:
    """s_ui and s_uj of a batch."""
    return (rows.users * rows.positives).sum(1), (rows.users * rows.negatives).sum(1)


class EncoderMethod(Method[ConfigT]):
    """A method with one encoder, which `prepare` makes: its tables are trained, stored and, propagated, recommend.

    What is left to say is the loss; a method that keeps, trains or ranks by more than that overrides the rest.
    """

    encoder: LightGCNEncoder

    def parameters(self, stage: Stage) -> list[ParamGroup]:
        return [{"params": self.encoder.parameters}]

    def history_encoder(self) -> LightGCNEncoder:
        return self.encoder

    def fold_in(self) -> FoldIn:
        return fold_in_by_degree(self.encoder)

    def scorer(self) -> Scorer:
        with torch.no_grad():
            return DotScorer(self.encoder.whole(self.encoder()))

    def state(self) -> State:
        return State(self.encoder.state(), {})
