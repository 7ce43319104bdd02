"""What a user's vector leans on: the weight of every item in the history, beside LightGCN's, and its share of a score.

With the layers of LightGCN written out, a score is a sum over the history x of user u (CAGED paper, eq. 9):

    e_u . e_v = a_0 e_u^(0) . e_v  +  sum_{x in N(u)} w[u,x] (sum_{l=1..L} a_l e_x^(l-1)) . e_v

so each history item has a contribution to the score of v; the rest is the user's own layer-0 vector. Where a method
ranks by cosines, both sides are divided by |e_u| |e_v|.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from caged.data.ids import Array, IdMap
from caged.errors import ConfigError, DataError
from caged.graph import degree_weights, propagate
from caged.models import Explainable, MayRankByCosine
from caged.runs.artefact import Artefact


@dataclass(frozen=True)
class HistoryItem:
    item_id: str | int
    title: str | None
    weight: float  # of the message from the item to the user
    lightgcn_weight: float  # 1/sqrt(d_u d_i)
    ratio: float  # of the two
    degree: int  # training users of the item
    popularity_rank: int  # 1 for the item with most of them
    contribution: float | None  # to the score of the item asked about


@dataclass(frozen=True)
class Explanation:
    user_id: str | int
    items: list[HistoryItem]  # what the aggregation leans on most comes first
    item_id: str | int | None = None
    item_title: str | None = None
    score: float | None = None
    own: float | None = None  # share of the score that comes from the user's own layer-0 vector


def explain(
    fitted: Artefact, user_id: str, item_id: str | None = None, titles: Mapping[Any, str] | None = None
) -> Explanation:
    """The history of one user in the eyes of the model; with `item_id`, also what each item adds to that score."""
    method = _explainable(fitted)
    encoder = method.history_encoder()
    train = fitted.train
    user = _row("user", user_id, train.user_ids)
    item = None if item_id is None else _row("item", item_id, train.item_ids)
    first, last = encoder.graph.user_offsets[user : user + 2].tolist()
    edges = slice(first, last)
    history = encoder.graph.items[edges].cpu().numpy()
    weights = encoder.weights.to_user[edges].double().cpu().numpy()
    usual = degree_weights(encoder.graph).to_user[edges].double().cpu().numpy()
    contributions = None if item is None else _contributions(method, history, weights, user, item)
    ranks = np.empty(train.item_count, dtype=np.int64)
    ranks[np.argsort(-train.item_degrees, kind="stable")] = np.arange(1, train.item_count + 1)
    names = titles or {}

    def described(place: int) -> HistoryItem:
        row = history[place]
        known_as = train.item_ids.values[int(row)].as_py()
        return HistoryItem(
            item_id=known_as,
            title=names.get(known_as),
            weight=float(weights[place]),
            lightgcn_weight=float(usual[place]),
            ratio=float(weights[place] / usual[place]),
            degree=int(train.item_degrees[row]),
            popularity_rank=int(ranks[row]),
            contribution=None if contributions is None else float(contributions[place]),
        )

    by = weights if contributions is None else contributions
    items = [described(int(place)) for place in np.argsort(-by, kind="stable")]
    shown_user = train.user_ids.values[user].as_py()
    if item is None or contributions is None:
        return Explanation(shown_user, items)
    score = float(fitted.method.scorer()(torch.tensor([user], device=fitted.device))[0, item])
    wanted = train.item_ids.values[item].as_py()
    return Explanation(shown_user, items, wanted, names.get(wanted), score, score - float(contributions.sum()))


def _contributions(method: Explainable, history: Array, weights: Array, user: int, item: int) -> Array:
    """w[u,x] (sum_{l=1..L} a_l e_x^(l-1)) . e_v for every x of the history."""
    encoder = method.history_encoder()
    with torch.no_grad():
        vectors = encoder()
        target = vectors.items[item]
        if isinstance(method, MayRankByCosine) and method.ranks_by_cosine():
            target = method.ranked(vectors).items[item] / vectors.users[user].norm()
        sources = propagate(encoder.weights, encoder.layer0, encoder.layer_weights[1:]).items
        rows = sources.index_select(0, torch.from_numpy(history).to(sources.device))
        shares: Array = weights * (rows @ target).double().cpu().numpy()
    return shares


def _explainable(fitted: Artefact) -> Explainable:
    if not isinstance(fitted.method, Explainable):
        raise ConfigError(
            f"method '{fitted.name}' aggregates nothing over a user's history, so there are no weights to show; "
            f"explain needs a run of a graph method such as caged or lightgcn"
        )
    if len(fitted.method.history_encoder().layer_weights) == 1:
        raise ConfigError(
            "this run has method.layers=0 and aggregates nothing; explain needs a run with at least one layer"
        )
    return fitted.method


def _row(kind: str, wanted: str, known: IdMap) -> int:
    row = int(known.rows([wanted])[0])  # text finds integers, too
    if row < 0:
        example = known.values[0].as_py()
        raise DataError(f"{kind} '{wanted}' does not occur in this run; its ids look like {example!r}, use one of them")
    return row
