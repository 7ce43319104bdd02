"""A market that takes no time."""

from __future__ import annotations

from caged.data.market.config import MarketConfig

SMALL = MarketConfig(user_count=120, item_count=90, rounds=12, test_rounds=4, slots=6, rank=8, shortlist=20)
