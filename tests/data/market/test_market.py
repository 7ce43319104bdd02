"""The built-in market: the nine properties it promises, and its parts against slow, obvious versions."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from caged.data.market import Market, policy, simulate
from caged.data.market.config import MarketConfig, stream
from caged.data.market.loop import SOURCES, Shown, draw_oracle, feedback_loop
from caged.data.market.market import FILES, TABLES
from caged.data.market.policy import ShortlistModel
from caged.data.market.titles import genre_names, item_titles
from caged.data.market.truth import (
    best_true_preference_at_k,
    true_preference_at_k,
    true_preference_gap_at_k,
)
from caged.data.market.world import World, draw_world
from caged.data.popularity import gini, top_share
from caged.errors import ConfigError, DataError, RunError

SMALL = MarketConfig(user_count=120, item_count=90, rounds=12, test_rounds=4, slots=6, rank=8, shortlist=20)


@pytest.fixture(scope="module")
def market() -> Market:
    return simulate()


@pytest.fixture(scope="module")
def preference(market: Market) -> np.ndarray:
    return market.world.preference_matrix()


@pytest.fixture(scope="module")
def small() -> Market:
    return simulate(SMALL)


EXPLORE_SHARES = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)


@pytest.fixture(scope="module")
def exposures_by_explore(market: Market) -> dict[float, np.ndarray]:
    """Exposures (rounds, items) of the default market for growing exploration, the other two shares scaled."""
    at_default = np.stack([market.exposures(number, number) for number in range(1, 51)])
    others = {
        share: exposures(share_popular=0.75 * (1 - share), share_explore=share)
        for share in EXPLORE_SHARES
        if share != market.config.share_explore
    }
    return {market.config.share_explore: at_default} | others


def exposures(**parameters: float) -> np.ndarray:
    """How often each item is shown in each of the 50 training rounds of a default market with some changes."""
    shares = {"share_popular": 0.0, "share_explore": 0.0} | parameters
    shares["share_model"] = 1.0 - shares["share_popular"] - shares["share_explore"]
    config = MarketConfig(test_rounds=0, **shares)  # type: ignore[arg-type]
    shown = feedback_loop(config, draw_world(config))
    return np.stack([np.bincount(one.shown.items, minlength=config.item_count) for one in shown])


def window_ginis(shown: np.ndarray) -> np.ndarray:
    return np.array([gini(window.sum(axis=0)) for window in shown.reshape(10, 5, -1)])


# ---------------------------------------------------------------- 1. determinism


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_equal_bytes_in_other_processes_with_other_threads_and_blas_kernels(market: Market, tmp_path: Path) -> None:
    market.write(tmp_path / "here")
    expected = digests(tmp_path / "here")
    code = """
