"""GALORE (graph augmentation for long-tail recommendation): Luo, Ma, Xiao, Song, "Improving Long-Tail Item
Recommendation with Graph Augmentation", CIKM 2023 (official code: sichunluo/GALORE).

LightGCN is trained to convergence, then fine-tuned on graphs that favour the long tail. Every epoch has a graph of its
own: edges are sampled by the degrees of their ends, tail items are joined to head items that share their users, and
negatives are mixed with positives.

    g(d)  = min(1, 1 / ln(d + 1))                                                          (1)
    k_x   = clip((g(d_x) - g_min) / (g_max - g_min), 0.5, 1)                               (2)
    floor((1 - rho) E) edges are drawn with p_(u,i) proportional to k_u k_i
    (a, b): for a tail item a, b uniform among the `candidate_heads` heads of largest C[a,b],  C = R^T R;
            kept if a and b are in one k-means cluster of the current E^(0)                (3)
    A'    = drawn edges, with multiplicity, + the edges (a, b);   W = D'^-1/2 A' D'^-1/2    (4)
    E     = mean over l = 0..L of W^l E^(0)                                                (5)
    e_j'  = (1 - v) e_j + v e_i,   v ~ U(0, `mixup_bound`) for each triple                 (6)
    loss  = mean softplus(e_u.e_j' - e_u.e_i) + l2 * L2                                    (7)

Since e_u.(e_i - e_j') = (1 - v) e_u.(e_i - e_j), mixing (6) scales the margin, and is computed so; with `loss=softmax`
the same holds for the unit vectors, of which every candidate is mixed with the positive. Head items are the most
popular fifth of the items with training interactions, tail items all others; g_min and g_max are over the users, or
items, with interactions. Fine-tuning may never come back to where it started, so its start, which is the LightGCN of
stage 1, counts as epoch 0: by validation the method cannot end below its own first stage. Recommending uses the graph
of LightGCN, the tuned E^(0) and the pooling of (5).

| symbol | here |
|---|---|
| rho | `drop_rate` |
| k_u, k_i | `graph.keep_factors` |
| C, sorted | `graph.candidate_heads` |
| A', W | `graph.AugmentedGraph`: `weights` on the fixed pattern, `added` item-item edges |
| v | `mix`: scores of a triple are multiplied by 1 - v |
| reg | `l2` |

Deviations. The paper drops edges of the head; the code draws with replacement, so that repeated edges count more and
many are lost beyond rho (`edge_sampling`), and reverses (2) for items, which keeps the head (`item_keep`). It pools (5)
from l = 1 on, and so does `pool_layer0=false`; ours keeps layer 0, with which stage 1 was trained. Its L2 term is reg
(|U|_F + |I|_F), not squared, over the propagated rows of the batch's users and positives (`l2_form=official`); ours is
LightGCN's. Preset `galore_code` chooses what the code does. It adds 1e-7 within the logarithm of (7); we use softplus.
It sorts all heads, so that a tail item that shares no user gets an arbitrary one; ours gets none. It counts popularity
on train and validation, we on train. Stage 1 is not in the repository: here it is stage `pretrain`, LightGCN itself, or
a run of it given by `caged train --init RUN`. Clusters come from a k-means of our own, with the same start in every
epoch. Triples come from the sampler of training. The paper itself was not at hand: what is called its own here is from
its abstract.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from caged.config import option
from caged.errors import ConfigError
from caged.graph import Batch, BipartiteGraph, Tables
from caged.graph.item_edges import propagate_with_items
from caged.models.backbone_loss import BackboneMethod, backbone_loss
from caged.models.contract import EpochContext, Losses, Stage, State
from caged.models.galore.graph import DRAWS, AugmentedGraph
from caged.models.lightgcn import LightGCNConfig, backbone, layer_weights
from caged.seeding import Generators

PRETRAIN, FINETUNE = "pretrain", "finetune"
_CODE = "GALORE code"


@dataclass(frozen=True)
class GALOREConfig(LightGCNConfig):
    drop_rate: float = option(
        0.1,
        "share rho of the user-item edges that an epoch leaves out",
        source=_CODE,
        minimum=0,
        maximum=0.9,
        search=(0.05, 0.1, 0.2, 0.3),
    )
    item_keep: str = option(
        "paper",
        "which items keep their edges: paper, the rare ones, by (2); code, the popular ones",
        source="GALORE paper, abstract; its code does the reverse",
        choices=("paper", "code"),
    )
    edge_sampling: str = option(
        "without",
        "edges are drawn without or with replacement",
        source="GALORE paper, abstract (dropping); its code draws with replacement",
        choices=tuple(DRAWS),
    )
    candidate_heads: int = option(
        3, "head items among which the partner of a tail item is drawn in (3); 0 adds no edges", source=_CODE, minimum=0
    )
    clusters: int = option(
        3, "clusters of items, within which edges are added; 1: no filter", source=_CODE, minimum=1, search=(1, 3, 5)
    )
    mixup_bound: float = option(
        0.5,
        "largest share v of the positive in a mixed negative (6); 0: plain negatives",
        source=_CODE,
        minimum=0,
        maximum=0.5,
        search=(0.0, 0.25, 0.5),
    )
    pool_layer0: bool = option(
        True,
        "layer 0 counts in the mean (5), as in LightGCN",
        source="our choice: stage 1 is trained so, and better on validation of MovieLens-1M; not in the GALORE code",
    )
    l2_form: str = option(
        "common",
        "L2 term of fine-tuning: common, LightGCN's; official, norms of propagated rows",
        source="our choice: the same as in all methods; the GALORE code has official",
        choices=("common", "official"),
    )
    pretrain_epochs: int | None = option(
        None,
        "maximum epochs of stage pretrain; none: train.epochs",
        source="GALORE code: starts from a converged LightGCN",
        minimum=1,
    )
    finetune_epochs: int | None = option(
        60, "maximum epochs of stage finetune; none: train.epochs", source=_CODE, minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers == 0 and not self.pool_layer0:
            raise ConfigError(
                "method.layers is 0, and method.pool_layer0=false pools the layers from 1 on; use at least one layer, "
                "or method.pool_layer0=true"
            )


def pooling(config: GALOREConfig, stage: str) -> tuple[float, ...]:
    """Layer weights a_0..a_L: LightGCN's in `pretrain`, those of (5) in `finetune`."""
    if stage == PRETRAIN or config.pool_layer0:
        return layer_weights(config.layers, config.layer_scale)
    return (0.0, *layer_weights(config.layers - 1, config.layer_scale))


