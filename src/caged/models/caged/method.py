"""CAGED: Que, Zhang, Zhao, Ma, "Causality-aware Graph Aggregation Weight Estimator for Popularity Debiasing in Top-K
Recommendation", CIKM 2025.

Idea. One LightGCN aggregation is an expectation over the history x of a node u,

    F(u) = sum_{x in N(u)} 1/sqrt(d_u d_x)                                                              (7)
    e_u^(l) = sum_{x in N(u)} e_x^(l-1) / sqrt(d_u d_x) = E_{x ~ p(.|u)} [F(u) e_x^(l-1)],
    p(x|u) = 1/sqrt(d_x) / sum_{x' in N(u)} 1/sqrt(d_x')                                                (8)

and has the form of a backdoor adjustment, P(y | u, do(v)) = sum_x p(y | u, v, x) p(x|u) (6), in which the history x is
the confounder. So an aggregation weight is F(u) p(x|u), with a p(x|u) that knows degrees and nothing else. CAGED puts
an estimated likelihood of x given u in its place: that of a conditional variational auto-encoder on the embeddings.

Bound, for a directed pair (centre u, neighbour x); p(z|u) = N(0, I), q(z|x,u) = N(mu, diag sigma^2):

    log p(x|u) >= E_q [log p(x|z,u)] - KL(q(z|x,u) || p(z|u))                                          (10)
    KL    = sum_{k=1..K} (mu_k^2 + sigma_k^2 - log sigma_k^2 - 1) / 2                                  (12)
    z     = mu + tau sigma,   tau ~ N(0, I)                                                            (13)
    recon = |e_x - e_xhat|^2                                                                           (14)
    L(u,x) = lam * recon + beta * KL                                                                   (15)

Update (Algorithm 1). An epoch trains LightGCN with the current weights w; where it improved validation, the estimator
is trained on the frozen embeddings, every training edge is scored in both directions, and

    W[u,x] = F(u) exp(-L(u,x)),    w <- (1 - eps) w + eps W                                 (Algorithm 1, line 5)

w starts as LightGCN's; the pattern of the graph never changes. W is not symmetric: W[u,i] has centre u, W[i,u] has
centre i. Recommending costs what LightGCN costs.

| symbol | here |
|---|---|
| lambda, beta, epsilon | `lam`, `beta`, `eps` |
| eta_2 | `estimator_learning_rate` |
| A~, 1/sqrt(d_u d_x) | `Side.base` |
| F(u), F(i) | `Side.normaliser` |
| A~^(t) | `weights.to_user`, `weights.to_item` |
| encoder, decoder | `estimator.Network` |
| -log p(x|u), up to constants | `Scores.loss` |
| c | `code_scale(graph)`: mean over the edges of 1/A~ |

Deviations. Paper and released code differ, and each difference is an option; the presets `caged_paper` and
`caged_code` choose all of them at once. The code multiplies c A~[u,x], not F(u), by exp(-L) (`weight_form`); neither
makes p sum to one over N(u), which `normalised` does: F(u) softmax_x(-L). The code trains with lambda = beta = 1 and
applies them only to the weights (`elbo_train_scaled`). The paper writes the user's side only; the code treats both
sides with one network, and takes one step for each per batch (`directions`). The paper does not say which embeddings
the estimator sees; the code takes the pooled ones (`estimator_input`). The paper calls its squared norm a mean squared
error; code and equation sum over the dimensions (`recon_reduce`). log sigma^2 is clamped to [-10, 10] here. The code
chooses epochs and updates on the test part: what decides is a matter of the protocol here, and a method only sees
whether validation improved.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from caged.config import option
from caged.errors import ConfigError, TrainingError
from caged.graph import PRECISIONS, BipartiteGraph, EdgeWeights, Tables, degree_weights
from caged.models.backbone_loss import BackboneMethod, backbone_loss
from caged.models.caged.diagnostics import Phases, describe
from caged.models.caged.estimator import AUTO_ON_CUDA, Estimator, Network, Scores, Terms
from caged.models.caged.passes import Course, Passes, make_passes
from caged.models.caged.sides import Side, rows_of, sides_of
from caged.models.contract import EpochContext, LearnedWeights, Stage, State
from caged.models.encoder import TABLES, LightGCNEncoder
from caged.models.fold_in import FoldIn, fold_in_by_degree
from caged.models.lightgcn import L2_RANGE, LightGCNConfig, backbone
from caged.seeding import Generators

log = logging.getLogger(__name__)

PRETRAIN, TRAIN = "pretrain", "train"
_CODE = "released code"


@dataclass(frozen=True)
class CAGEDConfig(LightGCNConfig):
    layers: int = option(3, "propagation layers L", source="CAGED paper, section 4.3.3", minimum=0)
    l2: float = option(
        1e-4, "weight of the L2 term of the ranking loss", source="LightGCN paper", minimum=0, search=L2_RANGE
    )
    lam: float = option(
        1.0,
        "weight lambda of the reconstruction term",
        source="CAGED paper, Figure 5: best at 1 or 1.2",
        minimum=0,
        search=(0.6, 0.8, 1.0, 1.2, 1.4),
    )
    beta: float = option(
        0.0,
        "weight beta of the KL term",
        source="CAGED paper, Figure 6: best on two of three datasets",
        minimum=0,
        search=(0.0, 0.2, 0.6, 1.0, 1.4),
    )
    eps: float = option(
        1e-3,
        "share epsilon of the new weights in an update; 0 is LightGCN",
        source="middle of the CAGED paper's grid",
        minimum=0,
        maximum=1,
        search=(1e-4, 1e-3, 1e-2),
    )
    estimator_learning_rate: float = option(
        1e-4,
        "Adam's step size eta_2 for the estimator",
        source="released code, two of three datasets",
        above=0,
        search=(1e-4, 1e-3, 1e-2),
    )
    estimator_layers: int = option(
        3, "hidden layers of encoder and decoder", source="CAGED paper, Table 4", minimum=1, maximum=4
    )
    estimator_epochs: int = option(1, "passes over the edges per update", source=_CODE, minimum=1)
    estimator_batch_size: int = option(2048, "edges per step of the estimator", source=_CODE, minimum=1)
    estimator_input: str = option(
        "pooled",
        "embeddings that the estimator sees: propagated or layer 0",
        source=_CODE,
        choices=("pooled", "layer0"),
    )
    estimator_pretrain_epochs: int = option(
        50, "passes over the edges before training, with without=two_stage", minimum=1
    )
    estimator_precision: str = option(
        "auto", f"matrix products of the estimator; auto is {AUTO_ON_CUDA} on CUDA, float32 on CPU", choices=PRECISIONS
    )
    estimator_capture: bool = option(
        True, "on CUDA, record a training step of the estimator once and replay it", operational=True
    )
    weight_form: str = option(
        "code",
        "W: paper F(u) exp(-L); code c A~ exp(-L); normalised F(u) softmax(-L)",
        source=_CODE,
        choices=("paper", "code", "normalised"),
    )
    elbo_train_scaled: bool = option(
        False, "lam and beta also weigh the terms in the estimator's training", source=_CODE
    )
    recon_reduce: str = option(
        "sum",
        "squared error summed or averaged over the K dimensions",
        source="CAGED paper, eq. 14",
        choices=("sum", "mean"),
    )
    score_z: str = option("sample", "z when scoring: one draw or its mean", source=_CODE, choices=("sample", "mean"))
    directions: str = option(
        "both",
        "weights that are updated: both directions or only those to users",
        source=_CODE,
        choices=("both", "user"),
    )
    likelihood: str = option(
        "estimated",
        "control: the value in place of exp(-L), by edge, its mean, permuted, or 1/d_u",
        source="CAGED paper; the others are our controls",
        choices=("estimated", "constant", "shuffled", "uniform"),
    )
    without: str = option(
        "none",
        "ablation: estimator pre-trained once; update in every validated epoch; eps = 1",
        source="CAGED paper, Table 3",
        choices=("none", "two_stage", "update_condition", "momentum"),
    )
    ts_eval: str = option(
        "current",
        "with without=two_stage: embeddings that are scored, current or those of the pre-trained LightGCN",
        choices=("current", "fixed"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.likelihood == "uniform" and self.weight_form != "normalised":
            raise ConfigError(
                f"method.likelihood is 'uniform', but method.weight_form is '{self.weight_form}'; p(x|u) = 1/d_u is "
                f"the control of weight_form=normalised, set that, or use likelihood=constant"
            )

    @property
    def momentum(self) -> float:
        """The share of the new weights that is in force."""
        return 1.0 if self.without == "momentum" else self.eps


# ---------------------------------------------------------------- the maths


def code_scale(graph: BipartiteGraph) -> float:
    """c of the released code: the mean over the edges of 1/A~ = sqrt(d_u d_i)."""
    degrees = graph.user_degrees.double().index_select(0, graph.users)
    return float((degrees * graph.item_degrees.double().index_select(0, graph.items)).sqrt().mean())


def controlled(log_likelihood: Tensor, kind: str, generator: torch.Generator) -> Tensor:
    """What stands for log exp(-L) = -L in the weights: itself, or one of the controls."""
    if kind == "constant":  # log of the mean of exp(-L)
        mean = torch.logsumexp(log_likelihood.double(), 0) - math.log(len(log_likelihood))
        return mean.to(log_likelihood.dtype).expand_as(log_likelihood)
    if kind == "shuffled":
        order = torch.randperm(len(log_likelihood), generator=generator, device=log_likelihood.device)
        return log_likelihood.index_select(0, order)
    return torch.zeros_like(log_likelihood) if kind == "uniform" else log_likelihood


def new_weights(form: str, log_likelihood: Tensor, side: Side, scale: float) -> Tensor:
    """W of one side, (E,), from log likelihoods per edge; `scale` is c."""
    if form == "code":
        return scale * side.base * log_likelihood.exp()
    if form == "paper":
        return side.per_edge(side.normaliser) * log_likelihood.exp()
    unscaled = (log_likelihood - side.per_edge(side.maxima(log_likelihood))).exp()
    return unscaled * side.per_edge(side.normaliser / side.sums(unscaled))


def blended(weights: Tensor, new: Tensor, eps: float) -> Tensor:
    """(1 - eps) w + eps W; bit-equal to w at eps = 0 and to W at eps = 1."""
    return (1 - eps) * weights + eps * new


# ---------------------------------------------------------------- the method


class CAGED(BackboneMethod[CAGEDConfig]):
    by_columns = TABLES
    weights: EdgeWeights  # the aggregation weights in force
    estimator: Estimator
    passes: Passes

    def stages(self) -> tuple[Stage, ...]:
        if self.config.without == "two_stage":
            return (Stage(PRETRAIN), Stage(TRAIN, fresh_optimizer=True))
        return (Stage(TRAIN),)

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        config = self.config
        self._generators = generators
        self._shuffle = generators["estimator_shuffle"]
        self.graph = graph
        self.weights = degree_weights(graph).per_edge()
        self.encoder = self._new_encoder(self.weights)
        self.ranking = backbone_loss(config.softmax, graph, self.columns)
        self._both = sides_of(graph, self.weights)
        self.sides = self._both if config.directions == "both" else self._both[:1]
        self._scale = code_scale(graph)
        start = generators.on_host("estimator_init")  # the same network on every device
        self.estimator = Estimator(
            Network(config.embedding_size, config.estimator_layers, graph.device, start),
            learning_rate=config.estimator_learning_rate,
            averaged=config.recon_reduce == "mean",
            precision=config.estimator_precision,
            noise=generators["estimator"],
            columns=self.columns,
        )
        trained_on = self._terms if config.elbo_train_scaled else Terms(1.0, 1.0)
        course = Course(graph, self.sides, config.estimator_batch_size, trained_on)
        self.passes = make_passes(self.estimator, course, record=config.estimator_capture and self.columns.size == 1)
        self._fixed: Tables | None = None
        if config.without == "two_stage" and config.ts_eval == "fixed":
            counts = (graph.user_count, graph.item_count)
            self._fixed = Tables(*(torch.zeros(rows, config.embedding_size, device=graph.device) for rows in counts))
        self.updates = 0

    def fold_in(self) -> FoldIn:
        note = "weights of a new person are LightGCN's: what the estimator learned is about people in training"
        return fold_in_by_degree(self.encoder, by_cosine=self.ranks_by_cosine(), note=note)

    def learned_weights(self) -> LearnedWeights:
        return LearnedWeights(self.weights, self.updates)

    def begin_epoch(self, ctx: EpochContext) -> None:
        super().begin_epoch(ctx)
        self.estimator.check_precision()
        if self.config.without == "two_stage" and ctx.stage == TRAIN and ctx.epoch == 1:
            self._pretrain_estimator(ctx)

    def needs_validation(self) -> str | None:
        return "its edge weights change only after epochs that validation calls better"

    def end_epoch(self, ctx: EpochContext) -> None:
        """The update, after the epochs that improved validation."""
        always = self.config.without == "update_condition" and ctx.validated
        if ctx.stage == TRAIN and (ctx.improved or always):
            ctx.log.update(self._update(ctx))

    def state(self) -> State:
        fixed = {} if self._fixed is None else {"fixed_users": self._fixed.users, "fixed_items": self._fixed.items}
        served = self.serving_state()
        return State({**served.tensors, **self.estimator.state(), **fixed}, served.scalars)

    def load_state(self, state: State) -> None:
        self.state().copy_from(state)
        self._finish_loading(state)

    def serving_state(self) -> State:
        """Without the estimator, which is larger than all else and only makes weights."""
        weights = {"to_user": self.weights.to_user, "to_item": self.weights.to_item}
        return State({**self.encoder.state(), **weights}, {"updates": self.updates})

    def load_serving_state(self, state: State) -> None:
        self.serving_state().copy_from(state)
        self._finish_loading(state)

    def _finish_loading(self, state: State) -> None:
        self.weights.assign(self.weights.to_user, self.weights.to_item)  # propagation keeps them in a form of its own
        self.load_scalars(state.scalars)

    def load_scalars(self, scalars: Mapping[str, Any]) -> None:
        self.updates = scalars["updates"]

    # ---------------------------------------------------------------- an update

    def _update(self, ctx: EpochContext) -> dict[str, Any]:
        """Train the estimator, score every edge, blend; returns what the history says about it."""
        phases = Phases(self.graph.device)
        history: dict[str, Any] = {"update": self.updates + 1}
        with phases("training"):
            vectors = self._inputs() if self._fixed is None else self._fixed
            if self.config.without != "two_stage":
                history["training"] = self.passes.run(vectors, self.config.estimator_epochs)
        with phases("scoring"):
            scores = [self._score(side, vectors) for side in self.sides]
        with phases("blend"):
            self._blend(scores)
            self._check_weights(ctx)
        with phases("diagnostics"):
            described = self._describe(scores)
        self.updates += 1
        norm = max(values["operator_norm"] for values in described.values())
        return {**history, "operator_norm": norm, **described, "update_seconds": phases.seconds}

    @torch.no_grad()
    def _inputs(self) -> Tables:
        """e_u and e_i as the estimator sees them; nothing flows back to LightGCN."""
        chosen = self.encoder() if self.config.estimator_input == "pooled" else self.encoder.layer0
        return self.encoder.whole(Tables(chosen.users.detach(), chosen.items.detach()))

    @property
    def _terms(self) -> Terms:
        return Terms(self.config.lam, self.config.beta)

    def _score(self, side: Side, vectors: Tables) -> Scores:
        sample = self.config.score_z == "sample"
        return self.estimator.score(*rows_of(side, vectors), side.edges, self._terms, sample=sample)

    def _blend(self, scores: list[Scores]) -> None:
        now = {"to_user": self.weights.to_user, "to_item": self.weights.to_item}
        for side, found in zip(self.sides, scores, strict=True):
            likelihood = controlled(-found.loss, self.config.likelihood, self._shuffle)
            new = new_weights(self.config.weight_form, likelihood, side, self._scale)
            now[side.name] = blended(now[side.name], new, self.config.momentum)
        self.weights.assign(**now)

    def _check_weights(self, ctx: EpochContext) -> None:
        """Weights that propagation cannot bear end training here, with a reason, not in tables of NaN."""
        with torch.no_grad():
            vectors = self.encoder()
        largest = max(float(weights.max()) for weights in (self.weights.to_user, self.weights.to_item))
        cause = "method.without=momentum replaces" if self.config.without == "momentum" else "CAGED changes"
        broken = any(not bool(torch.isfinite(table).all()) for table in vectors)
        if not self.columns.any(broken):
            if largest == 0:
                log.warning(
                    "after update %d in epoch %d every edge weight is 0, because every likelihood is too small for a "
                    "number: nothing is propagated any more; %s the weights too fast, lower method.eps",
                    *(self.updates + 1, ctx.epoch, cause),
                )
            return
        raise TrainingError(
            f"CAGED diverged: after update {self.updates + 1} in epoch {ctx.epoch} the embeddings are not finite "
            f"(largest edge weight {largest:.3g}, method.eps={self.config.momentum:g}); {cause} the weights faster "
            f"than training can follow, lower method.eps or use method.weight_form=normalised"
        )

    def _describe(self, scores: list[Scores]) -> dict[str, dict[str, Any]]:
        degrees = self.graph.item_degrees.index_select(0, self.graph.items)
        others = self._both[::-1]
        return {
            side.name: describe(found, getattr(self.weights, side.name), side, other, degrees)
            for side, other, found in zip(self.sides, others, scores, strict=False)
        }

    # ---------------------------------------------------------------- without=two_stage

    def _pretrain_estimator(self, ctx: EpochContext) -> None:
        """Fit the estimator once to the LightGCN of stage `pretrain`; then LightGCN starts over."""
        vectors = self._inputs()
        ctx.log["pretraining"] = self.passes.run(vectors, self.config.estimator_pretrain_epochs)
        if self._fixed is not None:
            for kept, values in zip(self._fixed, vectors, strict=True):
                kept.copy_(values)
        with torch.no_grad():
            for table, start in zip(self.encoder.layer0, self._new_encoder(self.weights).layer0, strict=True):
                table.copy_(start)

    def _new_encoder(self, weights: EdgeWeights) -> LightGCNEncoder:
        return backbone(self.config, self.graph, self._generators, weights, columns=self.columns)
