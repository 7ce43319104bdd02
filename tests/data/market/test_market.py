"""The built-in market: the nine properties it promises, and what it writes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.data import given_split, load
from caged.data.market import Market, market_of, simulate
from caged.data.market.config import MarketConfig
from caged.data.market.loop import SOURCES, Shown, feedback_loop
from caged.data.market.market import FILES, TABLES, _column_bytes
from caged.data.market.world import World, draw_world
from caged.data.popularity import gini
from caged.data.shown import ShownAtRandom
from caged.errors import RunError
from tests.data.market.small import SMALL

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


def table_digest(name: str, table: pa.Table) -> str:
    digest = hashlib.sha256()
    for column in table.column_names:
        digest.update(f"{name}.{column}\n".encode())
        for content in _column_bytes(table[column]):
            digest.update(content)
    return digest.hexdigest()


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    ("threads", "kernel"), [("2", "Nehalem"), pytest.param("1", "Haswell", marks=pytest.mark.slow)]
)
def test_equal_bytes_in_another_process_with_other_threads_and_blas_kernels(
    threads: str, kernel: str, market: Market, tmp_path: Path
) -> None:
    """The fixture was made with one thread and the kernels that fit this machine."""
    market.write(tmp_path / "here")
    code = """
import sys, pathlib
from caged.data.market import simulate
simulate().write(pathlib.Path(sys.argv[1]))
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OPENBLAS_CORETYPE": kernel}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], check=True, env=environment)
    assert digests(tmp_path / "there") == digests(tmp_path / "here")


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
        *("train.parquet", "test.parquet", "test_negative.parquet"),  # a folder that `load` reads
        "test_oracle.parquet",
        *("items.parquet", "users.parquet", "rounds.parquet"),
    }
    with pytest.raises(RunError, match="is not empty"):
        small.write(folder)


def test_fingerprint_sees_every_table(small: Market) -> None:
    for name in TABLES:
        changed = replace(small, **{name: getattr(small, name).slice(1)})
        assert changed.fingerprint != small.fingerprint


# ---------------------------------------------------------------- what chance showed

# Of the tables of SMALL as they were before there was a `test_negative`: it takes nothing from any random stream.
BEFORE = {
    "train": "def7fc5625333eee7bc531aa4b9b469b167f96c28bf8a6acecdf551d8feb7d93",
    "test_natural": "2933a1f17eb80f71be57a145df4e00ce515fbc03ae497c7cb461e3dd8c7eef0a",
    "test_oracle": "095174c407e09e6b9bf2e2ffedcddff1a4f26a0dcc42ee54b8e5bc9153aa9d16",
    "items": "64cb2ecbb641bc31cebcac419241a1e3aca2c3e65d1ce274acbf977475a25880",
    "users": "7ce9ab2b44a7da41b03fa4f623a2568296024b0d730fb633cb5689bf59c6a3e7",
    "rounds": "f0c8d408907c0757492d79403967cfca1a277d5e1f910c2c35b5ab511c04da89",
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_chance_showed_changes_no_other_table(small: Market, name: str) -> None:
    assert table_digest(name, getattr(small, name)) == BEFORE[name]


def test_test_negative_is_what_chance_showed_for_nothing(small: Market) -> None:
    """By a slow reading of the loop, pair by pair."""
    passed_over: dict[tuple[int, int], tuple[int, int]] = {}
    clicked = set()
    for one in feedback_loop(SMALL, small.world):
        shown = one.shown
        columns = (shown.users, shown.items, shown.positions, shown.sources, shown.clicked)
        for user, item, position, source, click in zip(*(column.tolist() for column in columns), strict=True):
            if click:
                clicked.add((user, item))
            elif SOURCES[source] == "explore" and one.number > SMALL.rounds:
                passed_over.setdefault((user, item), (one.number, position))
    wanted = {pair: about for pair, about in passed_over.items() if pair not in clicked}
    part = small.interactions("test_negative")
    found = zip(part.users.tolist(), part.items.tolist(), part.columns["round"], part.columns["position"], strict=True)
    assert {(user, item): about for user, item, *about in found} == {
        pair: list(about) for pair, about in wanted.items()
    }
    assert set(part.columns["source"]) == {"explore"}
    assert 0 < len(part) < len(passed_over)


def test_liked_are_only_clicks_on_what_chance_showed(small: Market) -> None:
    shown = small.shown_at_random()
    sources = small.interactions("test_natural").columns["source"]
    assert 0 < len(shown.liked) == np.count_nonzero(sources == "explore") < len(sources)
    assert len(shown.not_liked) == small.test_negative.num_rows


def test_more_chance_while_the_test_is_collected_leaves_the_training_log_alone(small: Market) -> None:
    more = simulate(replace(SMALL, test_share_explore=0.8))
    assert more.train.equals(small.train)
    assert more.test_negative.num_rows > 2 * small.test_negative.num_rows


def test_without_test_rounds_there_is_nothing_to_judge_by() -> None:
    market = simulate(replace(SMALL, test_rounds=0))
    assert (market.test_natural.num_rows, market.test_negative.num_rows) == (0, 0)
    assert math.isnan(market.summary()["popularity_contrast"]["like_rate"]["ratio"])


# ---------------------------------------------------------------- a market that looks like the world


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_the_world_kuairand_is_as_unequal_as_kuairand_and_as_fair_under_chance(seed: int) -> None:
    market = simulate(market_of("kuairand", seed=seed))
    contrast = market.summary()["popularity_contrast"]
    assert 0.9 * 97 <= contrast["degree"]["ratio"] <= 1.1 * 97
    assert abs(contrast["like_rate"]["ratio"] - 1.9) <= 0.1
    if seed == 1:  # as docs/data.md says
        assert contrast["degree"]["ratio"] == pytest.approx(100.9, abs=0.1)
        assert contrast["like_rate"]["ratio"] == pytest.approx(1.94, abs=0.01)


def test_valid_negative_is_what_chance_showed_before_the_test_and_knows_nothing_of_it(small: Market) -> None:
    asked = simulate(SMALL, valid_negative=True)
    longer = simulate(replace(SMALL, test_rounds=SMALL.test_rounds + 3), valid_negative=True)
    found = asked.valid_negative
    assert found is not None
    assert asked.fingerprint == small.fingerprint
    assert small.valid_negative is None
    assert longer.valid_negative == found
    assert set(found["source"].to_pylist()) == {"explore"}
    assert max(found["round"].to_pylist()) <= SMALL.rounds
    pairs = list(zip(found["user_id"].to_pylist(), found["item_id"].to_pylist(), strict=True))
    assert len(set(pairs)) == len(pairs) > 0
    clicked = set(zip(asked.train["user_id"].to_pylist(), asked.train["item_id"].to_pylist(), strict=True))
    assert clicked.isdisjoint(pairs)


def test_a_market_with_valid_negative_is_a_split_that_has_it(tmp_path: Path) -> None:
    simulate(SMALL, valid_negative=True).write(tmp_path / "market")
    parts = given_split(load(tmp_path / "market").parts or {}, seed=1, protocol="honest")
    assert parts.valid is not None
    assert parts.valid_negative is not None
    shown = ShownAtRandom.of(parts.valid, parts.valid_negative)
    assert set(shown.liked.columns["source"]) == {"explore"}
    assert 0 < len(shown.liked) < len(parts.valid)