def official_l2(final: Tables, batch: Batch) -> Tensor:
    """|U|_F + |I|_F of the propagated rows of users and positives, with multiplicity, padding left out."""
    real = (batch.weight > 0).unsqueeze(1)
    users, positives = final.users.index_select(0, batch.users), final.items.index_select(0, batch.positives)
    norms: Tensor = torch.linalg.vector_norm(users * real) + torch.linalg.vector_norm(positives * real)
    return norms


class GALORE(BackboneMethod[GALOREConfig]):
    stage: str
    _given: Tables | None = None
    _augmented: AugmentedGraph | None = None

    def start_from(self, tables: Tables) -> None:
        """Take E^(0) of a trained LightGCN in place of stage `pretrain`. To be called before `prepare`."""
        self._given = tables

    def stages(self) -> tuple[Stage, ...]:
        finetune = Stage(FINETUNE, self.config.finetune_epochs, fresh_optimizer=True, start_counts=True)
        if self._given is not None:
            return (finetune,)
        return (Stage(PRETRAIN, self.config.pretrain_epochs), finetune)

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        self._graph = graph
        self._generators = generators
        self._mixup = generators["mixup"]
        self.encoder = backbone(self.config, graph, generators)
        self.ranking = backbone_loss(self.config.softmax, graph)
        if self._given is not None:
            with torch.no_grad():
                for table, given in zip(self.encoder.layer0, self._given, strict=True):
                    table.copy_(given)
        self._augmented = None
        self._enter(PRETRAIN)  # given tables are a LightGCN, too, until the first epoch of fine-tuning

    @property
    def augmented(self) -> AugmentedGraph:
        """The graph of the epoch. Made when fine-tuning first needs it: recommending never does."""
        if self._augmented is None:
            self._augmented = AugmentedGraph(
                self._graph,
                item_keep=self.config.item_keep,
                edge_sampling=self.config.edge_sampling,
                drop_rate=self.config.drop_rate,
                candidate_count=self.config.candidate_heads,
                clusters=self.config.clusters,
                generators=self._generators,
            )
        return self._augmented

    def begin_epoch(self, ctx: EpochContext) -> None:
        super().begin_epoch(ctx)
        self._enter(ctx.stage)
        if self.stage == FINETUNE:
            ctx.log.update(self.augmented.rebuild(self.encoder.items.detach()))

    def loss(self, batch: Batch) -> Losses:
        if self.stage == PRETRAIN:
            return super().loss(batch)
        final = self._propagated(batch)
        mix = self.config.mixup_bound * torch.rand(len(batch.users), generator=self._mixup, device=batch.weight.device)
        losses = self.ranking(final, self.encoder.layer0, batch, self.config.l2, scale=1 - mix)
        if self.config.l2_form == "common":
            return losses
        ranking, penalty = losses.parts[self.config.loss], official_l2(final, batch)
        return Losses(ranking + self.config.l2 * penalty, {self.config.loss: ranking, "l2": penalty})

    def capture_key(self) -> Hashable:
        return self.stage

    def state(self) -> State:
        """The graph of an epoch is drawn at its beginning, so between epochs there is none to remember."""
        return State(self.encoder.state(), {"stage": self.stage})

    def load_scalars(self, scalars: Mapping[str, Any]) -> None:
        self._enter(scalars["stage"])

    def _propagated(self, batch: Batch) -> Tables:
        """(5) on the graph of the epoch; the rows of the batch are right and no others may be used."""
        tables, graph = self.encoder.layer0, self.augmented
        layers, rows = self.encoder.layer_weights, self.encoder.rows_of(batch)
        return propagate_with_items(graph.weights, graph.added, tables, layers, rows)

    def _enter(self, stage: str) -> None:
        self.stage = stage
        self.encoder.layer_weights = pooling(self.config, stage)
