"""Reg: penalise the correlation of scores with popularity. Zhu et al., "Popularity-Opportunity Bias in Collaborative
Filtering", WSDM 2021, as re-implemented in fuxiAIlab/r-AdjNorm; the variant `samreg` after Boratto, Fenu and Marras,
"Connecting user and item perspectives in popularity debiasing for collaborative recommendation", Information Processing
and Management 2021, as re-implemented in Arthurma71/AdvDrop.

A model with popularity bias scores popular items higher even among the items that a user likes. So the score of a
positive pair should not follow the popularity of its item. Over the B triples (u, i, j) of a batch:

    rho     = cov(s_ui, q_i) / ( sqrt(var(s_ui) + eps) sqrt(var(q_i) + eps) )              (1)
    loss    = L_BPR + gamma_reg rho^2                                                      (2)

and for `reg_variant=samreg`, with the margin instead of the score:

    rho     = corr(sigmoid(s_ui - s_uj), q_i),    loss = (1 - w) L_BPR + w rho^2           (3)

L_BPR is the whole loss of LightGCN, (5) there, L2 term included. q carries no gradient. The penalty is squared, so
negative correlation is punished, too, and it is bounded by 1: a weight far below the size of L_BPR does nothing.

| symbol | here |
|---|---|
| s_ui, sigmoid(s_ui - s_uj) | `watched`, of the propagated rows |
| q_i | `popularity_of`: degree d_i, log(1 + d_i) or rank, divided by its maximum, which (1) does not notice |
| rho^2 | `losses.squared_correlation` |
| gamma_reg, w | `reg_weight`, `samreg_weight` |

Deviations. Neither paper's code is public; the formulas are those of the re-implementations named above. They put the
epsilon outside the root, where a batch without variance has no gradient (NaN); here it is inside both. AdvDrop's (3)
takes the L2 term from propagated rows and, by default, inverse popularity as q; the paper also samples pairs of
different popularity ("sam"), which neither AdvDrop nor this file does. `ramp_epochs` is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from caged.config import option
from caged.graph import Batch, BipartiteGraph
from caged.models.contract import EpochContext, Losses
from caged.models.encoder import TABLES, EncoderMethod
from caged.models.lightgcn import BackboneConfig, backbone
from caged.models.losses import bpr, scores_with_l2, squared_correlation
from caged.seeding import Generators


@dataclass(frozen=True)
class RegConfig(BackboneConfig):
    reg_variant: str = option(
        "score",
        "what must not follow popularity: the score of the positive (2) or, as samreg, the margin (3)",
        source="r-AdjNorm code",
        choices=("score", "samreg"),
    )
    reg_weight: float = option(
        1.0,
        "weight gamma_reg of the penalty in (2)",
        source="r-AdjNorm code, parser",
        minimum=0,
        search=(1e-3, 1e-2, 0.1, 1.0, 10.0),
    )
    samreg_weight: float = option(
        0.05,
        "weight w of the penalty in (3)",
        source="AdvDrop code, parser",
        minimum=0,
        maximum=1,
        search=(0.01, 0.05, 0.1, 0.3, 0.5),
    )
    popularity: str = option(
        "raw",
        "q: degree, its logarithm, or its rank; a few heads dominate the raw one",
        source="r-AdjNorm code",
        choices=("raw", "log1p", "rank"),
        search=("raw", "log1p", "rank"),
    )
    ramp_epochs: int = option(
        0, "epochs over which the weight of the penalty grows from 0 to its value; 10 if training stalls", minimum=0
    )


def popularity_of(degrees: Tensor, transform: str) -> Tensor:
    """(N,) degrees -> (N,) float32 popularity q with maximum 1; equal degrees share the mean of their ranks."""
    if transform == "rank":
        ordered = degrees.sort().values
        below, up_to = (torch.searchsorted(ordered, degrees, right=right) for right in (False, True))
        values = (below + up_to + 1).double() / 2
    elif transform == "log1p":
        values = degrees.double().log1p()
    else:
        values = degrees.double()
    return (values / values.max()).float()


def watched(positive: Tensor, negative: Tensor, variant: str) -> Tensor:
    """(B,) what must not follow popularity: s_ui, or sigmoid(s_ui - s_uj)."""
    return torch.sigmoid(positive - negative) if variant == "samreg" else positive


class Reg(EncoderMethod[RegConfig]):
    by_columns = TABLES
    popularity: Tensor  # (N,)
    strength: Tensor  # () gamma_reg or w, as far as the ramp has come; on the device, where a recorded step reads it

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        self.encoder = backbone(self.config, graph, generators, columns=self.columns)
        self.popularity = popularity_of(graph.item_degrees, self.config.popularity)
        self.strength = torch.full((), self._full_strength, device=graph.device)

    def begin_epoch(self, ctx: EpochContext) -> None:
        if self.config.ramp_epochs:
            self.strength.fill_(self._full_strength * min(1.0, ctx.epoch / self.config.ramp_epochs))

    def loss(self, batch: Batch) -> Losses:
        final, layer0 = self.encoder(batch), self.encoder.layer0
        (positive, negative), penalty = scores_with_l2(final, layer0, batch, self.columns)
        ranking = bpr(positive, negative, batch.weight)
        popularity = self.popularity.index_select(0, batch.positives)
        rho2 = squared_correlation(watched(positive, negative, self.config.reg_variant), popularity, batch.weight)
        base = ranking + self.config.l2 * penalty
        rest = (1.0 - self.strength) * base if self.config.reg_variant == "samreg" else base
        return Losses(rest + self.strength * rho2, {"bpr": ranking, "l2": penalty, "correlation": rho2})

    @property
    def _full_strength(self) -> float:
        samreg = self.config.reg_variant == "samreg"
        return self.config.samreg_weight if samreg else self.config.reg_weight
