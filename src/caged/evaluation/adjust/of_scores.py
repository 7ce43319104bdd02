"""Adjusted vectors and scores. The maths is in the docstring of the package."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from caged.data.interactions import Interactions
from caged.data.seen import Seen
from caged.errors import ConfigError
from caged.evaluation.adjust.choice import Adjustment
from caged.evaluation.topk import ScoreFunction, SeenMask
from caged.graph import Tables
from caged.models import DotScorer, Scorer

EDGES_AT_A_TIME = 1 << 18
EQUAL_NORMS = 1e-3  # largest relative difference of norms that are taken for equal


def adjusted(scorer: Scorer, train: Interactions, adjustment: Adjustment) -> Scorer:
    """The scorer with popularity taken out; with strength 0 the very scorer."""
    if adjustment.is_neutral:
        return scorer
    if adjustment.form == "quota":
        raise ConfigError(
            "form 'quota' picks from finished lists and changes no scores; adjust the lists instead, "
            "or use form 'degree'"
        )
    if scorer.vectors is not None:
        return DotScorer(adjusted_vectors(scorer.vectors, train, adjustment))
    if adjustment.form == "norm":
        raise ConfigError("form 'norm' needs vectors, and this method has none; use form 'degree'")
    return AdjustedScores(scorer, train, adjustment.strength)


def adjusted_vectors(vectors: Tables, train: Interactions, adjustment: Adjustment) -> Tables:
    """`norm`: other item vectors. `degree`: one more column, -a sd_u for users and log(1 + d_i) for items."""
    if adjustment.form == "norm":
        norms = vectors.items.norm(dim=1, keepdim=True)
        shrunk = vectors.items / norms.clamp_min(torch.finfo(norms.dtype).tiny) ** adjustment.strength
        return Tables(vectors.users, shrunk)
    spread = score_spread(vectors, train).to(vectors.users.dtype)
    users = torch.cat((vectors.users, -adjustment.strength * spread.unsqueeze(1)), dim=1)
    items = torch.cat((vectors.items, log_popularity(train, vectors.items).unsqueeze(1)), dim=1)
    return Tables(users, items)


def norms_are_equal(items: Tensor) -> bool:
    """Whether the form `norm` would change no order: all item vectors are of one length (zero vectors aside)."""
    norms = items.norm(dim=1)
    norms = norms[norms > 0]
    return len(norms) == 0 or bool(norms.max() - norms.min() <= EQUAL_NORMS * norms.max())


def log_popularity(train: Interactions, like: Tensor) -> Tensor:
    """log(1 + d_i) for every item."""
    return torch.from_numpy(np.log1p(train.item_degrees)).to(like.device, like.dtype)


def score_spread(vectors: Tables, train: Interactions) -> Tensor:
    """sd_u for every user, float64: from sums over the catalogue, less those over the user's training items.

    With the item vectors E, the sum of all scores of u is e_u . sum_i e_i and that of their squares is
    e_u' (E' E) e_u, so no score of the whole catalogue is ever computed.
    """
    users, items = vectors.users.detach().double(), vectors.items.detach().double()
    total = users @ items.sum(dim=0)
    squares = ((users @ (items.T @ items)) * users).sum(dim=1)
    for first in range(0, len(train), EDGES_AT_A_TIME):
        part = slice(first, first + EDGES_AT_A_TIME)
        owner = torch.tensor(train.users[part], device=users.device)
        owned = torch.tensor(train.items[part], device=users.device)
        scores = (users.index_select(0, owner) * items.index_select(0, owned)).sum(dim=1)
        total.index_add_(0, owner, -scores)
        squares.index_add_(0, owner, -scores.square())
    left = torch.from_numpy(train.item_count - train.user_degrees).to(users.device).clamp_min(1)
    return (squares / left - (total / left).square()).clamp_min(0).sqrt()


class AdjustedScores:
    """`degree` for scores that are no dot product."""

    vectors: Tables | None = None

    def __init__(self, scorer: ScoreFunction, train: Interactions, strength: float) -> None:
        self._scorer, self._train, self._strength = scorer, train, strength
        self._mask: SeenMask | None = None  # on the device of the first scores

    def __call__(self, users: Tensor) -> Tensor:
        scores = self._scorer(users)
        self._mask = self._mask or SeenMask(Seen(self._train), scores.device)
        unseen = scores.clone(memory_format=torch.contiguous_format)
        self._mask.apply(unseen, users.cpu().numpy())
        spread = _spread_of_finite(unseen).unsqueeze(1)
        return scores - self._strength * spread * log_popularity(self._train, scores)


def _spread_of_finite(scores: Tensor) -> Tensor:
    """Standard deviation of each row, over what is not masked."""
    finite = torch.isfinite(scores)
    count = finite.sum(dim=1).clamp_min(1)
    mean = scores.where(finite, torch.zeros_like(scores)).sum(dim=1) / count
    away = (scores - mean.unsqueeze(1)).where(finite, torch.zeros_like(scores))
    return (away.square().sum(dim=1) / count).sqrt()
