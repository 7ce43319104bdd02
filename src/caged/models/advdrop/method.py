"""AdvDrop: Zhang, Ma, Wei, Sheng, Wang, "General Debiasing for Graph-based Collaborative Filtering via Adversarial
Graph Dropout", WWW 2024 (official code: Arthurma71/AdvDrop).

Idea. Some interactions are driven by bias, and nobody says which. Learn for every edge a probability P that it is; draw
a bias-aware view of the graph that tends to keep such edges and a bias-mitigated view that tends to drop them; train
recommendation on both and make the two representations of a node agree. Every few epochs an adversary changes P so
that they disagree. Recommending uses the table of the bias-mitigated view and the whole graph: it is LightGCN.

Probabilities. A~ has an entry for each direction of an interaction: (r, c) is the message to receiver r from sender c.
With unit rows x^ of a table of layer 0,

    alpha_rc  = (Q x^_c) . (K' x^_r)                                                       (1)
    alpha~_rc = alpha_rc - mean over r' in N(c) of alpha_r'c                               (2)
    P(r,c)    = sigma(alpha~_rc)                                                           (3)

The dual view has table F^(0) and keeps an entry with probability P(F^(0)), the main view has table E^(0) and keeps it
with probability 1 - P(E^(0)). Both directions are drawn, each by itself. Kept entries are divided by `keep_prob`.

Training, every batch draws both views and propagates each table over its own:

    L_rec = sum over views of mean softplus(s_uj - s_ui) + l2 * L2(layer-0 rows of the batch)        (4)
    Z[a,b] = sigma(dual_a . main_b) / tau,  InfoNCE = mean_a (logsumexp_b Z[a,b] - Z[a,a])          (5)
    L_inv = InfoNCE(n random users) + InfoNCE(n random items)
    loss  = L_rec + inv_tau * L_inv                                                        (6)

Q and K' stand still, nothing flows through the drawn masks. Before epochs `interval`, 2 `interval`, ... the adversary
takes its steps with the tables standing still, by the ARM estimator: with u ~ U(0,1) per entry, shared by both views,

    m1 = [u > 1 - p],  m2 = [u < p],   p the probability to keep, of either view           (7)
    g  = 5 (L_inv(m2) - L_inv(m1)) (u - 1/2)                                               (8)

and g is taken for the gradient with respect to the dual P: descent on it increases L_inv.

| symbol | here |
|---|---|
| E^(0), F^(0) | `main.encoder`, `dual.encoder` |
| Q, K' | `adversary.weight`, `adversary.bias`: rows of Q, then of K' |
| P | sigmoid of `adversary.logits(tables)` |
| keep probability p | `keep_probability(view)` |
| n, tau, inv_tau | `inv_nodes`, `tau`, `inv_tau` |
| 5 in (8) | `arm_coefficient`; Adam divides it out again, nearly |

Deviations. Paper and code agree as far as an abstract tells; what follows is the code and what it leaves open. It
centres over the sender where attention would centre over the receiver (`center`). It divides by the constant .8, while
about half of the entries are kept, so that propagated rows are shorter in training than when recommending; with
`rescale=prob` they are divided by their own probability, of which `min_keep` is then the least: the mean is A~, no
entry grows without bound, and (8) is 0 where P stands at that bound.
ARM is an estimator for logits, and the code applies it to probabilities, which adds a factor P (1 - P) (`arm_target`);
it draws other nodes for L_inv(m1) than for L_inv(m2), which adds variance (`arm_share_nodes`); it takes the gradient
for the dual view only, though both move. It adds 1e-10 within the logarithm of (4); we use softplus. The batches of an
adversarial pass are not used, only counted, so `adv_steps` can bound a phase. Its tables start Xavier-normal
(`table_init`). Preset `yelp2018_ood`: the official values for the split of that name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from caged.config import option
from caged.cuda_graph import Work, recorded
from caged.graph import Batch, BipartiteGraph, EdgeWeights, Tables, degree_weights, propagate
from caged.models.advdrop.adversary import Adversary, DirectedEdges, arm_gradient, arm_masks
from caged.models.contract import DotScorer, EpochContext, Losses, Method, ParamGroup, Scorer, Stage, State
from caged.models.encoder import LightGCNEncoder
from caged.models.lightgcn import BackboneConfig, backbone
from caged.models.losses import bpr_with_l2
from caged.seeding import Generators

_CODE = "AdvDrop code"


@dataclass(frozen=True)
class AdvDropConfig(BackboneConfig):
    inv_tau: float = option(
        1.0, "weight of L_inv in (6)", source="AdvDrop code, parser", minimum=0, search=(0.01, 0.1, 0.5, 1.0)
    )
    tau: float = option(0.1, "temperature in (5)", source="AdvDrop code, parser", above=0)
    inv_nodes: int = option(
        100, "random users, and as many items, in (5), with replacement", source="AdvDrop code, parser", minimum=1
    )
    att_dim: int = option(10, "rows of Q and of K'", source="AdvDrop code, parser", minimum=1)
    center: str = option(
        "sender", "node over whose messages (2) takes the mean", source=_CODE, choices=("sender", "receiver")
    )
    keep_prob: float = option(
        0.8, "divisor of kept entries, with rescale=keep_prob", source="AdvDrop code, parser", above=0, maximum=1
    )
    rescale: str = option(
        "keep_prob",
        "divide kept entries by keep_prob, or by their own probability of being kept, so that their mean is A~",
        source=_CODE,
        choices=("keep_prob", "prob"),
        search=("keep_prob", "prob"),
    )
    min_keep: float = option(
        0.1,
        "smallest probability of keeping an entry, with rescale=prob: limits the divisor",
        source="our choice: without a bound single entries can grow until training fails",
        above=0,
        maximum=1,
    )
    interval: int = option(
        7,
        "an adversarial phase comes before every interval-th epoch",
        source="AdvDrop README: two of five datasets, and the median",
        minimum=1,
        search=(3, 5, 7, 10, 15),
    )
    adv_epochs: int = option(
        5,
        "passes over the batches in an adversarial phase",
        source="AdvDrop README: two of five datasets, and the median",
        minimum=1,
        search=(3, 5, 10),
    )
    adv_steps: int | None = option(
        None,
        "steps in an adversarial phase instead of whole passes, such as 100; none: adv_epochs passes",
        source="AdvDrop code; bounding the steps is our addition",
        minimum=1,
    )
    adv_lr: float = option(
        1e-2,
        "Adam's step size for Q and K'",
        source="AdvDrop README: three of five datasets",
        above=0,
        search=(1e-3, 1e-2),
    )
    arm_coefficient: float = option(5.0, "factor of the gradient (8)", source=_CODE, above=0)
    arm_target: str = option(
        "prob", "what (8) is the gradient of: P, or its logit alpha~", source=_CODE, choices=("prob", "logit")
    )
    arm_share_nodes: bool = option(False, "L_inv(m1) and L_inv(m2) over the same random nodes", source=_CODE)
    adv_capture: bool = option(True, "on CUDA, record a step of the adversary once and replay it", operational=True)


class Nodes(NamedTuple):
    """Rows of users and of items."""

    users: Tensor  # (n,)
    items: Tensor  # (n,)


@dataclass(frozen=True, eq=False)
class View:
    """A table and the entries of A~ that it sees; `sign` times the logit is the logit of keeping an entry."""

    encoder: LightGCNEncoder
    weights: EdgeWeights  # those of the encoder
    sign: float


# ---------------------------------------------------------------- the maths


def disagreement(dual: Tables, main: Tables, nodes: Nodes, tau: float) -> Tensor:
    """L_inv: (5) over the given users plus (5) over the given items.

    >>> zeros = Tables(torch.zeros(3, 2), torch.zeros(5, 2))
    >>> some = Nodes(torch.tensor([0, 1, 2, 0]), torch.tensor([4, 4, 1, 0]))
    >>> round(disagreement(zeros, zeros, some, 0.1).item(), 4)  # all alike: ln 4, twice
    2.7726
    """
    of_dual, of_main = (
        torch.stack((rows.users.index_select(0, nodes.users), rows.items.index_select(0, nodes.items)))
        for rows in (dual, main)
    )
    z = torch.sigmoid(of_dual @ of_main.mT) / tau  # (2, n, n), in [0, 1/tau]
    return -torch.log_softmax(z, dim=2).diagonal(dim1=1, dim2=2).mean(1).sum()


def kept_entries(entries: Tensor, mask: Tensor, keep: Tensor | None = None) -> Tensor:
    """`entries` where `mask`, else 0; divided by the probability `keep` of the mask where that is given.

    >>> kept_entries(torch.tensor([1.0, 1.0]), torch.tensor([True, False]), torch.tensor([0.25, 0.5])).tolist()
    [4.0, 0.0]
    """
    kept = entries * mask
    return kept if keep is None else kept / keep


# ---------------------------------------------------------------- the method


class AdvDrop(Method[AdvDropConfig]):
    main: View
    dual: View
    adversary: Adversary
    adversarial_steps: int

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        config = self.config
        self.graph = graph
        self.weights = degree_weights(graph)  # the whole graph, for recommending
        # (2E,) what an entry of A~ is where it is kept, in the order of DirectedEdges
        self._entries = torch.cat((self.weights.to_user, self.weights.to_item))
        if config.rescale == "keep_prob":
            self._entries /= config.keep_prob
        self._least_keep = config.min_keep if config.rescale == "prob" else 0.0
        self.main = self._new_view(generators, "init", sign=-1.0)
        self.dual = self._new_view(generators, "init_dual", sign=1.0)
        self.adversary = Adversary(
            DirectedEdges(graph, config.center),
            embedding_size=config.embedding_size,
            width=config.att_dim,
            learning_rate=config.adv_lr,
            start=generators.on_host("adversary_init"),
        )
        self._dropout = generators["dropout"]
        self._adversarial = generators["adversary"]
        self.adversarial_steps = 0
        self._record = config.adv_capture and graph.device.type == "cuda"
        self._replay: Work | None = None  # a step of the adversary, recorded when the first phase begins

    @property
    def views(self) -> tuple[View, View]:
        """Dual, main: the order in which they are drawn."""
        return self.dual, self.main

    def parameters(self, stage: Stage) -> list[ParamGroup]:
        return [{"params": [*self.main.encoder.parameters, *self.dual.encoder.parameters]}]

    def loss(self, batch: Batch) -> Losses:
        nodes = self._draw_nodes(self._dropout)
        named = batch._replace(
            users=torch.cat((batch.users, nodes.users)), positives=torch.cat((batch.positives, nodes.items))
        )
        for view in self.views:
            self._draw(view)
        dual, main = (view.encoder(named) for view in self.views)
        of_dual = bpr_with_l2(dual, self.dual.encoder.layer0, batch, self.config.l2)
        of_main = bpr_with_l2(main, self.main.encoder.layer0, batch, self.config.l2)
        inv = disagreement(dual, main, nodes, self.config.tau)
        total = of_main.total + of_dual.total + self.config.inv_tau * inv
        penalty = of_main.parts["l2"] + of_dual.parts["l2"]
        parts = {"bpr": of_main.parts["bpr"], "bpr_dual": of_dual.parts["bpr"], "l2": penalty, "inv": inv}
        return Losses(total, parts)

    def begin_epoch(self, ctx: EpochContext) -> None:
        if ctx.epoch % self.config.interval == 0:
            ctx.log["adversary"] = self._adversarial_phase(self.config.adv_steps or self.config.adv_epochs * ctx.steps)

    def scorer(self) -> Scorer:
        encoder = self.main.encoder
        with torch.no_grad():
            return DotScorer(propagate(self.weights, encoder.layer0, encoder.layer_weights))

    def state(self) -> State:
        dual = {f"dual_{name}": values for name, values in self.dual.encoder.state().items()}
        tensors = {**self.main.encoder.state(), **dual, **self.adversary.state()}
        return State(tensors, {"adversarial_steps": self.adversarial_steps})

    def serving_state(self) -> State:
        """The main table: the dual one and the adversary have done their work."""
        return State(self.main.encoder.state(), {})

    def load_serving_state(self, state: State) -> None:
        self.serving_state().copy_from(state)

    def load_scalars(self, scalars: Mapping[str, Any]) -> None:
        self.adversarial_steps = scalars["adversarial_steps"]

    # ---------------------------------------------------------------- views

    def keep_probability(self, view: View) -> Tensor:
        """p of every directed edge, (2E,): P in the dual view, 1 - P in the main one; bounded with rescale=prob."""
        return torch.sigmoid(view.sign * self.adversary.logits(view.encoder.layer0)).clamp_min(self._least_keep)

    @torch.no_grad()
    def _draw(self, view: View) -> None:
        """A new random view, for one batch."""
        keep = self.keep_probability(view)
        self._take(view, self._uniform(self._dropout) < keep, keep)

    def _take(self, view: View, mask: Tensor, keep: Tensor) -> None:
        """Put the kept entries in force. In place: a recorded step reads them."""
        by = keep if self.config.rescale == "prob" else None
        # Every (2E,) vector here has the entries to users first, then those to items: `chunk` parts the directions.
        view.weights.assign(*kept_entries(self._entries, mask, by).chunk(2))

    def _uniform(self, generator: Generator) -> Tensor:
        return torch.rand(self._entries.shape, generator=generator, device=self._entries.device)

    def _draw_nodes(self, generator: Generator) -> Nodes:
        def rows(count: int) -> Tensor:
            like = self.graph.items
            shape = (self.config.inv_nodes,)
            return torch.randint(count, shape, generator=generator, device=like.device, dtype=like.dtype)

        return Nodes(rows(self.graph.user_count), rows(self.graph.item_count))

    # ---------------------------------------------------------------- the adversarial phase

    @torch.no_grad()
    def _adversarial_phase(self, steps: int) -> dict[str, Any]:
        """`steps` steps of the adversary; returns what the history says about them."""
        begun = time.perf_counter()
        u, nodes = self._uniform(self._adversarial), self._draw_nodes(self._adversarial)
        before = self._disagreement_on_probe(u, nodes)
        if self._record and self._replay is None:
            self._replay = self._recorded_step()
            self._record = self._replay is not None
        step = self._replay or self._adversarial_step
        for _ in range(steps):
            step()
        self.adversarial_steps += steps
        after = self._disagreement_on_probe(u, nodes)
        spread = self.keep_probability(self.dual).std()
        return {
            "steps": steps,
            "inv_before": float(before),
            "inv_after": float(after),
            "probability_std": float(spread),
            "seconds": time.perf_counter() - begun,
        }

    def _adversarial_step(self) -> None:
        """(7), (8) and a step of Adam: four propagations, nothing is differentiated through them."""
        u = self._uniform(self._adversarial)
        nodes = self._draw_nodes(self._adversarial)
        keeps = [self.keep_probability(view) for view in self.views]
        masks = [arm_masks(u, keep) for keep in keeps]
        first = self._disagreement([mask for mask, _ in masks], keeps, nodes)
        if not self.config.arm_share_nodes:
            nodes = self._draw_nodes(self._adversarial)
        second = self._disagreement([mask for _, mask in masks], keeps, nodes)
        gradient = arm_gradient(u, first, second, self.config.arm_coefficient)
        of_dual = keeps[0]
        gradient = gradient * (of_dual > self._least_keep)  # at its bound P does not follow its logit
        if self.config.arm_target == "prob":
            gradient = gradient * of_dual * (1 - of_dual)
        self.adversary.step(self.dual.encoder.layer0, gradient)

    def _recorded_step(self) -> Work | None:
        state = {name: values.clone() for name, values in self.adversary.state().items()}
        stream = self._adversarial.get_state()

        def put_back() -> None:
            for name, values in self.adversary.state().items():
                values.copy_(state[name])
            self._adversarial.set_state(stream)

        streams = [self._adversarial]
        name = "a step of the adversary"
        return recorded(self._adversarial_step, name=name, generators=lambda: streams, put_back=put_back)

    def _disagreement(self, masks: Sequence[Tensor], keeps: Sequence[Tensor], nodes: Nodes) -> Tensor:
        """L_inv of the two views with these entries kept."""
        named = Batch(nodes.users, nodes.items, nodes.items, torch.ones_like(nodes.users, dtype=torch.float32))
        for view, mask, keep in zip(self.views, masks, keeps, strict=True):
            self._take(view, mask, keep)
        dual, main = (view.encoder(named) for view in self.views)
        return disagreement(dual, main, nodes, self.config.tau)

    def _disagreement_on_probe(self, u: Tensor, nodes: Nodes) -> Tensor:
        """L_inv for given random numbers: before and after a phase they are the same, so the rest is the adversary."""
        keeps = [self.keep_probability(view) for view in self.views]
        return self._disagreement([u < keep for keep in keeps], keeps, nodes)

    # ---------------------------------------------------------------- start

    def _new_view(self, generators: Generators, stream: str, *, sign: float) -> View:
        """A table with entries of its own: `propagate` reads them again in its backward pass."""
        weights = self.weights.per_edge()
        return View(backbone(self.config, self.graph, generators, weights, stream), weights, sign)
