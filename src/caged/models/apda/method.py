"""APDA: Zhou et al., "Adaptive Popularity Debiasing Aggregator for Graph Collaborative Filtering", SIGIR 2023 (official
code: huachzhou/APDA).

Popularity shows in representation space: a neighbour whose embedding is close to the centre already carries it. So the
weight of a message grows with the squared distance of the two unit vectors, |a - b|^2 = 2 - 2 a . b, on top of the
degree normalisation; residual connections keep the rows apart. With n the row-wise L2 normalisation and X0 = n(E^(0)),
a layer takes E^(l-1) to E^(l):

    H      = n(E^(l-1) + rho X0)                                                           (1)
    H~     = H + nu sign(H) n(U),   U uniform on (0, 1) per entry; in training only        (2)
    c_xy   = stopgrad(h~_x) . h~_y                                                         (3)
    s_xy   = (2 - 2 c_xy) / kappa                                                          (4)
    a_xy   = s_xy,   or with `exp_on`   1/2 exp(s_xy) softplus(s_xy)                       (5)
    m_x    = sum_{y in N(x)} a_xy A~[x,y] dropout(h~_y)                                    (6)
    E^(l)  = m + rho (H - X0)                                                              (7)

E is the mean of E^(0) as it is and E^(1..L); score and loss are those of LightGCN, (4) and (5) there. Recommending
takes the same layers without noise and dropout: the weights follow from the trained tables.

| symbol | here |
|---|---|
| rho, kappa | `rho`, `kappa` (`residual_coff`, `exp_coff` in the code) |
| nu | `noise` |
| a_xy and its slope in c | `adaptive_weight` |
| A~[x,y] = 1/sqrt(d_x d_y) | `factors`; 1 with `without=weight_scaling` |
| (3) to (6) and their gradient | `graph.edge_products.adaptive_messages` |

Deviations. The code averages the product (3) over the K dimensions: at K = 256 all weights then lie within 1% of each
other, and the method is in effect LightGCN with scaled weights, normalisation, residuals, noise and dropout. That is
`inner=mean`; our default is the inner product, in which (4) is the squared distance. These are different methods: name
the one a number belongs to. The code reads `--exp_on False` as true, so its command for Epinions runs with the
exponential. It drops entries of each message on its own (`dropout=message`), which takes a mask of 2 E K entries per
layer; dropping entries of a node's row for all its messages (`node`) or whole messages (`edge`) needs none. Its variant
without adaptive weights does not run; `without=adaptive_weight` is a = 1 without the normalisation in (1), and noise
stays an option of its own (that variant has none). It chooses the epoch on the test part and ranks by sigmoid(s). Under
bfloat16 products the weights are rounded by up to 0.4%, about what `inner=mean` lets them differ;
train.precision=float32 keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from caged.config import option
from caged.errors import ConfigError
from caged.graph import Batch, BipartiteGraph, Tables
from caged.graph.edge_products import (
    EdgeFunction,
    EdgeProducts,
    EdgeValues,
    MessageMasks,
    adaptive_messages,
    make_edge_products,
)
from caged.models.apda.rows import source_rows
from caged.models.backbone_loss import BackboneMethod, backbone_loss
from caged.models.contract import Losses, Scorer
from caged.models.fold_in import FoldIn
from caged.models.lightgcn import LightGCNConfig, backbone
from caged.seeding import Generators

_CODE = "APDA code"
GIB = 2**30


@dataclass(frozen=True)
class APDAConfig(LightGCNConfig):
    inner: str = option(
        "sum",
        "c in (3): the inner product, or its mean over the K dimensions",
        source="our choice: (4) is then the squared distance of unit vectors; published is mean, as in the APDA code",
        choices=("sum", "mean"),
        search=("sum", "mean"),
    )
    exp_on: bool = option(
        False, "the exponential form of (5)", source="APDA code, parser; its Gowalla run has it", search=(False, True)
    )
    kappa: float = option(1.1, "divisor in (4)", source="APDA code, parser", above=0, search=(0.9, 1.0, 1.1, 1.3))
    rho: float = option(
        0.6,
        "weight of the residual connections in (1) and (7)",
        source="APDA code, parser and Epinions; 0.2 on Gowalla",
        minimum=0,
        search=(0.0, 0.2, 0.4, 0.6, 0.8),
    )
    noise: float = option(0.1, "length nu of the noise in (2), training only", source=_CODE, minimum=0)
    dropout: str = option(
        "node",
        "what (6) drops: entries of a node's row, whole messages, or entries of each message",
        source="our choice: no mask of E x K; the APDA code does message",
        choices=("node", "edge", "message"),
    )
    dropout_rate: float = option(0.4, "share that (6) drops, training only", source=_CODE, minimum=0, maximum=0.95)
    without: str = option(
        "none",
        "ablation: A~ = 1 in (6); rho = 0; a = 1 and no normalisation in (1)",
        source="APDA code: variants WS, RC and AW",
        choices=("none", "weight_scaling", "residual", "adaptive_weight"),
    )
    memory_gib: float = option(16.0, "memory limit for the masks of dropout=message", above=0)

    @property
    def residual(self) -> float:
        """The rho that is in force."""
        return 0.0 if self.without == "residual" else self.rho

    @property
    def adaptive(self) -> bool:
        return self.without != "adaptive_weight"

    def linear(self, *, training: bool) -> bool:
        """Whether nothing is left but LightGCN."""
        drawn = self.noise > 0 or self.dropout_rate > 0
        return not self.adaptive and self.residual == 0 and not (training and drawn)


# ---------------------------------------------------------------- the maths


def adaptive_weight(products: Tensor, kappa: float, *, exp_on: bool, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """(4) and (5) of c = scale * products, (E,), and the derivative with respect to the products.

    >>> weight, slope = adaptive_weight(torch.tensor([1.0, 0.0, -1.0]), 1.0, exp_on=False)
    >>> weight.tolist(), slope.item()
    ([0.0, 2.0, 4.0], -2.0)
    """
    slope = -2.0 * scale / kappa
    distance = slope * products + 2.0 / kappa  # s
    if not exp_on:
        return distance, distance.new_full((), slope)
    growth, soft = 0.5 * distance.exp(), F.softplus(distance)
    return growth * soft, slope * growth * (soft + torch.sigmoid(distance))


def uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """U of (2)."""
    return torch.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)


def keep(shape: tuple[int, ...], rate: float, generator: torch.Generator) -> Tensor:
    """True with probability 1 - rate."""
    return torch.empty(shape, dtype=torch.bool, device=generator.device).bernoulli_(1.0 - rate, generator=generator)


# ---------------------------------------------------------------- the method


class APDA(BackboneMethod[APDAConfig]):
    factors: EdgeValues  # A~, or ones

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        config = self.config
        self._check_memory(graph)
        self.encoder = backbone(config, graph, generators)
        self.ranking = backbone_loss(config.softmax, graph)
        scaling = self.encoder.weights.to_user  # symmetric: one vector for both directions
        scaling = torch.ones_like(scaling) if config.without == "weight_scaling" else scaling
        self.factors = EdgeValues(scaling, scaling)
        raised = scaling / (1.0 - config.dropout_rate)  # what is left stands for what is dropped
        self._raised = EdgeValues(raised, raised)
        self._products: EdgeProducts = make_edge_products(graph)
        scale = 1.0 / config.embedding_size if config.inner == "mean" else 1.0
        weight = partial(adaptive_weight, kappa=config.kappa, exp_on=config.exp_on, scale=scale)
        self._weight: EdgeFunction | None = weight if config.adaptive else None
        self._noise = generators["noise"]
        self._dropout = generators["dropout"]

    def loss(self, batch: Batch) -> Losses:
        return self.ranking(self.propagated(training=True), self.encoder.layer0, batch, self.config.l2)

    def fold_in(self) -> FoldIn:
        if not self.config.linear(training=False):
            raise ConfigError(
                "apda weights a message by the vectors at both of its ends, and a new person has none yet; use "
                "lightgcn or softmax for new people"
            )
        return super().fold_in()

    def scorer(self) -> Scorer:
        with torch.no_grad():
            return self.scorer_of(self.propagated(training=False))

    def propagated(self, *, training: bool) -> Tables:
        """E of users and items."""
        if self.config.linear(training=training):
            return self.encoder()
        return self.layer_by_layer(training=training)

    def layer_by_layer(self, *, training: bool) -> Tables:
        """The same by (1) to (7), whatever the options."""
        first, *others = self.encoder.layer_weights
        hidden = torch.cat(self.encoder.layer0)  # (M + N, K)
        # X0 = n(E^(0)) is (1) at rho = 0, whatever the second argument; without noise `scored` is H itself.
        start = source_rows(hidden, hidden, rho=0.0).scored
        total = first * hidden
        for weight in others:
            hidden = self._layer(hidden, start, training=training)
            total = torch.add(total, hidden, alpha=weight)
        graph = self.encoder.graph
        return Tables(*torch.split(total, [graph.user_count, graph.item_count]))

    def _layer(self, hidden: Tensor, start: Tensor, *, training: bool) -> Tensor:
        """(1) to (7)"""
        config = self.config
        dropping = config.dropout if training and config.dropout_rate > 0 else None
        noise = config.noise if training else 0.0
        scored, sent, residual = source_rows(
            hidden,
            start,
            rho=config.residual,
            unit=config.adaptive,
            noise=noise,
            uniform=uniform(hidden, self._noise) if noise else None,
            keep=self._keep(tuple(hidden.shape)) if dropping == "node" else None,
        )
        factors = self.factors if dropping is None else self._raised
        masks = None
        if dropping == "edge":
            to_user, to_item = self._keep((2, self.encoder.graph.edge_count))
            factors = EdgeValues(factors.to_user * to_user, factors.to_item * to_item)
        elif dropping == "message":
            to_user, to_item = self._keep((2, self.encoder.graph.edge_count, config.embedding_size))
            masks = MessageMasks(self.encoder.graph, to_user, to_item)
        messages = adaptive_messages(self._products, scored, factors, self._weight, sent=sent, masks=masks)
        return messages if residual is None else messages + residual

    def _keep(self, shape: tuple[int, ...]) -> Tensor:
        return keep(shape, self.config.dropout_rate, self._dropout)

    def _check_memory(self, graph: BipartiteGraph) -> None:
        config = self.config
        needed = 2 * graph.edge_count * config.embedding_size * config.layers / GIB
        if config.dropout == "message" and config.dropout_rate > 0 and needed > config.memory_gib:
            raise ConfigError(
                f"method.dropout is 'message', whose masks take {needed:.3g} GiB here; method.memory_gib allows "
                f"{config.memory_gib:g}, use method.dropout=node or edge, or raise it"
            )
