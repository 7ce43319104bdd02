"""LightGCN with binary cross-entropy instead of BPR: the diagnostic row for MACR.

MACR trains with binary cross-entropy, so part of its difference from LightGCN is the loss and not the debiasing. This
method is LightGCN, (1) to (4) there, with

    loss    = mean of softplus(-s_ui) + softplus(s_uj)  + l2 * L2,   L2 as in LightGCN     (5')

and nothing else changed; there is no publication to follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from caged.graph import Batch, BipartiteGraph
from caged.models.contract import Losses
from caged.models.encoder import TABLES, EncoderMethod
from caged.models.lightgcn import BackboneConfig, backbone
from caged.models.losses import bce_with_l2
from caged.seeding import Generators


@dataclass(frozen=True)
class LightGCNBCEConfig(BackboneConfig):
    """The options of LightGCN."""


class LightGCNBCE(EncoderMethod[LightGCNBCEConfig]):
    by_columns = TABLES

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        self.encoder = backbone(self.config, graph, generators, columns=self.columns)

    def loss(self, batch: Batch) -> Losses:
        return bce_with_l2(self.encoder(batch), self.encoder.layer0, batch, self.config.l2, self.columns)
