"""The feedback loop: the shop shows, people click what they like among what is shown, clicks decide what is shown.

One round: visitors come; each gets 4 * slots virtual slots, every one with a source (popular, model, explore) and an
item; slots whose item the user has clicked before, or that repeat an earlier slot, are struck; the first `slots` that
remain are shown; a shown item at position j is clicked with chance p * j^-position_exponent. Items shown but not
clicked may be shown again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from caged.data.ids import Array
from caged.data.market.config import MarketConfig, Shares, stream
from caged.data.market.policy import ShortlistModel
from caged.data.market.world import World

SOURCES = ("popular", "model", "explore")
_POPULAR, _MODEL, EXPLORE = range(len(SOURCES))

_VIRTUAL_SLOTS_PER_SLOT = 4
_BLOCK_VISITORS = 8192  # fixed: draws are made per block, so another value changes larger markets


@dataclass(frozen=True, eq=False)
class Shown:
    """Pairs that the shop showed in one round, by visitor and position."""

    users: Array  # int64 (S,)
    items: Array  # int64 (S,)
    positions: Array  # int64 (S,), from 1
    sources: Array  # int8 (S,), index into SOURCES
    clicked: Array  # bool (S,)

    @classmethod
    def concatenated(cls, blocks: list[Shown]) -> Shown:
        return cls(*(np.concatenate([getattr(block, field.name) for block in blocks]) for field in fields(cls)))


@dataclass(frozen=True, eq=False)
class Round:
    """One round, numbered from 1."""

    number: int
    visitors: int
    shown: Shown


def feedback_loop(config: MarketConfig, world: World) -> Iterator[Round]:
    """Rounds 1..rounds (the training log) and on, unchanged, through `test_rounds` more (the natural test)."""
    rng = stream(config.seed, "loop")
    model = ShortlistModel(config, stream(config.seed, "model"))
    shop = _Shop(config, world, model, rng)
    clicks = np.zeros(config.item_count, dtype=np.int64)
    for passed in range(config.rounds + config.test_rounds):
        popularity = clicks + world.head_start
        due = passed > 0 and passed % config.retrain_every == 0
        if due and config.share_model > 0:  # without a share nobody would look at the shortlists
            model.refit(shop.clicked, popularity)
        visitors = np.flatnonzero(rng.random(config.user_count) < world.activity)
        shown = shop.serve(visitors, popularity, config.shares_in(passed + 1))
        clicks += np.bincount(shown.items[shown.clicked], minlength=config.item_count)
        yield Round(passed + 1, len(visitors), shown)


class _Shop:
    """Fills lists and remembers which pairs were clicked, as sorted keys user * N + item (never an M x N table)."""

    def __init__(self, config: MarketConfig, world: World, model: ShortlistModel, rng: np.random.Generator) -> None:
        self._config = config
        self._world = world
        self._model = model
        self._rng = rng
        self.clicked = np.empty(0, dtype=np.int64)

    def serve(self, visitors: Array, popularity: Array, shares: Shares) -> Shown:
        """One list per visitor; the clicks are remembered after everybody has been served."""
        # Inverse-CDF draws; dividing by the largest first keeps a large exponent finite.
        popular_cdf = np.cumsum((popularity / popularity.max()) ** self._config.popularity_exponent)
        starts = range(0, max(len(visitors), 1), _BLOCK_VISITORS)
        blocks = [self._serve_block(visitors[start : start + _BLOCK_VISITORS], popular_cdf, shares) for start in starts]
        shown = Shown.concatenated(blocks)
        new = np.sort(self._keys(shown.users, shown.items)[shown.clicked])
        self.clicked = np.insert(self.clicked, np.searchsorted(self.clicked, new), new)
        return shown

    def _serve_block(self, visitors: Array, popular_cdf: Array, shares: Shares) -> Shown:
        sources, items = self._fill(visitors, popular_cdf, shares)
        usable = ~repeats_in_row(items) & ~self._already_clicked(visitors, items)
        order = np.cumsum(usable, axis=1)  # position of a usable slot, from 1
        rows, slots = np.nonzero(usable & (order <= self._config.slots))
        users, shown_items, positions = visitors[rows], items[rows, slots], order[rows, slots]
        examined = positions ** -float(self._config.position_exponent)
        chance = self._world.true_preference(users, shown_items) * examined
        clicked = self._rng.random(len(users)) < chance
        return Shown(users, shown_items, positions, sources[rows, slots], clicked)

    def _fill(self, visitors: Array, popular_cdf: Array, shares: Shares) -> tuple[Array, Array]:
        """Source and item of every virtual slot, both (visitors, 4 * slots)."""
        config = self._config
        shape = (len(visitors), _VIRTUAL_SLOTS_PER_SLOT * config.slots)
        draw = self._rng.random(shape)
        # The last border is 1 - share_explore, not a sum of the others: rounding must not explore at share 0.
        sources = (draw >= shares.popular).astype(np.int8) + (draw >= 1.0 - shares.explore)
        shortlists = self._model.shortlists
        if shortlists is None:
            sources[sources == _MODEL] = _POPULAR  # nothing fitted yet; the log says what really filled the slot
        draw = self._rng.random(shape)
        items = np.minimum((draw * config.item_count).astype(np.int64), config.item_count - 1)
        popular = sources == _POPULAR
        drawn = np.searchsorted(popular_cdf, draw[popular] * popular_cdf[-1], side="right")
        items[popular] = np.minimum(drawn, config.item_count - 1)
        if shortlists is not None:
            self._fill_from_model(items, sources == _MODEL, shortlists[visitors])
        return sources, items

    def _fill_from_model(self, items: Array, model_slots: Array, shortlists: Array) -> None:
        """Walk each visitor's shortlist in a random order that prefers its top (Gumbel keys).

        A list longer than the shortlist starts over; the repeats are struck like any other.
        """
        length = shortlists.shape[1]
        log_weight = -self._config.shortlist_exponent * np.log(np.arange(1, length + 1))
        keys = self._rng.gumbel(size=shortlists.shape) + log_weight
        walk = np.argsort(-keys, axis=1)
        rows, slots = np.nonzero(model_slots)
        step = np.cumsum(model_slots, axis=1)[rows, slots] - 1
        items[rows, slots] = shortlists[rows, walk[rows, step % length]]

    def _already_clicked(self, visitors: Array, items: Array) -> Array:
        return contains(self.clicked, self._keys(visitors[:, None], items))

    def _keys(self, users: Array, items: Array) -> Array:
        return np.asarray(users * np.int64(self._config.item_count) + items)


def repeats_in_row(items: Array) -> Array:
    """Whether the same row holds the same value further left.

    >>> repeats_in_row(np.array([[3, 1, 3, 3, 1]])).tolist()
    [[False, False, True, True, True]]
    """
    order = np.argsort(items, axis=1, kind="stable")
    ordered = np.take_along_axis(items, order, axis=1)
    repeated = np.zeros(items.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return repeated


def contains(sorted_keys: Array, keys: Array) -> Array:
    """Whether each key is among the sorted ones.

    >>> contains(np.array([2, 5]), np.array([[1, 2], [5, 9]])).tolist()
    [[False, True], [True, False]]
    """
    if len(sorted_keys) == 0:
        return np.zeros(keys.shape, dtype=bool)
    place = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.asarray(sorted_keys[place] == keys)


def draw_oracle(config: MarketConfig, world: World, train_keys: Array) -> Array:
    """Sorted keys of the oracle test: each pair outside the training log with chance oracle_share * p.

    Train is masked for every method, so given that a pair is a candidate its label depends on p alone. Pairs are not
    reserved in advance and hidden from the loop: a popular liked item that is still unclicked would then most likely
    be a reserved one, which rewards popularity. A uniform number is drawn for every pair, train or not, so the draw
    of a pair depends on the seed alone, not on the loop.
    """
    rng = stream(config.seed, "oracle")
    blocks = []
    for start, _, preference in world.preference_blocks():
        liked = rng.random(preference.shape) < config.oracle_share * preference
        blocks.append(np.flatnonzero(liked) + np.int64(start) * world.item_count)
    keys = np.concatenate(blocks)
    return np.asarray(keys[~contains(train_keys, keys)])
