"""The ranking loss of the backbone: BPR, or a sampled softmax. `method.loss` says which.

It belongs to the LightGCN encoder and not to one method, so every method whose ranking loss is plain BPR on the encoder
takes either: its configuration has the options of `LossOptions`, and it is a `BackboneMethod`. `models/softmax.py` has
the formulas of the softmax; `softmax` is LightGCN with it and defaults of its own.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from caged.columns import WHOLE, Columns
from caged.config import option, value_text
from caged.errors import ConfigError
from caged.graph import AnySampler, Batch, BipartiteGraph, OwnedItems, Tables
from caged.models.contract import DotScorer, EpochContext, Losses, Scorer
from caged.models.distinct_softmax import MOST_COPIES, Pairs, distinct_softmax
from caged.models.encoder import EncoderMethod
from caged.models.fold_in import FoldIn, fold_in_by_degree
from caged.models.fused_softmax import Candidates, fits, fused_softmax
from caged.models.losses import bpr_with_l2, l2_of_batch, scaled_bpr_with_l2
from caged.models.sampled_softmax import Problem, sampled_softmax, unit_rows

BPR, SOFTMAX = "bpr", "softmax"
KNOWN_BYTES = 2**30  # most memory for one bit per user and item, which known=mask takes


@dataclass(frozen=True)
class SoftmaxOptions:
    """Of the loss (1) to (3) in `models/softmax.py`."""

    temperature: float = option(0.15, "divisor tau of the cosines in (2)", above=0, search=(0.1, 0.15, 0.2, 0.3, 0.4))
    gamma: float = option(
        0.1,
        "share of log popularity to take out of the scores: 0 is ordinary softmax, 1 leaves no popularity",
        minimum=-1,
        maximum=1,
        search=(0.0, 0.1, 0.2, 0.3, 0.5),
    )
    candidates: str = option(
        "batch",
        "what a positive competes with: the positives of its chunk of the batch, or its sampled negatives",
        choices=("batch", "uniform"),
    )
    candidate_rows: int = option(
        2048, "rows of a chunk: consecutive rows of a batch that share their candidates", minimum=2
    )
    known: str = option(
        "keep",
        "candidates that the user owns in training: keep, or mask them",
        choices=("keep", "mask"),
    )
    item_lengths: float = option(
        0.0,
        "power of its vector's length that an item keeps in ranking: 0 ranks by cosines, 1 by dot products",
        minimum=0,
        maximum=1,
    )

    def __post_init__(self) -> None:
        if self.candidates == "uniform" and self.gamma != 0:
            raise ConfigError(
                f"method.gamma is {self.gamma:g}, but method.candidates=uniform draws every item alike, so there is no "
                "popularity to take out; set method.gamma=0, or method.candidates=batch"
            )


def _only_softmax(name: str) -> Any:
    """The option of `SoftmaxOptions` for a method that has a choice of losses: none stands for the default there."""
    field = SoftmaxOptions.__dataclass_fields__[name]
    about = {key: value for key, value in field.metadata.items() if key not in ("help", "search")}
    return option(None, f"{field.metadata['help']}; loss=softmax only, none: {value_text(field.default)}", **about)


@dataclass(frozen=True)
class LossOptions:
    """The choice of a loss, beside the other options of a method. What belongs to the softmax is refused under BPR."""

    loss: str = option(
        BPR,
        "ranking loss: bpr, or a sampled softmax over cosines (method softmax)",
        source="LightGCN paper; softmax is our addition",
        choices=(BPR, SOFTMAX),
    )
    temperature: float | None = _only_softmax("temperature")
    gamma: float | None = _only_softmax("gamma")
    candidates: str | None = _only_softmax("candidates")
    candidate_rows: int | None = _only_softmax("candidate_rows")
    known: str | None = _only_softmax("known")
    item_lengths: float | None = _only_softmax("item_lengths")

    def __post_init__(self) -> None:
        given = self._given
        if self.loss == BPR and given:
            name, value = next(iter(given.items()))
            raise ConfigError(
                f"method.{name} is {value_text(value)}, but method.loss is bpr, which has no such option; leave it "
                "out, or set method.loss=softmax"
            )
        if self.loss == SOFTMAX:
            SoftmaxOptions(**given)  # refuses what does not fit together

    @property
    def softmax(self) -> SoftmaxOptions | None:
        """The options in force; None under BPR."""
        return SoftmaxOptions(**self._given) if self.loss == SOFTMAX else None

    @property
    def _given(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(SoftmaxOptions)}
        return {name: value for name, value in values.items() if value is not None}


class BackboneLoss(Protocol):
    """What a method on the backbone asks of its ranking loss."""

    by_cosine: bool  # whether a user's vector ranks as one of length 1, and an item's by the loss's own rule

    def follow(self, sampler: AnySampler) -> None:
        """Learn how positives are drawn. In place: a recorded step reads it."""

    def __call__(
        self,
        final: Tables,
        layer0: Tables,
        batch: Batch,
        l2: float,
        scale: Tensor | None = None,
        names: Batch | None = None,
    ) -> Losses:
        """Of the propagated rows, plus `l2` times `l2_rows` of `layer0`. `scale` (B,) multiplies a triple's scores.

        `names` has the users and items of the batch where the numbers in `batch` are those of rows in shorter tables.
        """

    def ranked(self, vectors: Tables) -> Tables:
        """The propagated vectors as they rank: by dot products of what comes back."""


class BprLoss:
    """`bpr_with_l2`: softplus(s_uj - s_ui) of dot products."""

    by_cosine = False

    def __init__(self, columns: Columns = WHOLE) -> None:
        self._columns = columns

    def follow(self, sampler: AnySampler) -> None:
        """However positives are drawn, the loss is the same."""

    def __call__(
        self,
        final: Tables,
        layer0: Tables,
        batch: Batch,
        l2: float,
        scale: Tensor | None = None,
        names: Batch | None = None,
    ) -> Losses:
        if scale is None:
            return bpr_with_l2(final, layer0, batch, l2, self._columns)
        return scaled_bpr_with_l2(final, layer0, batch, scale, l2, self._columns)

    def ranked(self, vectors: Tables) -> Tables:
        return vectors


class SoftmaxLoss:
    """(1) to (3) of `models/softmax.py`."""

    by_cosine = True

    def __init__(self, options: SoftmaxOptions, graph: BipartiteGraph, columns: Columns = WHOLE) -> None:
        self.options = options
        self._columns = columns
        self.log_shares = torch.zeros(graph.item_count, device=graph.device)  # log q; 0 of an item that is never drawn
        self._drawn = torch.ones(graph.item_count, dtype=torch.bool, device=graph.device)
        self._followed: str | None = None
        self._owned = _owned_items(graph) if options.known == "mask" else None
        self._precision = graph.engine.precision if graph.device.type == "cuda" else "float32"

    def follow(self, sampler: AnySampler) -> None:
        if sampler.kind != self._followed:
            shares = sampler.positive_shares()
            self._drawn.copy_(shares > 0)
            self.log_shares.copy_(torch.where(shares > 0, shares, 1.0).log())
            self._followed = sampler.kind

    def __call__(
        self,
        final: Tables,
        layer0: Tables,
        batch: Batch,
        l2: float,
        scale: Tensor | None = None,
        names: Batch | None = None,
    ) -> Losses:
        if self._takes_one_pass(batch) and scale is None:
            ranking, penalty = fused_softmax(final, layer0, batch, self._candidates())
        elif self._takes_distinct_rows(batch if names is None else names) and scale is None:
            ranking, penalty = self._distinct_ranking(final, batch, names), l2_of_batch(layer0, batch)
        else:
            rows, penalty = self._columns.whole_rows(self._rows(final, batch), l2_of_batch(layer0, batch))
            ranking = self._ranking(rows, batch if names is None else names, scale)
        return Losses(ranking + l2 * penalty, {SOFTMAX: ranking, "l2": penalty})

    def ranked(self, vectors: Tables) -> Tables:
        units = Tables(*map(unit_rows, vectors))
        if self.options.item_lengths == 0:
            return units
        lengths = vectors.items.norm(dim=1, keepdim=True)
        return units._replace(items=units.items * lengths**self.options.item_lengths)

    def _takes_one_pass(self, batch: Batch) -> bool:
        """On CUDA; what is seldom asked for has no kernels of its own."""
        options, alone = self.options, self._columns.size == 1
        usual = options.candidates == "batch" and options.known == "keep" and alone
        return usual and fits(batch, options.candidate_rows)

    def _candidates(self) -> Candidates:
        options = self.options
        return Candidates(
            self.log_shares,
            self._drawn,
            options.temperature,
            options.gamma,
            options.candidate_rows,
            _operands(self._precision),
        )

    def ranking(self, final: Tables, batch: Batch, scale: Tensor | None = None) -> Tensor:
        """(3) without its L2 term."""
        if self._takes_distinct_rows(batch) and scale is None:
            return self._distinct_ranking(final, batch)
        return self._ranking(self._rows(final, batch), batch, scale)

    def _takes_distinct_rows(self, names: Batch) -> bool:
        """On CPU, which may look at a batch before it decides. Ranks exchange the rows of all triples."""
        usual = self.options.candidates == "batch" and self.options.known == "keep" and self._columns.size == 1
        if names.weight.device.type != "cpu" or not usual:
            return False
        items, copies = names.positives.unique(return_counts=True)
        in_a_chunk = int(copies.max()) * min(1.0, self.options.candidate_rows / len(names.positives))
        drawn = bool(self._drawn.index_select(0, items).all())
        return drawn and in_a_chunk <= MOST_COPIES and bool((names.weight > 0).any())

    def _distinct_ranking(self, final: Tables, batch: Batch, names: Batch | None = None) -> Tensor:
        """`_ranking` of the distinct users and positives."""
        real = (batch.weight > 0).nonzero().squeeze(1)  # padding comes last: chunks stay what they are without it
        users, of_user = batch.users.index_select(0, real).unique(return_inverse=True)
        items, of_item = batch.positives.index_select(0, real).unique(return_inverse=True)
        keys = (batch if names is None else names).positives.index_select(0, real)
        bias = self.log_shares.new_empty(len(items)).index_copy_(0, of_item, self.log_shares.index_select(0, keys))
        return distinct_softmax(
            unit_rows(final.users.index_select(0, users)) / self.options.temperature,
            unit_rows(final.items.index_select(0, items)),
            bias * (self.options.gamma - 1.0),
            Pairs(of_user, of_item, batch.weight.index_select(0, real)),
            self.options.candidate_rows,
        )

    def _rows(self, final: Tables, batch: Batch) -> list[Tensor]:
        """Of users and positives, and of the candidates where they are others."""
        rows = [final.users.index_select(0, batch.users), final.items.index_select(0, batch.positives)]
        return rows if self.options.candidates == "batch" else [*rows, final.items.index_select(0, batch.negatives)]

    def _ranking(self, rows: list[Tensor], batch: Batch, scale: Tensor | None) -> Tensor:
        users = unit_rows(rows[0]) / self.options.temperature
        users = users if scale is None else users * scale.unsqueeze(1)
        positives = unit_rows(rows[1])
        candidates = positives if self.options.candidates == "batch" else unit_rows(rows[2])
        return sampled_softmax(users, positives, candidates, self._problem(batch))

    def _problem(self, batch: Batch) -> Problem:
        real = batch.weight > 0
        if self.options.candidates == "batch":
            keys = batch.positives
            own_bias = self.log_shares.index_select(0, keys) * (self.options.gamma - 1.0)
            bias = own_bias.masked_fill(~(real & self._drawn.index_select(0, keys)), -torch.inf)
        else:
            keys = batch.negatives
            own_bias = torch.zeros_like(batch.weight)
            bias = own_bias.masked_fill(~real, -torch.inf)
        known = None if self._owned is None else _Known(self._owned, batch.users, keys)
        return Problem(
            batch.weight,
            batch.positives,
            own_bias,
            keys,
            bias,
            self.options.candidate_rows,
            known,
            _operands(self._precision),
        )


class _Known:
    """Candidates that the user of a row owns."""

    def __init__(self, owned: OwnedItems, users: Tensor, items: Tensor) -> None:
        self._owned, self._users, self._items = owned, users, items

    def __call__(self, rows: slice, candidates: slice) -> Tensor:
        users, items = self._users[rows], self._items[candidates]
        shape = (len(users), len(items))
        pairs = (users.unsqueeze(1).expand(shape).flatten(), items.expand(shape).flatten())
        return self._owned(*pairs).view(shape).bool()


def _owned_items(graph: BipartiteGraph) -> OwnedItems:
    needed = OwnedItems.bytes_of(graph)
    if needed > KNOWN_BYTES:
        raise ConfigError(
            f"method.known is 'mask', which keeps a bit per user and item, {needed / 2**30:.1f} GiB here; at most "
            f"{KNOWN_BYTES / 2**30:g} GiB are allowed, use method.known=keep"
        )
    return OwnedItems(graph)


def _operands(precision: str) -> torch.dtype:
    """What matrix products on CUDA multiply: as in propagation, bfloat16 unless more is asked for."""
    if precision in ("float32", "tf32"):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        return torch.float32
    return torch.bfloat16


class HasLoss(Protocol):
    """What a `BackboneMethod` reads of its configuration: `LossOptions`, or a configuration with one loss."""

    @property
    def softmax(self) -> SoftmaxOptions | None: ...

    @property
    def l2(self) -> float: ...


def loss_of(config: HasLoss) -> str:
    """Its name."""
    return BPR if config.softmax is None else SOFTMAX


def backbone_loss(options: SoftmaxOptions | None, graph: BipartiteGraph, columns: Columns = WHOLE) -> BackboneLoss:
    """The loss that a configuration asks for."""
    return BprLoss(columns) if options is None else SoftmaxLoss(options, graph, columns)


HasLossT = TypeVar("HasLossT", bound=HasLoss)


class BackboneMethod(EncoderMethod[HasLossT]):
    """An `EncoderMethod` that ranks by the loss of the backbone, which `prepare` makes beside the encoder."""

    ranking: BackboneLoss

    def ranks_by_cosine(self) -> bool:
        return self.ranking.by_cosine

    def fold_in(self) -> FoldIn:
        return fold_in_by_degree(self.encoder, by_cosine=self.ranks_by_cosine())

    def scorer(self) -> Scorer:
        with torch.no_grad():
            return self.scorer_of(self.encoder.whole(self.encoder()))

    def ranked(self, vectors: Tables) -> Tables:
        return self.ranking.ranked(vectors)

    def scorer_of(self, vectors: Tables) -> Scorer:
        """Ranking by propagated vectors."""
        return DotScorer(self.ranked(vectors))

    def begin_epoch(self, ctx: EpochContext) -> None:
        if ctx.sampler is not None:
            self.ranking.follow(ctx.sampler)

    def loss(self, batch: Batch) -> Losses:
        rows = self.encoder.batch_rows(batch)
        return self.ranking(rows.final, rows.layer0, rows.batch, self.config.l2, names=batch)