import sys, pathlib
from caged.data.market import simulate
simulate().write(pathlib.Path(sys.argv[1]))
"""
    for threads, kernel in (("1", "Nehalem"), ("2", "Haswell")):
        folder = tmp_path / threads
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OPENBLAS_CORETYPE": kernel}
        subprocess.run([sys.executable, "-c", code, str(folder)], check=True, env=environment)
        assert digests(folder) == expected


def test_another_seed_gives_another_log(small: Market) -> None:
    other = simulate(replace(SMALL, seed=2))
    assert not other.train.equals(small.train)
    assert other.fingerprint != small.fingerprint
    assert simulate(SMALL).fingerprint == small.fingerprint


def test_oracle_share_and_titles_leave_the_log_alone(small: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caged.data.market.market.item_titles", lambda count, rng: ["x"] * count)
    other = simulate(replace(SMALL, oracle_share=0.7))
    assert other.train.equals(small.train)
    assert other.test_natural.equals(small.test_natural)
    assert other.test_oracle.num_rows > 2 * small.test_oracle.num_rows
    # The draws of the oracle are shared too: a larger share only adds pairs.
    assert np.isin(small.interactions("test_oracle").keys, other.interactions("test_oracle").keys).all()


def test_test_rounds_leave_the_training_log_alone(small: Market) -> None:
    assert simulate(replace(SMALL, test_rounds=0)).train.equals(small.train)


# ---------------------------------------------------------------- 2., 3., 4. concentration


def test_pure_exploration_is_even_and_has_no_trend(exposures_by_explore: dict[float, np.ndarray]) -> None:
    shown = exposures_by_explore[1.0]
    assert gini(shown.sum(axis=0)) < 0.05
    assert np.ptp(window_ginis(shown)) < 0.01


def test_popularity_without_exponent_is_even_too() -> None:
    shown = exposures(share_popular=1.0, popularity_exponent=0.0)
    assert gini(shown.sum(axis=0)) < 0.05
    assert np.ptp(window_ginis(shown)) < 0.01


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [({}, (0.41, 0.71, 0.74)), ({"quality_sd": 0.0, "head_start_sd": 0.0}, (0.23, 0.51, 0.55))],
    ids=["default world", "equal items"],
)
def test_showing_what_is_popular_concentrates(
    parameters: dict[str, float], expected: tuple[float, float, float]
) -> None:
    windows = window_ginis(exposures(share_popular=1.0, **parameters))
    assert (np.diff(windows) > -0.01).all()
    assert (windows[0], windows[5], windows[9]) == pytest.approx(expected, abs=0.03)


def test_exploration_lowers_concentration(exposures_by_explore: dict[float, np.ndarray]) -> None:
    ginis = [gini(exposures_by_explore[share].sum(axis=0)) for share in EXPLORE_SHARES]
    assert all(more > less for more, less in pairwise(ginis))
    assert ginis == pytest.approx([0.74, 0.62, 0.52, 0.33, 0.13, 0.02], abs=0.02)


# ---------------------------------------------------------------- 5., 6. the truth and the tests


def test_oracle_labels_depend_on_preference_alone(market: Market, preference: np.ndarray) -> None:
    label = np.zeros(preference.size)
    label[market.interactions("test_oracle").keys] = 1.0
    surprise = label - market.config.oracle_share * preference.ravel()
    exposure = np.tile(market.exposures(1, market.config.rounds), len(preference))
    outside = np.ones(preference.size, dtype=bool)
    outside[market.interactions("train").keys] = False
    assert abs(np.corrcoef(surprise[outside], exposure[outside])[0, 1]) < 0.005
    assert abs(surprise[outside].mean()) < 0.0005  # the level is right as well


def test_luck_is_independent_of_appeal_and_the_like_rate_is_met(market: Market, preference: np.ndarray) -> None:
    head_start, appeal = (market.items[name].to_numpy() for name in ("head_start", "true_appeal"))
    assert abs(np.corrcoef(head_start, appeal)[0, 1]) < 0.1
    assert preference.mean() == pytest.approx(market.config.like_rate, abs=0.003)
    assert appeal == pytest.approx(preference.mean(axis=0), abs=1e-9)
    assert head_start.mean() == pytest.approx(market.config.head_start_mean)


def test_no_pair_of_train_in_a_test_and_no_pair_twice(market: Market) -> None:
    parts = {name: market.interactions(name) for name in ("train", "test_natural", "test_oracle")}
    for name, part in parts.items():
        assert part.merged == 0
        assert len(part) == getattr(market, name).num_rows > 10_000
    for test in ("test_natural", "test_oracle"):
        assert not np.isin(parts[test].keys, parts["train"].keys).any()


# ---------------------------------------------------------------- 7., 8., 9. the default market


def test_the_log_is_far_more_unequal_than_what_users_like(market: Market) -> None:
    summary = market.summary()
    assert 0.60 <= summary["gini"]["log"] <= 0.72
    assert 0.65 <= summary["top_fifth_share"]["log"] <= 0.76
    assert summary["gini"]["true_appeal"] < 0.22
    assert summary["top_fifth_share"]["true_appeal"] < 0.33
    assert summary["counts"]["short_lists"] == 0
    assert summary["counts"]["train"] == pytest.approx(69_500, rel=0.06)
    assert summary["counts"]["test_natural"] == pytest.approx(14_900, rel=0.06)
    assert summary["counts"]["test_oracle"] == pytest.approx(77_000, rel=0.02)
    assert summary["counts"]["train_by_source"]["explore"] / market.train.num_rows == pytest.approx(0.16, abs=0.02)


def test_click_rate_falls_with_position_as_stated(market: Market) -> None:
    """Twelve checks at 3 standard errors: about one seed in 30 exceeds one of them by chance, the default does not."""
    shown = Shown.concatenated([one.shown for one in feedback_loop(market.config, market.world)])
    liked = market.world.true_preference(shown.users, shown.items)
    for position in range(1, market.config.slots + 1):
        at = shown.positions == position
        examined = position**-0.5
        chance = liked[at] * examined
        standard_error = np.sqrt((chance * (1 - chance)).sum()) / liked[at].sum()
        assert abs(shown.clicked[at].sum() / liked[at].sum() - examined) < 3 * standard_error


def recall_of_most_popular(market: Market, part: str, k: int = 20) -> tuple[float, float]:
    """(recall@k of the most popular unseen items, its expectation for random unseen items)."""
    train, test = market.interactions("train"), market.interactions(part)
    scores = np.tile(train.item_degrees.astype(float), (train.user_count, 1))
    scores[train.users, train.items] = -1.0
    lists = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    relevant = np.zeros(scores.shape, dtype=bool)
    relevant[test.users, test.items] = True
    users = np.flatnonzero(test.user_degrees)
    hits = np.take_along_axis(relevant, lists, axis=1).sum(axis=1)
    by_chance = k / (train.item_count - train.user_degrees[users])
    return float((hits[users] / test.user_degrees[users]).mean()), float(by_chance.mean())


def test_most_popular_looks_useful_and_is_not(market: Market) -> None:
    natural, by_chance = recall_of_most_popular(market, "test_natural")
    assert natural > 5 * by_chance
    oracle, by_chance = recall_of_most_popular(market, "test_oracle")
    assert oracle < 1.5 * by_chance


# ---------------------------------------------------------------- the world


def test_true_preference_is_the_formula(small: Market) -> None:
    world = small.world
    matrix = world.preference_matrix()
    for user, item in ((0, 0), (7, 31), (119, 89)):
        logit = SMALL.sharpness * float(world.z[user] @ world.v[item]) + world.q[item] - world.b
        assert matrix[user, item] == pytest.approx(1 / (1 + np.exp(-logit)), rel=1e-12)
    pairs = world.true_preference(np.arange(120)[:, None], np.arange(90)[None, :])
    assert pairs == pytest.approx(matrix, rel=1e-12)
    assert np.linalg.norm(world.z, axis=1) == pytest.approx(np.ones(120))
    assert np.linalg.norm(world.v, axis=1) == pytest.approx(np.ones(90))


def test_genres_are_balanced_and_lead_the_item_vectors() -> None:
    world = draw_world(replace(SMALL, item_count=96, item_spread=0.0))
    assert np.bincount(world.item_genres).tolist() == [8] * 12
    assert world.v.argmax(axis=1).tolist() == world.item_genres.tolist()
    assert world.v.max() == 1.0


@pytest.mark.parametrize("like_rate", [1e-6, 0.3, 1 - 1e-6])
def test_calibration_meets_any_like_rate(like_rate: float) -> None:
    world = draw_world(replace(SMALL, like_rate=like_rate))
    assert world.preference_matrix().mean() == pytest.approx(like_rate, rel=0.05)


def test_activity_is_clipped() -> None:
    world = draw_world(replace(SMALL, activity_sd=3.0))
    assert world.activity.min() == 0.02
    assert world.activity.max() == 1.0


def test_the_full_matrix_has_a_budget(small: Market) -> None:
    with pytest.raises(ConfigError, match=r"120 users for 90 items need 86,400 bytes; at most 1,000 are allowed"):
        small.world.preference_matrix(budget=1000)


def test_world_survives_a_file(small: Market, tmp_path: Path) -> None:
    small.world.save(tmp_path / "world.npz")
    again = World.load(tmp_path / "world.npz")
    assert np.array_equal(again.preference_matrix(), small.world.preference_matrix())
    (tmp_path / "world.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(RunError, match="is not the world of a market"):
        World.load(tmp_path / "world.npz")


# ---------------------------------------------------------------- the loop


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


def dense_shortlists(clicks: np.ndarray, basis: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(3):
        basis = np.linalg.qr(clicks.T @ clicks @ basis)[0]
    scores = np.round(clicks @ basis @ basis.T, 9)
    scores[clicks > 0] = -np.inf
    items = np.arange(clicks.shape[1])
    return np.stack([np.lexsort((items, -row))[:length] for row in scores]), basis


@pytest.mark.parametrize("block_edges", [7, 1 << 18])
def test_model_equals_dense_algebra(block_edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two fits, the second starting from the first; users and items without clicks included."""
    monkeypatch.setattr(policy, "_BLOCK_EDGES", block_edges)
    model = ShortlistModel(SMALL, stream(1, "model"))
    basis = stream(1, "model").standard_normal((90, 8))
    rng = np.random.default_rng(0)
    clicks = np.zeros((120, 90))
    for _ in range(2):
        clicks[3:, :85] += rng.random((117, 85)) < 0.08
        clicks = np.minimum(clicks, 1.0)
        model.refit(np.flatnonzero(clicks), np.ones(90))
        expected, basis = dense_shortlists(clicks, basis, 20)
        assert model.shortlists is not None
        assert np.array_equal(model.shortlists, expected)
    assert model.shortlists[0].tolist() == list(range(20))  # no click, all scores equal: ties by row number


