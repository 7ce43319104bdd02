"""Some of the users: a random sample of them, and their pairs, read from their own rows alone."""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.seeding import numpy_generator


def sampled_users(part: Interactions, count: int | None) -> Array | None:
    """`count` of the users who have a pair in `part`, at random, ascending; None where that would be all of them.

    The sample depends on the number of these users and on `count`, on no seed: what is measured on it can be compared
    between runs.
    """
    users = np.flatnonzero(part.user_degrees)
    if count is None or count >= len(users):
        return None
    chosen = numpy_generator(0, "sampled users").choice(len(users), count, replace=False, shuffle=False)
    return users[np.sort(chosen)]


def of_users(part: Interactions, users: Array) -> Interactions:
    """The pairs of these users (ascending) without further values; rows keep their numbers."""
    offsets, items = part.by_user()
    first = np.asarray(offsets)[users]
    counts = np.asarray(offsets)[users + 1] - first
    # Entry j lies at j + (first entry of its user - entries of the users before).
    shift = first - (np.cumsum(counts) - counts)
    positions = np.repeat(shift, counts) + np.arange(counts.sum())
    rows = np.repeat(users.astype(np.int64), counts)
    return Interactions(part.user_ids, part.item_ids, rows, np.asarray(items[positions], dtype=np.int64))
