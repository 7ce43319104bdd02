"""IPS aggregation: LightGCN whose messages weigh by inverse popularity, at a fixed or a learned exponent. A control.

CAGED estimates how likely a history is and lets the estimate into the edge weights. Inverse propensity says the same
with degrees alone: whoever is met often because it is popular should count less. Ours; no publication is followed. Rows
are targets x, y their neighbours:

    w_a[x, y] = F(x) d_y^-a / sum_{z in N(x)} d_z^-a,    F(x) = sum_{z in N(x)} 1/sqrt(d_x d_z)                (1)
    E^(l)     = W_a E^(l-1)                                                                                   (2)

Pooling, score and loss are those of LightGCN, (3) to (5) there. F(x) is the sum of LightGCN's row, so a changes how the
neighbours of a node compare and never how much they weigh together: a = 1/2 is LightGCN, a = 0 the flat rows of CAGED's
control `uniform`, a = 1 inverse propensity with the degree as propensity. AdjNorm at r = a has rows of the same
proportions and other sums.

As a matrix it is LightGCN's W between two diagonals, which are numbers per node:

    W_a = diag(c) W diag(s),    s_y = d_y^(1/2 - a),    c_x = F(x) / sum_{z in N(x)} W[x, z] s_z              (3)

A learned exponent is one number for the whole graph, trained with the tables. By (3) a step of it takes the products of
LightGCN with LightGCN's weights and scales rows before and after; what a changes of a row is found there, too:

    ds_y/da = -log d_y s_y,    dc_x/da = c_x sum_{z in N(x)} W[x, z] s_z log d_z / sum_{z in N(x)} W[x, z] s_z   (4)

| symbol | here |
|---|---|
| a | `degree_exponent`; where `learned`, its start |
| s, c | `Scales.sent`, `Scales.received` |
| W_a | `popularity_weights`, edge by edge; `propagate_scaled`, by (3) |

`when=inference` trains with LightGCN's weights and ranks with (1): validation, and with it the chosen epoch, sees the
ranking. The exponent cannot be learned then, because the loss does not depend on it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from caged.config import option
from caged.errors import ConfigError
from caged.graph import Batch, BipartiteGraph, EdgeWeights, Tables, Weights, degree_weights, propagate
from caged.models.backbone_loss import BackboneMethod, backbone_loss
from caged.models.contract import EpochContext, Losses, ParamGroup, Scorer, Stage, State
from caged.models.encoder import LightGCNEncoder
from caged.models.fold_in import FoldIn, fold_in_by_degree
from caged.models.lightgcn import LightGCNConfig, backbone
from caged.seeding import Generators

LIGHTGCN = 0.5
ONE_LAYER = (0.0, 1.0)


@dataclass(frozen=True)
class IPSAggregationConfig(LightGCNConfig):
    degree_exponent: float = option(
        1.0,
        "a in (1): neighbours weigh by degree to the -a; 0.5 is LightGCN, 0 weighs all alike; if learned, its start",
        source="our control: the degree as propensity",
        minimum=-10,
        maximum=10,
        search=(0.0, 0.25, 0.75, 1.0, 1.5),
    )
    learned: bool = option(False, "train the exponent with the tables", source="our control")
    when: str = option(
        "training",
        "training: tables are trained and rank with these weights; inference: they are trained with LightGCN's",
        source="our control",
        choices=("training", "inference"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learned and self.when == "inference":
            raise ConfigError(
                "method.learned is true, but with method.when=inference the loss does not depend on the exponent; set "
                "method.when=training, or method.learned=false and method.degree_exponent"
            )
        if self.learned and self.layers == 0:
            raise ConfigError(
                "method.learned is true, but method.layers is 0: there are no messages to weigh; set method.layers to "
                "1 or more, or method.learned=false"
            )

    def neutral(self) -> str | None:
        if self.learned or self.degree_exponent != LIGHTGCN:
            return None
        return (
            "ips_aggregation at method.degree_exponent=0.5 is LightGCN; set another, such as 0 or 1, to change anything"
        )


class Scales(NamedTuple):
    """The two diagonals of (3), a column per side."""

    sent: Tables  # s of the node that a message comes from
    received: Tables  # c of the node that it goes to


class PopularityScales:
    """(3) on one graph, for any exponent."""

    def __init__(self, graph: BipartiteGraph, weights: Weights) -> None:
        """`weights` are LightGCN's."""
        self._logs = Tables(*(_log_degrees(side) for side in (graph.user_degrees, graph.item_degrees)))
        to_item = weights.to_item.index_select(0, graph.by_item)
        self._to_user = _Rows(graph.user_offsets, graph.items, weights.to_user)
        self._to_item = _Rows(graph.item_offsets, graph.item_users, to_item)

    def __call__(self, exponent: Tensor) -> Scales:
        """In float64, differentiable in the exponent (1,), without waiting for the device."""
        power = LIGHTGCN - exponent.double()
        sent = Tables(*(torch.exp(power * logs) for logs in self._logs))
        with torch.no_grad():
            users, of_users = self._to_user.scales(sent.items, self._logs.items)
            items, of_items = self._to_item.scales(sent.users, self._logs.users)
        nothing = exponent.double() - exponent.detach().double()  # 0, with the gradient of the exponent
        received = (users + of_users * nothing, items + of_items * nothing)
        columns = [Tables(*(side.unsqueeze(1) for side in sides)) for sides in (sent, received)]
        return Scales(*columns)


