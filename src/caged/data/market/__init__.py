"""The built-in market: a made-up shop with a feedback loop whose customers' true preferences are known.

market    the door: `simulate` and what it gives
config    the parameters and why they have their values
world     what users truly like, drawn once
policy    the shop's small personalised model
loop      rounds of showing and clicking, and the oracle test
titles    names of items and genres
truth     metrics that need to know what users truly like
"""

from caged.data.market.config import WORLDS, MarketConfig, market_of
from caged.data.market.market import Market, simulate
from caged.data.market.truth import best_true_preference_at_k, true_preference_at_k, true_preference_gap_at_k
from caged.data.market.world import World

__all__ = [
    "WORLDS",
    "Market",
    "MarketConfig",
    "World",
    "best_true_preference_at_k",
    "market_of",
    "simulate",
    "true_preference_at_k",
    "true_preference_gap_at_k",
]
