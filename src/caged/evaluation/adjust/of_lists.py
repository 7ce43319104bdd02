"""Adjusted lists: candidates that somebody else ranked, in another order. Needs no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.data.seen import Seen
from caged.errors import ConfigError, DataError
from caged.evaluation.adjust.choice import Adjustment
from caged.evaluation.lists import PADDING, Lists

CANDIDATES_PER_PLACE = 5  # 100 candidates for a list of 20


@dataclass(frozen=True, eq=False)
class AdjustedLists:
    lists: Lists
    short_of_niche: int = 0  # lists with too few niche candidates for the quota; all they had were taken


def adjusted_lists(lists: Lists, train: Interactions, adjustment: Adjustment, k: int) -> AdjustedLists:
    """The first k places of every list, after the adjustment; with strength 0 the first k of the list as it is."""
    if adjustment.form == "norm":
        raise ConfigError("form 'norm' needs vectors, and these are lists; use form 'degree' or 'quota'")
    if adjustment.is_neutral:
        return AdjustedLists(_cut(lists, k))
    if adjustment.form == "quota":
        return _with_quota(lists, train.item_groups.niche, adjustment.strength, k)
    return AdjustedLists(_cut(_less_popular(lists, train, adjustment.strength), k))


def check_candidates(lists: Lists, k: int, where: str) -> None:
    """An adjustment can only bring up what the lists hold."""
    needed = CANDIDATES_PER_PLACE * k
    usual = int(np.median(lists.lengths)) if len(lists) else 0
    if usual < needed:
        raise DataError(
            f"the lists of {where} hold {usual} items (median), too few to adjust a top {k}; write at least {needed} "
            f"candidates per user, or choose a smaller k"
        )


def _less_popular(lists: Lists, train: Interactions, strength: float) -> Lists:
    """s_ui - a sd_u log(1 + d_i) for every candidate, sorted again."""
    if lists.scores is None:
        raise ConfigError("form 'degree' needs scores, and these lists have ranks only; use form 'quota'")
    listed = lists.items != PADDING
    items = np.where(listed, lists.items, 0)
    scores = lists.scores.astype(np.float64)
    if not bool(np.isfinite(scores[listed]).all()):
        raise DataError(
            "a score of the lists is infinite or no number, so their spread is unknown; write finite scores"
        )
    spread = _spread(scores, listed & ~_seen(lists, items, train))
    new = np.where(listed, scores - strength * spread[:, None] * np.log1p(train.item_degrees)[items], -np.inf)
    # The order that lists have everywhere: score descending, then the smaller row number.
    order = np.lexsort((np.where(listed, items, np.iinfo(np.int64).max), -new), axis=1)
    return Lists(
        lists.users,
        np.take_along_axis(lists.items, order, axis=1),
        np.take_along_axis(new, order, axis=1).astype(np.float32),
    )


def _seen(lists: Lists, items: Array, train: Interactions) -> Array:
    users = np.repeat(lists.users, lists.width)
    return Seen(train).holds(users, items.reshape(-1)).reshape(items.shape)


def _spread(scores: Array, counted: Array) -> Array:
    """Standard deviation of each row over the counted places, 0 where there are none."""
    count = np.maximum(counted.sum(axis=1), 1)
    mean = np.where(counted, scores, 0.0).sum(axis=1) / count
    away = np.where(counted, scores - mean[:, None], 0.0)
    return np.asarray(np.sqrt(np.square(away).sum(axis=1) / count))


def _with_quota(lists: Lists, niche: Array, share: float, k: int) -> AdjustedLists:
    """The best k candidates of which at least ceil(a k) are niche: the worst popular ones make room for niche ones.

    One constraint, so greedy is exact: as many of the best niche candidates as the quota asks for, then the best of
    what is left, all in their old order.
    """
    listed = lists.items != PADDING
    is_niche = listed & niche[np.where(listed, lists.items, 0)]
    places = np.minimum(k, lists.lengths)
    wanted = np.ceil(share * places - 1e-9).astype(np.int64)
    reserved = is_niche & (is_niche.cumsum(axis=1) <= wanted[:, None])
    free = places - reserved.sum(axis=1)
    others = listed & ~reserved
    taken = reserved | (others & (others.cumsum(axis=1) <= free[:, None]))
    order = np.argsort(~taken, axis=1, kind="stable")[:, :k]
    kept = np.take_along_axis(taken, order, axis=1)
    items = np.where(kept, np.take_along_axis(lists.items, order, axis=1), PADDING)
    scores = None
    if lists.scores is not None:
        scores = np.where(kept, np.take_along_axis(lists.scores, order, axis=1), -math.inf).astype(np.float32)
    short = int(np.count_nonzero(is_niche.sum(axis=1) < wanted))
    return AdjustedLists(Lists(lists.users, items, scores), short)


def _cut(lists: Lists, k: int) -> Lists:
    return Lists(lists.users, lists.items[:, :k], None if lists.scores is None else lists.scores[:, :k])
