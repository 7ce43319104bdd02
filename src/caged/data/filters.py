"""Filters of a log: the smallest rating, and the k-core.

Both drop pairs, and with them the users and items that have no pair left; the order of the others stays the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from caged.arguments import at_least_one, finite_number
from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.errors import DataError


def rated_at_least(
    log: Interactions, min_rating: float, *, where: str = "the log", column: str = "rating"
) -> Interactions:
    """The pairs whose rating is `min_rating` or more."""
    if log.rating is None:
        raise without_ratings(where, column)
    chosen = log.rating >= finite_number("min_rating", min_rating)
    if not chosen.any():
        raise nothing_rated(where, min_rating, float(log.rating.max()))
    return _occurring(log, chosen)


def without_ratings(where: str, column: str) -> DataError:
    return DataError(
        f"{where} has no rating column '{column}', which --min-rating needs; name it with --rating-column or leave "
        f"--min-rating out"
    )


def nothing_rated(where: str, min_rating: float, largest: float) -> DataError:
    return DataError(
        f"{where} has no rating of at least {min_rating:g} (the largest is {largest:g}); lower --min-rating"
    )


def k_core(log: Interactions, k_user: int, k_item: int, *, where: str = "the log") -> Interactions:
    """The largest part of the log in which every user has `k_user` and every item `k_item` interactions or more.

    Dropping a user may leave an item with too few and the other way round, so this repeats until nothing changes.
    """
    for name, least in (("user", k_user), ("item", k_item)):
        at_least_one(f"the least number of interactions per {name}", least)
    chosen = np.arange(len(log))
    while True:
        users, items = log.users[chosen], log.items[chosen]
        enough_users = np.bincount(users, minlength=log.user_count) >= k_user
        enough_items = np.bincount(items, minlength=log.item_count) >= k_item
        kept = enough_users[users] & enough_items[items]
        if kept.all():
            break
        chosen = chosen[kept]
    if len(chosen) == 0:
        raise nothing_in_core(where, k_user, k_item, len(log))
    return _occurring(log, chosen)


def nothing_in_core(where: str, k_user: int, k_item: int, pairs: int) -> DataError:
    return DataError(
        f"{where} has no users with {k_user} and items with {k_item} interactions among themselves: the filter "
        f"leaves nothing of {pairs:,} pairs; ask for fewer"
    )


def _occurring(log: Interactions, chosen: Array) -> Interactions:
    """The chosen pairs, in the rows of the users and items that they mention."""
    kept = log.select(chosen)
    renumbered = within(kept, kept.user_degrees > 0, kept.item_degrees > 0)
    return replace(renumbered, merged=log.merged)


def within(log: Interactions, users: Array, items: Array) -> Interactions:
    """The pairs of the users and items that two masks over the rows keep, in the rows of these alone."""
    kept = log.select(users[log.users] & items[log.items])
    (user_ids, user_rows), (item_ids, item_rows) = _kept_ids(log.user_ids, users), _kept_ids(log.item_ids, items)
    return replace(kept, user_ids=user_ids, item_ids=item_ids, users=user_rows[kept.users], items=item_rows[kept.items])


def _kept_ids(ids: IdMap, kept: Array) -> tuple[IdMap, Array]:
    """The identifiers that a mask keeps, and their row numbers by old row."""
    if kept.all():
        return ids, np.arange(len(ids))
    return IdMap(ids.external(np.flatnonzero(kept))), np.cumsum(kept) - 1
