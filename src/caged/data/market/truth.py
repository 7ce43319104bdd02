"""Metrics that exist only where the truth is known: how much users really like what they are recommended."""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array
from caged.data.market.world import World, users_per_block
from caged.errors import DataError

_BLOCK_ROWS = 8192  # lists scored at once


def true_preference_at_k(lists: Array, users: Array, world: World) -> Array:
    """true_preference@k: per user the mean of p over the recommended items.

    `lists` holds item rows, shape (n, k), padded with -1 where a list is shorter; `users` the n user rows. The mean is
    over the items that are there; an empty list has no value (NaN).
    """
    lists, users = np.asarray(lists), np.asarray(users)
    if lists.ndim != 2 or len(lists) != len(users):
        raise DataError(
            f"lists have shape {lists.shape} for {len(users)} users; allowed is one row of k items per user"
        )
    values = np.empty(len(users))
    for start in range(0, len(users), _BLOCK_ROWS):
        block = lists[start : start + _BLOCK_ROWS]
        listed = block >= 0
        preference = world.true_preference(users[start : start + _BLOCK_ROWS, None], block)
        total = np.where(listed, preference, 0.0).sum(axis=1)
        values[start : start + _BLOCK_ROWS] = _mean(total, listed.sum(axis=1))
    return values


def best_true_preference_at_k(users: Array, k: int, world: World, seen: Array | None = None) -> Array:
    """The largest true_preference@k any list of k items can reach, per user.

    `seen` are sorted keys user * N + item (`Interactions.keys`) of pairs that no list may contain, as train is masked
    for every method. Where fewer than k items are left the list holds all of them; none left: NaN.
    """
    if k < 1:
        raise DataError(f"k is {k}; allowed are integers from 1")
    users = np.asarray(users)
    values = np.empty(len(users))
    step = users_per_block(world.item_count)
    length = min(k, world.item_count)
    for start in range(0, len(users), step):
        block = users[start : start + step]
        preference = world.preference_rows(block)
        if seen is not None:
            _mask(preference, block, seen)
        best = np.partition(preference, world.item_count - length, axis=1)[:, world.item_count - length :]
        best = np.sort(best, axis=1)  # a fixed order of addition
        allowed = best >= 0.0
        values[start : start + step] = _mean(np.where(allowed, best, 0.0).sum(axis=1), allowed.sum(axis=1))
    return values


def true_preference_gap_at_k(lists: Array, users: Array, world: World, seen: Array | None = None) -> Array:
    """Distance of true_preference@k to the best list of the same length k = lists.shape[1], per user; 0 is perfect."""
    reached = true_preference_at_k(lists, users, world)
    return best_true_preference_at_k(users, np.asarray(lists).shape[1], world, seen) - reached


def _mask(preference: Array, users: Array, seen: Array) -> None:
    """Set the seen pairs of a block of users to -1, below every preference."""
    first = np.searchsorted(seen, users * np.int64(preference.shape[1]))
    counts = np.searchsorted(seen, (users + 1) * np.int64(preference.shape[1])) - first
    rows = np.repeat(np.arange(len(users)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    preference[rows, seen[first[rows] + within] % preference.shape[1]] = -1.0


def _mean(total: Array, count: Array) -> Array:
    return np.asarray(np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0))