def test_model_survives_a_log_without_clicks() -> None:
    model = ShortlistModel(SMALL, stream(1, "model"))
    model.refit(np.empty(0, dtype=np.int64), np.ones(90))
    assert model.shortlists is not None
    assert (model.shortlists == np.arange(20)).all()


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


# ---------------------------------------------------------------- outputs


def test_tables_have_the_stated_columns(small: Market) -> None:
    log = ["user_id", "item_id", "timestamp", "round", "position", "source"]
    assert small.train.column_names == small.test_natural.column_names == log
    assert small.test_oracle.column_names == ["user_id", "item_id"]
    assert small.items.column_names == ["item_id", "title", "genre", "quality", "true_appeal", "head_start"]
    assert small.users.column_names == ["user_id", "genre_1", "genre_2", "mix", "activity"]
    assert small.rounds.column_names == ["round", "item_id", "exposures", "clicks"]
    assert small.users["user_id"][0].as_py() == "u0001"
    assert small.items["item_id"][89].as_py() == "i0090"
    rounds = small.train["round"].to_numpy()
    assert (rounds.min(), rounds.max()) == (1, 12)
    assert np.unique(small.test_natural["round"].to_numpy()).tolist() == [13, 14, 15, 16]
    assert np.array_equal(small.train["timestamp"].to_numpy(), rounds * 86400)
    assert (np.diff(rounds) >= 0).all()


