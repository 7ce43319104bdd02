"""Parameters of the market."""

from __future__ import annotations

import pytest

from caged.data.market import simulate
from caged.data.market.config import WORLDS, MarketConfig, market_of
from caged.errors import ConfigError


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"share_popular": 0.7},
            r"share_popular \+ share_model \+ share_explore is 1.1; the three shares must sum to 1",
        ),
        ({"share_explore": -0.2, "share_model": 0.6}, r"share_explore is -0.2; allowed are numbers from 0 to 1"),
        ({"like_rate": 1.0}, r"like_rate is 1.0; allowed are numbers from 0 to 1, both excluded"),
        ({"sharpness": float("nan")}, r"sharpness is nan; allowed are finite numbers from 0"),
        ({"sharpness": float("inf")}, r"sharpness is inf; allowed are finite numbers from 0"),
        ({"head_start_mean": 0.0}, r"head_start_mean is 0.0; allowed are finite numbers above 0"),
        ({"activity_sd": "wide"}, r"activity_sd is 'wide'; allowed are finite numbers from 0"),
        ({"rounds": 0}, r"rounds is 0; allowed are integers from 1"),
        ({"slots": 2.5}, r"slots is 2.5; allowed are integers from 1"),
        ({"test_rounds": True}, r"test_rounds is True; allowed are integers from 0"),
        ({"seed": -1}, r"seed is -1; allowed are integers from 0"),
        ({"slots": 1501}, r"slots is 1501; allowed is at most item_count = 1500"),
        ({"candidate_items": 0}, r"candidate_items is 0; allowed are integers from 1"),
        ({"candidate_items": 2000}, r"candidate_items is 2000; allowed is at most item_count = 1500"),
        ({"test_share_explore": 1.5}, r"test_share_explore is 1.5; allowed are numbers from 0 to 1"),
        (
            {"share_popular": 0.0, "share_model": 0.0, "share_explore": 1.0, "test_share_explore": 0.5},
            r"test_share_explore is 0.5 where share_explore is 1",
        ),
        ({"user_count": 10}, r"rank is 16; a matrix of 10 users and 1500 items has at most rank 10, reduce rank"),
        ({"item_count": 3_000_000}, r"2,000 users and 3,000,000 items is too large; allowed are 2,000,000 items"),
    ],
)
def test_bad_parameters_are_explained(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MarketConfig(**parameters)  # type: ignore[arg-type]


def test_the_smallest_market_runs() -> None:
    config = MarketConfig(user_count=1, item_count=1, rounds=2, test_rounds=1, slots=1, genres=1, rank=1)
    market = simulate(config)
    assert market.train.num_rows + market.test_natural.num_rows <= 1
    assert market.summary()["counts"]["users"] == 1


def test_the_other_shares_shrink_alike_in_test_rounds_with_more_chance() -> None:
    market = MarketConfig(rounds=3, share_popular=0.6, share_model=0.2, share_explore=0.2, test_share_explore=0.6)
    assert market.shares_in(3) == (0.6, 0.2)
    assert market.shares_in(4) == pytest.approx((0.3, 0.6))
    assert MarketConfig(rounds=3).shares_in(4) == MarketConfig(rounds=3).shares_in(3)


def test_a_known_world_with_some_parameters_replaced() -> None:
    assert market_of() == MarketConfig()
    assert market_of("kuairand", seed=5) == MarketConfig(**WORLDS["kuairand"], seed=5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown world 'mars'; known: demo, kuairand"):
        market_of("mars")
