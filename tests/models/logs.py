"""Tiny logs with known answers."""

from __future__ import annotations

import numpy as np

from caged.data import Interactions


def checkerboard(size=12, held_out=None):
    """User u likes item i if u + i is even. `held_out` (u -> i) pairs are left out: they must rank first."""
    pairs = [(u, i) for u in range(size) for i in range(size) if (u + i) % 2 == 0]
    held = set((held_out or {}).items())
    users, items = zip(*[pair for pair in pairs if pair not in held], strict=True)
    return Interactions.from_ids(np.array(users), np.array(items))


def skewed(user_count=40, item_count=30, per_user=8, seed=0):
    """Popular items are drawn more often; every user has `per_user` distinct items."""
    rng = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, item_count + 1)
    popularity /= popularity.sum()
    users = np.repeat(np.arange(user_count), per_user)
    items = np.concatenate([rng.choice(item_count, per_user, replace=False, p=popularity) for _ in range(user_count)])
    return Interactions.from_ids(users, items)
