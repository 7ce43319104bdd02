"""LightGCN: He et al., "LightGCN: Simplifying and Powering Graph Convolution Network for Recommendation", SIGIR 2020.

Collaborative filtering by repeated linear averaging over the user-item graph; only the layer-0 tables are trained.

    e_u^(l) = sum_{i in N(u)} e_i^(l-1) / sqrt(d_u d_i)                                    (1)
    e_i^(l) = sum_{u in N(i)} e_u^(l-1) / sqrt(d_i d_u)                                    (2)
    E       = sum_{l=0..L} a_l E^(l),    a_l = 1/(L+1)                                     (3)
    s_ui    = e_u . e_i                                                                    (4)
    loss    = mean softplus(s_uj - s_ui) + l2 * (1/2B) sum (|e_u^(0)|^2 + |e_i^(0)|^2 + |e_j^(0)|^2)   (5)

| symbol | here |
|---|---|
| E^(0) | `encoder.users`, `encoder.items` |
| 1/sqrt(d_u d_i) | `degree_weights(graph)` |
| a_l | `layer_weights`; proportional to `layer_scale` ** l, uniform at 1 |
| gamma | `l2` |
| (5) without its L2 term | `loss=bpr`; `loss=softmax` is (3) of `softmax.py`, and ranks by cosines instead of (4) |

Deviations. The paper writes the L2 term over all parameters; both public code bases use the layer-0 rows of the batch,
halved and divided by B, and so do we. The released code ranks by sigmoid(s), which saturates in float32 and creates
ties; we rank by s. A node without interactions keeps its row: e = a_0 e^(0).
"""

from __future__ import annotations

from dataclasses import dataclass

from caged.columns import WHOLE, Columns
from caged.config import Range, option
from caged.graph import BipartiteGraph, Weights, degree_weights
from caged.models.backbone_loss import BackboneMethod, LossOptions, backbone_loss
from caged.models.encoder import TABLE_INITS, TABLES, LightGCNEncoder
from caged.seeding import Generators

L2_RANGE = Range(1e-6, 1e-2, "log")  # what tuning tries; the same for every method that has this term


@dataclass(frozen=True)
class BackboneConfig:
    """The encoder: what every method that is built on LightGCN has."""

    embedding_size: int = option(64, "width K of the tables", source="LightGCN paper, section 4.1.2", minimum=1)
    layers: int = option(
        3,
        "propagation layers L; 0 is matrix factorisation",
        source="LightGCN paper, section 4.1.2",
        minimum=0,
    )
    l2: float = option(
        1e-4,
        "weight of the L2 term (5)",
        source="LightGCN paper, section 4.1.2",
        minimum=0,
        search=L2_RANGE,
    )
    layer_scale: float = option(
        1.0,
        "layer weights a_l proportional to layer_scale ** l; 1 is the mean",
        source="our control: the scale of the edge weights without an estimator",
        above=0,
    )
    table_init: str = option(
        "normal",
        "start of the tables: N(0, 0.1^2), or Xavier-normal",
        source="LightGCN code; the AdvDrop code starts Xavier-normal, its LightGCN too",
        choices=TABLE_INITS,
    )


@dataclass(frozen=True)
class LightGCNConfig(LossOptions, BackboneConfig):
    """The encoder and its ranking loss."""


def layer_weights(layers: int, scale: float) -> tuple[float, ...]:
    """a_l = scale^l / sum_m scale^m, l = 0..layers.

    >>> layer_weights(3, 1.0)
    (0.25, 0.25, 0.25, 0.25)
    >>> layer_weights(1, 3.0)
    (0.25, 0.75)
    """
    powers = [scale**layer for layer in range(layers + 1)]
    return tuple(power / sum(powers) for power in powers)


def backbone(
    config: BackboneConfig,
    graph: BipartiteGraph,
    generators: Generators,
    weights: Weights | None = None,
    init_stream: str = "init",
    columns: Columns = WHOLE,
) -> LightGCNEncoder:
    """The encoder of (1) to (3), which methods build on; other `weights` than 1/sqrt(d_u d_i) where given."""
    return LightGCNEncoder(
        graph,
        degree_weights(graph) if weights is None else weights,
        embedding_size=config.embedding_size,
        layer_weights=layer_weights(config.layers, config.layer_scale),
        generators=generators,
        table_init=config.table_init,
        init_stream=init_stream,
        columns=columns,
    )


class LightGCN(BackboneMethod[LightGCNConfig]):
    by_columns = TABLES

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        self.encoder = backbone(self.config, graph, generators, columns=self.columns)
        self.ranking = backbone_loss(self.config.softmax, graph, self.columns)
