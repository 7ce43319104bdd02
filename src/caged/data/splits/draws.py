"""The draw of a popularity-balanced test part.

A random test part repeats the popularity of the log. Here the chance of a pair to become test is inverse to the
popularity of its item, so that items occur in test about equally often. In the manner of the balanced tests of BC-Loss
and AdvDrop, with these rules:

1. One random pair of every user and of every item is kept for train: nothing in test is unknown to training.
2. At most a share (`max_item_share`) of an item's pairs becomes test. Without that limit all pairs of rare items
   would, because they cannot fill an equal number of places otherwise, and nothing could be learned about them.
3. The places of the test part are dealt to the items in rounds, one place per round for every item that can still
   take one. In the last, incomplete round it is at random which items get one. An item with n places gives n random
   pairs of those not kept. Fixed numbers instead of independent coins: no imbalance by chance is added.
4. Validation is a random draw from the rest, again less the pairs kept. It has the popularity of the training part,
   since before the intervention nobody has other data to decide on.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.errors import DataError


def draw_intervened(
    data: Interactions,
    generator: np.random.Generator,
    *,
    test_count: int,
    valid_count: int,
    max_item_share: float,
) -> tuple[Array, Array]:
    """Two masks over the pairs: in validation, in test."""
    kept = (ranks_within(data.users, generator.random(len(data))) == 0) | (
        ranks_within(data.items, generator.random(len(data))) == 0
    )
    free = np.flatnonzero(~kept)
    items = data.items[free]
    share = Fraction(str(max_item_share))  # in exact decimals: 0.29 of 100 pairs are 29
    most = data.item_degrees * share.numerator // share.denominator
    room = np.minimum(most, np.bincount(items, minlength=data.item_count))
    if room.sum() < test_count or len(free) < test_count + valid_count:
        raise DataError(
            f"a balanced test part of {test_count} and a validation part of {valid_count} interactions cannot be taken "
            f"from {len(data)}: {len(free)} are left beside one kept per user and item, of which test can take "
            f"{room.sum()} (max_item_share {max_item_share:g} of each item); lower test_share or valid_share"
        )
    places = deal(test_count, room, generator.random(data.item_count))
    in_test = np.zeros(len(data), dtype=bool)
    in_test[free] = ranks_within(items, generator.random(len(free))) < places[items]
    rest = free[~in_test[free]]
    in_valid = np.zeros(len(data), dtype=bool)
    in_valid[rest[np.argsort(generator.random(len(rest)), kind="stable")[:valid_count]]] = True
    return in_valid, in_test


def deal(places: int, room: Array, luck: Array) -> Array:
    """Deal `places` in rounds, one per round to everybody with room left; the last round goes to the smallest `luck`.

    >>> deal(7, np.array([1, 5, 3]), np.array([0.5, 0.9, 0.1])).tolist()
    [1, 3, 3]
    >>> deal(6, np.array([1, 5, 3]), np.array([0.5, 0.9, 0.1])).tolist()
    [1, 2, 3]
    """
    # After t whole rounds sum_i min(room_i, t) places are dealt; the largest t within `places` by halving.
    rounds, too_many = 0, int(room.max(initial=0)) + 1
    while too_many - rounds > 1:
        middle = (rounds + too_many) // 2
        if np.minimum(room, middle).sum() <= places:
            rounds = middle
        else:
            too_many = middle
    dealt = np.minimum(room, rounds)
    takers = np.flatnonzero(room > rounds)
    lucky = takers[np.argsort(luck[takers], kind="stable")[: places - int(dealt.sum())]]
    dealt[lucky] += 1
    return dealt


def ranks_within(groups: Array, *keys: Array) -> Array:
    """For each element its position 0..n-1 among the n elements of its group, ordered by the keys, first key first.

    >>> ranks_within(np.array([0, 1, 0, 0]), np.array([5, 1, 3, 5]), np.array([9, 0, 0, 8])).tolist()
    [2, 0, 0, 1]
    """
    order = np.lexsort((*reversed(keys), groups))
    ordered = groups[order]
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return ranks
