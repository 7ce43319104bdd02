"""The parameters of the built-in market, and its named random streams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from caged.errors import ConfigError, unknown

# A fixed number per stream, from 1: numpy pads seeds with zeros, so [seed, 0] would be the same stream as [seed].
_STREAMS = {"world": 1, "loop": 2, "model": 3, "oracle": 4, "titles": 5}

# Shortlists rank by one integer, 1e9 * score * item_count + item. A score is at most sqrt(item_count), so this many
# items still fit into 63 bits.
_MOST_ITEMS = 2_000_000
_MOST_PAIRS = 1 << 62  # a pair is one int64: user * item_count + item


def stream(seed: int, name: Literal["world", "loop", "model", "oracle", "titles"]) -> np.random.Generator:
    """The generator of one part of the simulation; drawing more from one leaves the others alone."""
    return np.random.default_rng([seed, _STREAMS[name]])


class Shares(NamedTuple):
    """Of the virtual slots; the rest is filled by the personalised model."""

    popular: float
    explore: float


@dataclass(frozen=True)
class MarketConfig:
    """All parameters of a market. The values were chosen once, for the phenomenon to show; they are not results.

    Every range is checked on construction; `ConfigError` says what is wrong.
    """

    user_count: int = 2000
    """M. LightGCN (64 columns, 2 layers) trains in about 10 s on 2 cores; differences are clear with 3 seeds."""
    item_count: int = 1500
    """N. See `user_count`."""
    rounds: int = 50
    """Rounds that make the training log: about 69,000 clicks, 34 for the median user."""
    test_rounds: int = 10
    """Rounds after them that make the natural test: about 14,700 clicks."""
    slots: int = 12
    """Length of a shown list."""
    genres: int = 12
    """G, the dimension of taste. Tastes overlap, but a user has only about 130 of 1500 items with p > 0.5."""
    item_spread: float = 0.6
    """How far items lie from the direction of their genre. See `genres`."""
    user_spread: float = 0.5
    """How far users lie from the mix of their two favourite genres. See `genres`."""
    sharpness: float = 6.0
    """Factor of taste in the preference. At 8 most-popular loses a third of its natural recall; lower blurs tastes."""
    like_rate: float = 0.14
    """Mean true preference. Then p is 0.005 to 0.72 between its 5% and 95% quantiles."""
    quality_sd: float = 0.5
    """Genuine spread of item quality: popularity is not pure noise, but appeal is far less unequal than the log."""
    activity_mean: float = 0.8
    """Mean chance to visit in a round before the clip to [0.02, 1]; 0.67 after it."""
    activity_sd: float = 0.6
    """Spread of the visit chance (log scale): 15 to 55 clicks per user between the 10% and 90% quantiles."""
    share_popular: float = 0.6
    """Share of virtual slots filled by popularity. The three shares sum to 1."""
    share_model: float = 0.2
    """Share filled by the personalised model; more makes most-popular weaker on the natural test."""
    share_explore: float = 0.2
    """Share filled uniformly at random; less pushes the Gini above 0.7 and leaves items without any click."""
    test_share_explore: float | None = None
    """The same in the test rounds, for an experiment that shows more at random; the others shrink alike. None: as
    before."""
    popularity_exponent: float = 1.2
    """Slightly more than proportional to clicks so far, so that the rich get richer; 1.0 gives a weaker loop."""
    head_start_mean: float = 2.0
    """Pseudo-clicks an item starts with (advertising, luck), on average: a small seed for the loop."""
    head_start_sd: float = 0.5
    """Spread of the head start (log scale); independent of what users like."""
    retrain_every: int = 5
    """Rounds between two fits of the personalised model, as shops refit now and then."""
    rank: int = 16
    """Dimension of the personalised model."""
    shortlist: int = 100
    """Items per user that the model hands to the shop."""
    shortlist_exponent: float = 1.0
    """The shop draws from the shortlist with weight rank^-shortlist_exponent."""
    position_exponent: float = 0.5
    """Slot j (from 1) is examined with chance j^-position_exponent."""
    oracle_share: float = 0.2
    """Chance of a fully liked pair to be in the oracle test: about 38 items per user."""
    candidate_items: int | None = None
    """For large catalogues: the model scores only this many items, drawn by popularity at each fit. None: all."""
    seed: int = 1
    """Same seed and numpy version: same bytes of every part."""

    def __post_init__(self) -> None:
        for name, low in _INTEGERS.items():
            _require_integer(name, getattr(self, name), low)
        for name, allowed in _NUMBERS.items():
            _require_number(name, getattr(self, name), allowed)
        if self.candidate_items is not None:
            _require_integer("candidate_items", self.candidate_items, 1)
        if self.test_share_explore is not None:
            _require_number("test_share_explore", self.test_share_explore, _SHARE)
        self._require_fitting_sizes()
        total = self.share_popular + self.share_model + self.share_explore
        if abs(total - 1.0) > 1e-9:
            raise ConfigError(
                f"share_popular + share_model + share_explore is {total:.6g}; the three shares must sum to 1, "
                "change one of them"
            )
        if self.share_explore == 1 and self.test_share_explore not in (None, 1):
            raise ConfigError(
                f"test_share_explore is {self.test_share_explore} where share_explore is 1, so nothing says what else "
                "to show; leave it out, or lower share_explore"
            )

    def shares_in(self, round_number: int) -> Shares:
        """What fills the slots of a round, numbered from 1."""
        explore = self.test_share_explore
        if explore is None or round_number <= self.rounds:
            return Shares(self.share_popular, self.share_explore)
        kept = (1 - explore) / (1 - self.share_explore) if self.share_explore < 1 else 1.0
        return Shares(self.share_popular * kept, explore)

    def _require_fitting_sizes(self) -> None:
        if self.item_count > _MOST_ITEMS or self.user_count * self.item_count > _MOST_PAIRS:
            raise ConfigError(
                f"a market of {self.user_count:,} users and {self.item_count:,} items is too large; allowed are "
                f"{_MOST_ITEMS:,} items and 2^62 pairs, reduce user_count or item_count"
            )
        for name in ("slots", "candidate_items"):
            value = getattr(self, name)
            if value is not None and value > self.item_count:
                raise ConfigError(
                    f"{name} is {value}; allowed is at most item_count = {self.item_count}, reduce {name} or add items"
                )
        smaller = min(self.user_count, self.item_count)
        if self.rank > smaller:
            raise ConfigError(
                f"rank is {self.rank}; a matrix of {self.user_count} users and {self.item_count} items has at most "
                f"rank {smaller}, reduce rank"
            )


# Parameters of the markets to choose from, where they differ from the defaults above.
WORLDS: dict[str, dict[str, int | float]] = {
    "demo": {},
    # Like KuaiRand, a feed of short videos of which some were inserted at random: the most popular tenth of the items
    # has about 97 times the training users of the least popular one and is liked 1.9 times as often where chance shows
    # it. Sparse as there (about 20 clicks per user), one video at a time, more chance while the test is collected.
    "kuairand": {
        "user_count": 8000,
        "item_count": 2400,
        "rounds": 24,
        "test_rounds": 10,
        "slots": 10,
        "like_rate": 0.21,
        "quality_sd": 0.545,
        "activity_mean": 0.35,
        "share_popular": 0.705,
        "share_model": 0.2,
        "share_explore": 0.095,
        "test_share_explore": 0.8,
        "retrain_every": 8,
        "position_exponent": 0.0,
    },
}


def market_of(world: str = "demo", **parameters: Any) -> MarketConfig:
    """The parameters of a known world, some of them replaced.

    >>> market_of("kuairand", seed=2).item_count
    2400
    """
    if world not in WORLDS:
        raise ConfigError(unknown("world", world, WORLDS))
    return MarketConfig(**{**WORLDS[world], **parameters})


# Smallest allowed value of each integer.
_INTEGERS = {
    "user_count": 1,
    "item_count": 1,
    "rounds": 1,
    "test_rounds": 0,
    "slots": 1,
    "genres": 1,
    "retrain_every": 1,
    "rank": 1,
    "shortlist": 1,
    "seed": 0,
}


@dataclass(frozen=True)
class _Range:
    low: float = 0.0
    high: float = math.inf
    open_ends: bool = False

    def __contains__(self, value: float) -> bool:
        inside = self.low < value < self.high if self.open_ends else self.low <= value <= self.high
        return inside and math.isfinite(value)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"finite numbers {'above' if self.open_ends else 'from'} {self.low:g}"
        return f"numbers from {self.low:g} to {self.high:g}{', both excluded' if self.open_ends else ''}"


_NOT_NEGATIVE, _POSITIVE, _SHARE = _Range(), _Range(open_ends=True), _Range(high=1.0)
_NUMBERS = {
    "item_spread": _NOT_NEGATIVE,
    "user_spread": _NOT_NEGATIVE,
    "sharpness": _NOT_NEGATIVE,
    "like_rate": _Range(0.0, 1.0, open_ends=True),
    "quality_sd": _NOT_NEGATIVE,
    "activity_mean": _POSITIVE,
    "activity_sd": _NOT_NEGATIVE,
    "share_popular": _SHARE,
    "share_model": _SHARE,
    "share_explore": _SHARE,
    "popularity_exponent": _NOT_NEGATIVE,
    "head_start_mean": _POSITIVE,  # 0 would leave the first round without any popularity to draw from
    "head_start_sd": _NOT_NEGATIVE,
    "shortlist_exponent": _NOT_NEGATIVE,
    "position_exponent": _NOT_NEGATIVE,
    "oracle_share": _SHARE,
}


def _require_integer(name: str, value: object, low: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ConfigError(f"{name} is {value!r}; allowed are integers from {low}, choose one")


def _require_number(name: str, value: object, allowed: _Range) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or value not in allowed:
        raise ConfigError(f"{name} is {value!r}; allowed are {allowed}, choose one")
