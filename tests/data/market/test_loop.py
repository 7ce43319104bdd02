"""Rounds of showing and clicking."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from caged.data.market import simulate
from caged.data.market.config import MarketConfig, stream
from caged.data.market.loop import SOURCES, draw_oracle, feedback_loop
from caged.data.market.policy import ShortlistModel
from caged.data.market.world import draw_world
from tests.data.market.small import SMALL


def test_every_list_follows_the_rules() -> None:
    """No repeat, no earlier click, positions 1..slots; model slots only after the first fit."""
    clicked: set[tuple[int, int]] = set()
    for one in feedback_loop(SMALL, draw_world(SMALL)):
        shown = one.shown
        lists: dict[int, list[int]] = {}
        for user, item, position in zip(shown.users, shown.items, shown.positions, strict=True):
            assert (user, item) not in clicked
            lists.setdefault(user, []).append(item)
            assert position == len(lists[user])
        assert len(lists) == one.visitors
        for items in lists.values():
            assert len(set(items)) == len(items) <= SMALL.slots
        if one.number <= SMALL.retrain_every:
            assert SOURCES.index("model") not in shown.sources
        clicked.update(zip(shown.users[shown.clicked], shown.items[shown.clicked], strict=True))
    assert SOURCES.index("model") in shown.sources


@pytest.mark.parametrize("source", SOURCES)
def test_a_share_of_one_leaves_one_source(source: str) -> None:
    shares = {f"share_{name}": float(name == source) for name in SOURCES}
    config = replace(SMALL, **shares)  # type: ignore[arg-type]
    late = [one.shown.sources for one in feedback_loop(config, draw_world(config)) if one.number > 5]
    assert set(np.concatenate(late)) == {SOURCES.index(source)}


def test_model_slots_show_the_shortlist_top_more_often() -> None:
    """With weight 1/rank, the first of a user's shortlist is drawn first about twice as often as the second."""
    config = MarketConfig(
        user_count=3000, item_count=40, rounds=2, test_rounds=0, slots=1, retrain_every=1, shortlist=3,
        share_popular=0.0, share_model=1.0, share_explore=0.0, activity_mean=50.0, activity_sd=0.0, like_rate=1e-9,
        rank=1,
    )  # fmt: skip
    last = list(feedback_loop(config, draw_world(config)))[-1].shown  # nobody clicks: every shortlist is items 0, 1, 2
    shares = np.bincount(last.items, minlength=3) / len(last.items)
    assert shares == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.03)


def test_lists_get_shorter_when_items_run_out() -> None:
    config = replace(SMALL, item_count=8, slots=8, rank=4, rounds=30, like_rate=0.9, position_exponent=0.0)
    market = simulate(config)
    assert market.train.num_rows + market.test_natural.num_rows <= 120 * 8
    assert market.short_lists > 0


def test_candidates_are_drawn_by_popularity() -> None:
    config = replace(SMALL, candidate_items=30, shortlist=10)
    model = ShortlistModel(config, stream(1, "model"))
    popularity = np.where(np.arange(90) < 15, 1e6, 1.0)
    clicked = np.flatnonzero(np.random.default_rng(0).random(120 * 90) < 0.1)
    model.refit(clicked, popularity)
    assert model.shortlists is not None
    listed = np.unique(model.shortlists)
    assert len(listed) == 30
    assert (listed[:15] == np.arange(15)).all()
    keys = np.arange(120)[:, None] * 90 + model.shortlists
    assert not np.isin(keys, clicked).any()


def test_memory_stays_below_one_matrix_of_all_pairs() -> None:
    config = MarketConfig(user_count=4000, item_count=4000, rounds=2, test_rounds=1, retrain_every=1, like_rate=0.01)
    tracemalloc.start()
    simulate(config)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * 8 * config.user_count * config.item_count


def test_oracle_covers_every_pair_outside_train() -> None:
    config = replace(SMALL, oracle_share=1.0, like_rate=1 - 1e-9)
    keys = draw_oracle(config, draw_world(config), np.arange(50))
    assert keys.tolist() == list(range(50, 120 * 90))
