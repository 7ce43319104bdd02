"""MACR: Wei et al., "Model-Agnostic Counterfactual Reasoning for Eliminating Popularity Bias in Recommender System",
KDD 2021 (official code: weitianxin/MACR).

A click has three causes: the match of user and item, the item's popularity, the user's conformity. Two heads read the
latter off the propagated rows and are trained together with the match; when recommending, the direct effect of item and
user is taken away by subtracting what a constant match c would have given.

    y_k = e_u . e_i,   y_i = a . e_i,   y_u = b . e_u                                      (1)
    y_ui = y_k sigma(y_i) sigma(y_u)                                                       (2)
    L_O  = mean of -log sigma(y_ui) - log(1 - sigma(y_uj))                                 (3)
    L_I  = mean of -log sigma(y_i)  - log(1 - sigma(y_j))                                  (4)
    L_U  = mean of -log sigma(y_u)  - log(1 - sigma(y_u))                                  (5)
    loss = L_O + alpha L_I + beta L_U + l2 * L2,   L2 as in LightGCN, heads not included   (6)
    s_ui = (y_k - c) sigma(y_i) sigma(y_u)                                                 (7)

A user occurs once as positive and once as negative in (5), which pulls sigma(y_u) to 1/2: as published. sigma(y_u) does
not change a user's ranking. c does not enter the loss. With `c=scan` the epoch is chosen at c = 0, then c on
validation; a number is in force in validation, too, so the epoch is chosen with it.

| symbol | here |
|---|---|
| a, b | `item_head`, `user_head`, (K,) each |
| alpha, beta | `alpha`, `beta` |
| c | `c`: a number, or `scan`: the best of `c_candidates` on validation |
| (7) as a product | vectors of K + 1 columns, `counterfactual`: sigma(y_u) (e_u, -c) . sigma(y_i) (e_i, 1) |

Deviations. In the official code y_k has shape (B,) and the heads give (B, 1), so the product (2) is a B x B matrix of
all pairs of triples, and (3) averages over it; the paper's formula is element-wise. We follow the code
(`fusion=allpairs`): with `matched` both gates open and the item head learns nothing about popularity. A head of zeros
has L_I = 2 ln 2, so L_I of each epoch stands beside that in the history (`item_head`), and training warns where it ends
above. It adds 1e-10 within logarithms; we use softplus. It chooses epoch and c on the test part, with c = 40 on tests
re-balanced to uniform popularity; where a test follows the natural distribution, a large c hurts, hence the scan.
Tables start as in all methods here, the heads Xavier-uniform as in the code. Preset `macr_code`: the official values.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from caged.config import option
from caged.errors import ConfigError
from caged.graph import Batch, BipartiteGraph, Tables
from caged.models.contract import DotScorer, EpochContext, Losses, Metrics, ParamGroup, Scorer, Stage, State
from caged.models.encoder import EncoderMethod
from caged.models.fold_in import FoldIn
from caged.models.lightgcn import L2_RANGE, BackboneConfig, backbone
from caged.models.losses import HeadScores, bce, head_scores_with_l2
from caged.seeding import Generators

log = logging.getLogger(__name__)

SCAN = "scan"
ZERO_HEAD = 2 * math.log(2)  # L_I of a head of zeros, which knows nothing
PAIR_BYTES = 64 * 2**20  # most memory for a block of the matrix of all pairs


@dataclass(frozen=True)
class MACRConfig(BackboneConfig):
    alpha: float = option(
        1e-2,
        "weight of the item branch in (6)",
        source="MACR code, LightGCN, all datasets",
        minimum=0,
        search=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    )
    beta: float = option(
        1e-3, "weight of the user branch in (6)", source="MACR code", minimum=0, search=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    )
    c: float | str = option(
        SCAN,
        "constant match in (7): a number, or scan: chosen on validation after training, 0 without validation",
        source="our choice: the official 40 is for re-balanced tests",
    )
    c_candidates: tuple[float, ...] = option(
        (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0),
        "values that the scan tries; the first wins a tie",
        source="our choice: up to the official 40",
    )
    fusion: str = option(
        "allpairs",
        "(2) over all pairs of triples of a batch, or within each triple",
        source="MACR code; its paper writes matched, with which the item head learns nothing",
        choices=("matched", "allpairs"),
    )
    l2: float = option(1e-5, "weight of the L2 term in (6)", source="MACR code", minimum=0, search=L2_RANGE)

    def __post_init__(self) -> None:
        if isinstance(self.c, str) and self.c != SCAN:
            raise ConfigError(f"method.c is '{self.c}'; allowed are numbers and {SCAN}, please correct it")
        if not self.c_candidates:
            raise ConfigError("method.c_candidates is empty; give at least one number, e.g. 0")


def losses_of(found: HeadScores, fusion: str, weight: Tensor) -> Tensor:
    """(3,): L_O, L_I and L_U, (3) to (5)."""
    gates = torch.sigmoid(found.of_items) * torch.sigmoid(found.of_users)  # (2, B): the factors of y_k in (2)
    branches = (found.of_items, found.of_users.expand(2, -1))  # rows y_i, y_j of (4) and y_u, y_u of (5)
    if fusion == "matched":
        return _bce_of_rows((found.pairs * gates, *branches), weight)  # (3), (4), (5) in a row
    match = all_pairs(found.pairs, gates, weight)  # (3) of the code; (4) and (5) are the same
    return torch.cat((match.view(1), _bce_of_rows(branches, weight)))


def all_pairs(pairs: Tensor, gates: Tensor, weight: Tensor) -> Tensor:
    """(3) averaged over the B x B matrix [r, c] = y_k[c] * gate[r]; `pairs` and `gates` are (2, B)."""
    cost: Tensor = _AllPairs.apply(pairs, gates, weight)  # type: ignore[no-untyped-call]
    return cost


class _AllPairs(torch.autograd.Function):
    """Blocks of rows of at most `PAIR_BYTES`; the gradient comes with them, so that no matrix of B x B is kept."""

    @staticmethod
    def forward(ctx: Any, pairs: Tensor, gates: Tensor, weight: Tensor) -> Tensor:
        total = weight.new_zeros(())
        to_pairs, to_gates = torch.zeros_like(pairs), torch.empty_like(gates)
        rows = max(1, PAIR_BYTES // (4 * len(weight)))
        for side, sign in enumerate((-1.0, 1.0)):  # softplus(-y) of a positive, softplus(y) of a negative
            weighted = weight * pairs[side]
            for first in range(0, len(weight), rows):
                block = slice(first, first + rows)
                logits = torch.outer(gates[side, block], sign * pairs[side])
                total = total + weight[block] @ (F.softplus(logits) @ weight)
                slopes = logits.sigmoid_()
                to_gates[side, block] = sign * weight[block] * (slopes @ weighted)
                to_pairs[side] += sign * weight * ((weight[block] * gates[side, block]) @ slopes)
        ctx.save_for_backward(to_pairs, to_gates)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        to_pairs, to_gates = ctx.saved_tensors
        return slope * to_pairs, slope * to_gates, None


def _bce_of_rows(pairs: Sequence[Tensor], weight: Tensor) -> Tensor:
    """`bce` of each of n (2, B) rows of positives and negatives, at once: (n,)."""
    positives, negatives = torch.cat(tuple(pairs)).view(len(pairs), 2, -1).unbind(1)
    return bce(positives, negatives, weight)


def counterfactual(vectors: Tables, item_head: Tensor, user_head: Tensor, c: float) -> Tables:
    """Vectors of K + 1 columns whose product is (7)."""
    users = torch.cat((vectors.users, torch.full_like(vectors.users[:, :1], -c)), dim=1)
    items = torch.cat((vectors.items, torch.ones_like(vectors.items[:, :1])), dim=1)
    return Tables(
        torch.sigmoid(vectors.users @ user_head).unsqueeze(1) * users,
        torch.sigmoid(vectors.items @ item_head).unsqueeze(1) * items,
    )


class MACR(EncoderMethod[MACRConfig]):
    item_head: nn.Parameter  # (K,)
    user_head: nn.Parameter  # (K,)
    branch_weights: Tensor  # (3,): of L_O, L_I and L_U in (6)
    c: float
    _item_loss: float | None = None  # of the last epoch
    scanned: list[list[float]]  # [c, value on validation], as tried

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        width = self.config.embedding_size
        self.encoder = backbone(self.config, graph, generators)
        draw = generators.on_host("heads")
        bound = math.sqrt(6.0 / (width + 1))  # Xavier-uniform of a (K, 1) matrix

        def head() -> nn.Parameter:
            return nn.Parameter(torch.empty(width).uniform_(-bound, bound, generator=draw).to(graph.device))

        self.item_head = head()
        self.user_head = head()
        self.branch_weights = torch.tensor([1.0, self.config.alpha, self.config.beta], device=graph.device)
        self.c = 0.0 if isinstance(self.config.c, str) else self.config.c
        self.scanned = []

    def parameters(self, stage: Stage) -> list[ParamGroup]:
        return [{"params": [*self.encoder.parameters, self.item_head, self.user_head]}]

    def loss(self, batch: Batch) -> Losses:
        final, layer0 = self.encoder(batch), self.encoder.layer0
        found = head_scores_with_l2(final, layer0, batch, self.user_head, self.item_head)
        match, item, user = parts = losses_of(found, self.config.fusion, batch.weight)
        total = self.branch_weights @ parts + self.config.l2 * found.penalty
        return Losses(total, {"bce": match, "item": item, "user": user, "l2": found.penalty})

    def end_epoch(self, ctx: EpochContext) -> None:
        """The health of the item head: how its loss compares with that of a head of zeros."""
        if ctx.losses is not None:
            self._item_loss = ctx.losses["item"]
            ctx.log["item_head"] = {"loss": self._item_loss, "zero_head": ZERO_HEAD}

    def needs_validation(self) -> str | None:
        return "method.c=scan is chosen on it; a number for method.c needs none" if self.config.c == SCAN else None

    def finish(self, ctx: EpochContext) -> None:
        if self._item_loss is not None and self._item_loss >= ZERO_HEAD:
            log.warning(
                "MACR's item head ended with a loss of %.4f, no better than a head of zeros (%.4f): it knows nothing "
                "of popularity, and subtracting it removes none; use method.fusion=allpairs or a larger method.alpha",
                *(self._item_loss, ZERO_HEAD),
            )
        if self.config.c != SCAN:
            return

        def scan(validate: Callable[[Scorer], Metrics]) -> float:
            self.scanned = [[c, validate(self._scorer(c))[ctx.monitor]] for c in self.config.c_candidates]
            return max(self.scanned, key=lambda tried: tried[1])[0]

        chosen = ctx.decided("c", scan)
        if chosen is not None:
            self.c = chosen

    def fold_in(self) -> FoldIn:
        raise ConfigError(
            "macr subtracts what its branch learned about each person, which nobody knows of a new one; use "
            "lightgcn or softmax for new people"
        )

    def scorer(self) -> Scorer:
        return self._scorer(self.c)

    def state(self) -> State:
        tensors = {**self.encoder.state(), "item_head": self.item_head.data, "user_head": self.user_head.data}
        return State(tensors, {"c": self.c, "scanned": self.scanned})

    def load_scalars(self, scalars: Mapping[str, Any]) -> None:
        self.c = scalars["c"]
        self.scanned = scalars["scanned"]

    def _scorer(self, c: float) -> Scorer:
        with torch.no_grad():
            return DotScorer(counterfactual(self.encoder(), self.item_head, self.user_head, c))