def _log_degrees(degrees: Tensor) -> Tensor:
    return degrees.clamp_min(1).double().log()  # a node without edges neither sends nor receives


class _Rows:
    """The rows of W whose targets are one side of the graph."""

    def __init__(self, offsets: Tensor, neighbours: Tensor, weights: Tensor) -> None:
        self._offsets, self._neighbours, self._weights = offsets, neighbours, weights.double()
        self._usual = self._sums(self._weights)  # F

    def scales(self, sent: Tensor, logs: Tensor) -> tuple[Tensor, Tensor]:
        """c of (3) and its slope (4), from s and log d of the neighbours; zero where there are none.

        At a = 1/2 both sums in c are of the same numbers in the same order, so that it is one to the bit.
        """
        near = self._weights * sent.index_select(0, self._neighbours)
        sums = self._sums(near)
        scales = torch.where(sums > 0, self._usual / sums, 0.0)
        tilted = self._sums(near * logs.index_select(0, self._neighbours))
        return scales, torch.where(sums > 0, scales * tilted / sums, 0.0)

    def _sums(self, values: Tensor) -> Tensor:
        """Row by row in a fixed order; unsafe: the offsets are sound, and looking at them would wait for the device."""
        return torch.segment_reduce(values, "sum", offsets=self._offsets, initial=0.0, unsafe=True)


@torch.no_grad()
def popularity_weights(graph: BipartiteGraph, weights: Weights, scales: Scales) -> tuple[Tensor, Tensor]:
    """(1) for every edge, to users and to items, by (3); at a = 1/2 they are `weights`, LightGCN's, to the bit."""

    def per_edge(column: Tensor, ends: Tensor) -> Tensor:
        return column.squeeze(1).index_select(0, ends)

    sent, received = scales
    to_user = weights.to_user * per_edge(sent.items, graph.items) * per_edge(received.users, graph.users)
    to_item = weights.to_item * per_edge(sent.users, graph.users) * per_edge(received.items, graph.items)
    return to_user.to(weights.to_user.dtype), to_item.to(weights.to_item.dtype)


def propagate_scaled(weights: Weights, scales: Scales, tables: Tables, layer_weights: Sequence[float]) -> Tables:
    """sum_l layer_weights[l] * W_a^l tables by (3), differentiable in the tables and in the scales."""
    sent, received = (Tables(*(column.to(tables.users.dtype) for column in part)) for part in scales)
    *lower, last = layer_weights
    hidden = Tables(last * tables.users, last * tables.items)
    for layer_weight in reversed(lower):
        messages = propagate(weights, Tables(sent.users * hidden.users, sent.items * hidden.items), ONE_LAYER)
        users, items = (
            scale * message + layer_weight * start
            for scale, message, start in zip(received, messages, tables, strict=True)
        )
        hidden = Tables(users, items)
    return hidden


class IPSAggregation(BackboneMethod[IPSAggregationConfig]):
    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        config = self.config
        usual = degree_weights(graph)
        self.scales = PopularityScales(graph, usual)
        start = torch.tensor([config.degree_exponent], device=graph.device)
        self.exponent = nn.Parameter(start, requires_grad=config.learned)
        self.weights = EdgeWeights(graph, *popularity_weights(graph, usual, self.scales(self.exponent)))
        by_popularity = config.when == "training" and not config.learned
        self.encoder = backbone(config, graph, generators, self.weights if by_popularity else usual)
        self._ranking_encoder = copy.copy(self.encoder)  # the same tables
        self._ranking_encoder.weights = self.weights
        self.ranking = backbone_loss(config.softmax, graph)

    def parameters(self, stage: Stage) -> list[ParamGroup]:
        exponent = [self.exponent] if self.config.learned else []
        return [{"params": [*self.encoder.parameters, *exponent]}]

    def loss(self, batch: Batch) -> Losses:
        if not self.config.learned:
            return super().loss(batch)
        encoder = self.encoder
        final = propagate_scaled(encoder.weights, self.scales(self.exponent), encoder.layer0, encoder.layer_weights)
        return self.ranking(final, encoder.layer0, batch, self.config.l2)

    def end_epoch(self, ctx: EpochContext) -> None:
        if self.config.learned:
            ctx.log["exponent"] = self.exponent.item()

    def history_encoder(self) -> LightGCNEncoder:
        """The one that ranks, with the weights of the exponent as it is now."""
        if self.config.learned:
            encoder = self.encoder
            self.weights.assign(*popularity_weights(encoder.graph, encoder.weights, self.scales(self.exponent)))
        return self._ranking_encoder

    def scorer(self) -> Scorer:
        with torch.no_grad():
            return self.scorer_of(self.history_encoder()())

    def fold_in(self) -> FoldIn:
        note = "scores of new people have another scale than those of people in training; their order is the same"
        by_cosine = self.ranks_by_cosine()
        exponent = self.exponent.item()
        return fold_in_by_degree(self.history_encoder(), exponent, by_cosine=by_cosine, note="" if by_cosine else note)

    def state(self) -> State:
        learned = {"exponent": self.exponent.data} if self.config.learned else {}
        return State({**self.encoder.state(), **learned}, {})