def test_rounds_table_counts_the_log(small: Market) -> None:
    assert small.rounds["exposures"].to_numpy().min() > 0
    clicks = small.rounds["clicks"].to_numpy()
    in_train = small.rounds["round"].to_numpy() <= SMALL.rounds
    assert clicks[in_train].sum() == small.train.num_rows
    assert clicks[~in_train].sum() == small.test_natural.num_rows
    shown = Shown.concatenated([one.shown for one in feedback_loop(SMALL, small.world) if 3 <= one.number <= 5])
    assert np.array_equal(small.exposures(3, 5), np.bincount(shown.items, minlength=90))


def test_written_folder_is_complete(small: Market, tmp_path: Path) -> None:
    folder = tmp_path / "market"
    small.write(folder)
    for name in TABLES:
        assert pq.read_table(folder / FILES[name]).equals(getattr(small, name))
    stored = json.loads((folder / "simulation.json").read_text())
    assert stored == json.loads(json.dumps(small.summary()))
    assert stored["parameters"]["sharpness"] == 6.0
    assert stored["seed"] == 1
    assert stored["numpy"] == np.__version__
    assert stored["train_fingerprint"] == small.interactions("train").fingerprint
    assert np.array_equal(World.load(folder / "world.npz").z, small.world.z)
    assert {path.name for path in folder.iterdir()} == {
        "simulation.json",
        "world.npz",
        *("train.parquet", "test.parquet", "test_oracle.parquet"),  # train and test: a folder that `load` reads
        *("items.parquet", "users.parquet", "rounds.parquet"),
    }
    with pytest.raises(RunError, match="is not empty"):
        small.write(folder)


