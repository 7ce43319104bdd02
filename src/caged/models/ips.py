"""IPS: inverse propensity weighting of positives, with popularity as the propensity; LightGCN-IPS of
Arthurma71/AdvDrop. The estimator goes back to Schnabel et al., "Recommendations as Treatments", ICML 2016.

An item is observed because it is liked and because it is shown, and popular items are shown more. If the chance of
being observed is p_i, weighting each positive's loss by 1/p_i counts every item as if all had been shown alike.

    p_i     = ( (d_i + 1) / max_k (d_k + 1) )^eta                                          (1)
    w_i     = 1 / p_i >= 1                                                                 (2)
    loss    = (1/B) sum_b w_(i_b) softplus(s_uj - s_ui) + l2 * L2,   L2 as in LightGCN     (3)

Only the weight of the positive counts; negatives and the L2 term are not weighted. Unclipped weights reach
max_k (d_k + 1), so (2) is tamed by a scheme:

| `ips_scheme` | w_i |
|---|---|
| `ips` | (2) |
| `c` | min(w_i, tau), tau a quantile of w over all items |
| `cn` | `c`, divided by its maximum: in (0, 1]; shrinks the ranking loss and so enlarges l2 in comparison |
| `sn` | `c`, divided by its mean over the sampler's positives: the mean weight in training is 1 |
| `sn_batch` | `c`, divided by its mean over each batch: less variance, slightly biased |

| symbol | here |
|---|---|
| eta | `eta`; 0 gives equal weights, and with `sn` LightGCN |
| tau | `clip_quantile` of (2) over the items; 1 clips nothing |
| mean over the sampler's positives | `Sampler.positive_shares`, from `EpochContext.sampler` |

Deviations. AdvDrop's code uses `cn` with eta = 1 and the median as tau (preset `ips_code`), and log(sigmoid + 1e-10)
instead of softplus. Recbole-Debias weights a pointwise squared error by unclipped weights without the +1: not for BPR.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from caged.config import option
from caged.graph import AnySampler, Batch, BipartiteGraph
from caged.models.contract import EpochContext, Losses
from caged.models.encoder import TABLES, EncoderMethod
from caged.models.lightgcn import BackboneConfig, backbone
from caged.models.losses import weighted_bpr_with_l2
from caged.seeding import Generators

CLIPPED = ("c", "cn", "sn", "sn_batch")


@dataclass(frozen=True)
class IPSConfig(BackboneConfig):
    ips_scheme: str = option(
        "sn",
        "how the weights are clipped and normalised",
        source="our recommendation: keeps l2 comparable with LightGCN; the AdvDrop code uses cn",
        choices=("ips", *CLIPPED),
        search=("cn", "sn"),
    )
    eta: float = option(
        1.0,
        "exponent of the propensity (1); 0 weights all items alike",
        source="AdvDrop code",
        minimum=0,
        search=(0.1, 0.25, 0.5, 0.75, 1.0),
    )
    clip_quantile: float = option(
        0.5,
        "weights are clipped at this quantile over the items; 1: not at all",
        source="AdvDrop code (the median)",
        minimum=0,
        maximum=1,
        search=(0.5, 0.75, 0.9, 1.0),
    )


def inverse_propensity(degrees: Tensor, eta: float) -> Tensor:
    """(2): (N,) degrees -> (N,) float64 weights, 1 for the most popular item."""
    smoothed = degrees.to(torch.float64) + 1
    return (smoothed.max() / smoothed).pow(eta)


def clipped(weights: Tensor, quantile: float) -> Tensor:
    """min(w, tau), tau the `quantile` of w over the items."""
    tau = float(np.quantile(weights.cpu().numpy(), quantile))  # torch.quantile refuses more than 2^24 items
    return weights.clamp(max=tau)


class IPS(EncoderMethod[IPSConfig]):
    by_columns = TABLES
    weights: Tensor  # (N,) float32, normalised

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        self.encoder = backbone(self.config, graph, generators, columns=self.columns)
        raw = inverse_propensity(graph.item_degrees, self.config.eta)
        self._clipped = clipped(raw, self.config.clip_quantile) if self.config.ips_scheme in CLIPPED else raw
        if self.config.ips_scheme == "cn":
            self._clipped = self._clipped / self._clipped.max()
        self.weights = self._clipped.float()
        self._normalised_for: str | None = None

    def begin_epoch(self, ctx: EpochContext) -> None:
        if ctx.sampler is not None:
            self.normalise(ctx.sampler)

    def normalise(self, sampler: AnySampler) -> None:
        """`sn`: divide by the mean weight of the positives that `sampler` draws. In place: a recorded step reads it."""
        if self.config.ips_scheme == "sn" and sampler.kind != self._normalised_for:
            self.weights.copy_(self._clipped / (sampler.positive_shares() @ self._clipped))
            self._normalised_for = sampler.kind

    def loss(self, batch: Batch) -> Losses:
        importance = self.weights.index_select(0, batch.positives)
        if self.config.ips_scheme == "sn_batch":
            importance = importance / (batch.weight @ importance)
        final, layer0 = self.encoder(batch), self.encoder.layer0
        return weighted_bpr_with_l2(final, layer0, batch, importance, self.config.l2, self.columns)
