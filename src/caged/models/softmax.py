"""Softmax: LightGCN trained with a sampled softmax, one knob from accurate to unbiased.

BPR compares a positive with one uniform negative; a sampled softmax compares it with thousands at the cost of one
matrix product. Which candidates are drawn, and how their frequency is corrected, decides how much popularity the scores
contain. Sampled softmax for item recommendation: Wu et al., TOIS 2024; correction by log q: Bengio and Senecal, IEEE
Transactions on Neural Networks 2008, and Yi et al., RecSys 2019; the loss as pointwise information: van den Oord et
al., 2018. Derived here; no code is followed. For a batch of triples with positives i_1..i_B:

    s_ui = <e_u, e_i> / (|e_u| |e_i|)                                                      (1)
    l_bc = s_(u_b, i_c) / tau - (1 - gamma) log q_(i_c)                                     (2)
    loss = - sum_b weight_b [ l_bb - log sum_{c in C_b} exp(l_bc) ] + l2 * L2               (3)

The candidates of row b are the positives of its chunk, C_b = {c : c = b or i_c != i_b}; padding is left out. A chunk is
`candidate_rows` consecutive rows of the batch, which is shuffled: cost is B x `candidate_rows` x K however large B is,
and temperature and gamma keep their meaning. A last chunk that is not full has fewer candidates. q_i is the chance that
the sampler draws i as a positive (`Sampler.positive_shares`).

At the optimum s / tau = log p(i|u) - gamma log q_i, up to a constant per user. So gamma = 0 is the ordinary softmax, in
which the correction undoes the sampling; gamma = 1 is pointwise mutual information, popularity removed altogether; and
negative values add popularity. Leaving out other copies of the positive moves the optimum by about p(i|u), which is
small on real data.

| symbol | here |
|---|---|
| tau, gamma | `temperature`, `gamma` |
| C_b | `candidates`; with `known=mask` without what the user owns in training |
| log q | `SoftmaxLoss.log_shares` |
| (1) to (3) | `backbone_loss.SoftmaxLoss`, `sampled_softmax.py` |
| e_i in ranking | `SoftmaxLoss.ranked` |
| L2 | `l2_rows`, as in LightGCN: users, positives and the sampled negatives |

`candidates=uniform` takes the sampled negatives of the chunk in place of its positives, and no correction. They avoid
what their own user owns, so they are not quite uniform. Ranking uses the unit vectors: still a product of two tables,
and `caged explain` divides by the lengths, too. An item whose vector is longer than others', as those of popular items
are after training, can keep a part of that in ranking: `item_lengths` is the power, 1 ranks by dot products, as Wu et
al. do. Training knows nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from caged.config import option
from caged.graph import BipartiteGraph
from caged.models.backbone_loss import BackboneMethod, SoftmaxOptions, backbone_loss
from caged.models.encoder import TABLES
from caged.models.lightgcn import BackboneConfig, backbone
from caged.seeding import Generators


@dataclass(frozen=True)
class SoftmaxConfig(SoftmaxOptions, BackboneConfig):
    l2: float = option(
        1e-5,
        "weight of the L2 term in (3)",
        source="our choice: cosines do not grow, so less is needed than under BPR",
        minimum=0,
        search=(1e-6, 1e-5, 1e-4),
    )

    @property
    def softmax(self) -> SoftmaxOptions:
        return self


class Softmax(BackboneMethod[SoftmaxConfig]):
    by_columns = TABLES

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        self.encoder = backbone(self.config, graph, generators, columns=self.columns)
        self.ranking = backbone_loss(self.config.softmax, graph, self.columns)