def test_fingerprint_sees_every_table(small: Market) -> None:
    for name in TABLES:
        changed = replace(small, **{name: getattr(small, name).slice(1)})
        assert changed.fingerprint != small.fingerprint


def test_titles_are_distinct_and_numbered_when_used_up() -> None:
    titles = item_titles(6500, np.random.default_rng(0))
    assert len(set(titles)) == 6500
    assert len(titles[0].split()) == 2
    assert titles[3000] == f"{titles[0]} II"
    assert titles[6000] == f"{titles[0]} III"
    assert genre_names(12)[0] == "noir"
    assert len(set(genre_names(60))) == 60


# ---------------------------------------------------------------- concentration and truth as functions


def test_gini_equals_the_mean_difference() -> None:
    """Second formula: half the mean absolute difference of all pairs, over the mean."""
    counts = np.random.default_rng(0).integers(0, 50, size=200)
    differences = np.abs(counts[:, None] - counts[None, :]).mean()
    assert gini(counts) == pytest.approx(differences / (2 * counts.mean()))
    assert gini(np.array([1, 2, 1, 3, 0, 3, 0, 0, 1, 2, 0, 1])) == pytest.approx(84 / 168)
    assert np.isnan(gini(np.zeros(3)))


def test_top_share_of_uneven_counts() -> None:
    assert top_share(np.array([1, 2, 3, 4, 90, 0, 0])) == pytest.approx(94 / 100)  # ceil(1.4) = 2 items
    assert np.isnan(top_share(np.zeros(3)))


def test_true_preference_at_k_averages_what_is_listed(small: Market) -> None:
    matrix = small.world.preference_matrix()
    lists = np.array([[3, 5, 8], [2, -1, -1], [-1, -1, -1]])
    values = true_preference_at_k(lists, np.array([10, 4, 0]), small.world)
    assert values[0] == pytest.approx((matrix[10, 3] + matrix[10, 5] + matrix[10, 8]) / 3)
    assert values[1] == pytest.approx(matrix[4, 2])
    assert np.isnan(values[2])


def test_best_list_avoids_seen_pairs_and_has_no_gap(small: Market) -> None:
    matrix, train = small.world.preference_matrix(), small.interactions("train")
    users = np.array([17, 3, 64])
    seen = np.zeros(matrix.shape, dtype=bool)
    seen[train.users, train.items] = True
    allowed = [np.where(seen[user], -1.0, matrix[user]) for user in users]
    lists = np.stack([np.argsort(-row)[:5] for row in allowed])
    best = best_true_preference_at_k(users, 5, small.world, train.keys)
    assert best == pytest.approx([np.sort(row)[-5:].mean() for row in allowed])
    assert (best_true_preference_at_k(users, 5, small.world) >= best).all()
    assert true_preference_gap_at_k(lists, users, small.world, train.keys) == pytest.approx(np.zeros(3), abs=1e-12)
    worse = np.stack([np.argsort(-row)[5:10] for row in allowed])
    assert (true_preference_gap_at_k(worse, users, small.world, train.keys) > 0).all()


def test_best_list_with_few_items_left(small: Market) -> None:
    matrix = small.world.preference_matrix()
    all_but_two, everything = np.arange(88), 90 + np.arange(90)
    best = best_true_preference_at_k(np.array([0, 1]), 5, small.world, np.concatenate((all_but_two, everything)))
    assert best[0] == pytest.approx(matrix[0, 88:].mean())
    assert np.isnan(best[1])


def test_truth_refuses_wrong_shapes(small: Market) -> None:
    with pytest.raises(DataError, match=r"lists have shape \(3,\) for 1 users"):
        true_preference_at_k(np.array([1, 2, 3]), np.array([0]), small.world)
    with pytest.raises(DataError, match="k is 0; allowed are integers from 1"):
        best_true_preference_at_k(np.array([0]), 0, small.world)


# ---------------------------------------------------------------- configuration


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
