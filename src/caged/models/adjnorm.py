"""AdjNorm: Zhao et al., "Investigating Accuracy-Novelty Performance for Graph-based Collaborative Filtering",
SIGIR 2022 (official code: fuxiAIlab/r-AdjNorm).

LightGCN divides a message by the square roots of both degrees. AdjNorm moves the exponent between target and source,
which trades accuracy against novelty without a parameter to learn or an operation to add. Rows are targets:

    W_r     = D^(r-1) A D^(-r),    W_r[x, y] = 1 / (d_x^(1-r) d_y^r)                       (1)
    E^(l)   = W_r E^(l-1)                                                                  (2)

Pooling, score and loss are those of LightGCN, (3) to (5) there. r = 1/2 is LightGCN, r = 0 the mean over neighbours
(rows sum to one), r = 1 the opposite (columns sum to one). All W_r = D^r (D^-1 A) D^-r are similar matrices; the
leading right eigenvector is d^r, so under deep propagation a larger r lets norms, and scores, grow with degree. Which r
debiases is a question to the validation data.

| symbol | here |
|---|---|
| r | `r` |
| W_r | `degree_weights(graph, r)`; its transpose, which backward needs, is W_(1-r) |
| A + I | `self_loop`: `loop_weights`, `propagate_with_loops` |

Deviations. The official code offers two adjacencies: one adds I to A before normalising, so that every degree grows by
one and r = 1/2 is no longer LightGCN (its README uses this one; here `self_loop`), the other does not (our default).
It applies the L2 term to the propagated rows of the batch (here `l2_on=propagated`); ours is LightGCN's. It starts from
Xavier-uniform tables; ours are those of all methods here. r above 1 gives heavy nodes weights above one: watch for
overflow from 1.25 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from caged.config import option
from caged.errors import ConfigError
from caged.graph import (
    Batch,
    BipartiteGraph,
    FactoredWeights,
    Tables,
    Weights,
    degree_factors,
    degree_weights,
    propagate,
)
from caged.models.backbone_loss import BackboneMethod, backbone_loss
from caged.models.contract import Losses, Scorer
from caged.models.encoder import TABLES
from caged.models.fold_in import FoldIn, fold_in_by_degree
from caged.models.lightgcn import LightGCNConfig, backbone
from caged.seeding import Generators


@dataclass(frozen=True)
class AdjNormConfig(LightGCNConfig):
    r: float = option(
        0.5,
        "exponent of the source's degree in (1); the target's is 1 - r; 0.5 is LightGCN",
        source="r-AdjNorm code, parser",
        search=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5),
    )
    self_loop: bool = option(
        False,
        "add every node to its own neighbours before normalising",
        source="r-AdjNorm code, adj_type=mean; its README uses norm, which adds them",
    )
    l2_on: str = option(
        "layer0",
        "rows of the batch in the L2 term",
        source="LightGCN code; the r-AdjNorm code takes the propagated ones",
        choices=("layer0", "propagated"),
    )

    def neutral(self) -> str | None:
        if self.r != 0.5 or self.self_loop or self.l2_on != "layer0":
            return None
        return "adjnorm at method.r=0.5 is LightGCN; set another r, such as 0.25 or 1, to change anything"


def loop_weights(graph: BipartiteGraph, r: float, dtype: torch.dtype = torch.float32) -> tuple[Weights, Tables]:
    """(1) of A + I: the weights of the edges, and of the loops as a column per side. Degrees count the loop."""
    user_degrees, item_degrees = (side.to(torch.float64) + 1 for side in (graph.user_degrees, graph.item_degrees))
    edges = FactoredWeights(graph, degree_factors(user_degrees, item_degrees, r), dtype)
    loops = Tables(*(side.reciprocal().to(dtype).unsqueeze(1) for side in (user_degrees, item_degrees)))
    return edges, loops


def propagate_with_loops(weights: Weights, loops: Tables, tables: Tables, layer_weights: Sequence[float]) -> Tables:
    """sum_l layer_weights[l] * (W + diag(loops))^l tables, by Horner's rule with one shared product per layer."""
    *lower, last = layer_weights
    hidden = Tables(last * tables.users, last * tables.items)
    for layer_weight in reversed(lower):
        messages = propagate(weights, hidden, (0.0, 1.0))
        users, items = (
            message + loop * own + layer_weight * start
            for message, loop, own, start in zip(messages, loops, hidden, tables, strict=True)
        )
        hidden = Tables(users, items)
    return hidden


class AdjNorm(BackboneMethod[AdjNormConfig]):
    by_columns = TABLES
    loops: Tables | None

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        weights: Weights
        if self.config.self_loop:
            weights, self.loops = loop_weights(graph, self.config.r)
        else:
            weights, self.loops = degree_weights(graph, self.config.r), None
        self.encoder = backbone(self.config, graph, generators, weights, columns=self.columns)
        self.ranking = backbone_loss(self.config.softmax, graph, self.columns)

    def loss(self, batch: Batch) -> Losses:
        final = self._propagated(batch)
        penalised = final if self.config.l2_on == "propagated" else self.encoder.layer0
        return self.ranking(final, penalised, batch, self.config.l2)

    def fold_in(self) -> FoldIn:
        if self.loops is not None:
            raise ConfigError(
                "adjnorm with method.self_loop=true adds a person's own vector to every layer, and a new person has "
                "none; train with method.self_loop=false for new people"
            )
        return fold_in_by_degree(self.encoder, self.config.r, by_cosine=self.ranks_by_cosine())

    def scorer(self) -> Scorer:
        with torch.no_grad():
            return self.scorer_of(self.encoder.whole(self._propagated()))

    def _propagated(self, batch: Batch | None = None) -> Tables:
        if self.loops is None:
            return self.encoder(batch)
        encoder = self.encoder
        return propagate_with_loops(encoder.weights, self.loops, encoder.layer0, encoder.layer_weights)
