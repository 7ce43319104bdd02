"""`caged data simulate`: a folder that can be trained on, every parameter settable."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from caged.cli.data.simulating import _parameters
from caged.config import build
from caged.data.market import WORLDS, MarketConfig, simulate
from tests.cli.invoke import caged, contents, refused_without_a_trace, train

SMALL = {"user_count": 120, "item_count": 90, "rounds": 12, "test_rounds": 4, "slots": 6, "rank": 8, "shortlist": 20}
SET_SMALL = [part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")]
FILES = {
    *("train.parquet", "test.parquet", "test_negative.parquet", "test_oracle.parquet", "items.parquet"),
    *("users.parquet", "rounds.parquet", "world.npz", "simulation.json"),
}


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated") / "market"
    outcome = caged("data", "simulate", "-o", folder, "--seed", "3", *SET_SMALL)
    assert outcome.code == 0, outcome.err
    return folder


def test_the_folder_holds_the_market(market: Path) -> None:
    wanted = simulate(MarketConfig(**SMALL, seed=3))
    assert {path.name for path in market.iterdir()} == FILES
    assert pq.read_table(market / "train.parquet").equals(wanted.train)
    assert pq.read_table(market / "test.parquet").equals(wanted.test_natural)
    assert pq.read_table(market / "test_oracle.parquet").equals(wanted.test_oracle)
    assert pq.read_table(market / "test_negative.parquet").equals(wanted.test_negative)
    assert json.loads((market / "simulation.json").read_text()) == json.loads(json.dumps(wanted.summary()))


def test_the_folder_can_be_trained_on(market: Path, tmp_path: Path) -> None:
    """Validation on the explore clicks: about a fifth of the slots, all marked, and test is the natural one."""
    train(market, tmp_path / "run", "--validate-on", "source=explore", method="mostpop")
    dataset = json.loads((tmp_path / "run" / "run.json").read_text())["dataset"]
    counts = json.loads((market / "simulation.json").read_text())["counts"]
    assert dataset["interactions"]["test"] == counts["test_natural"]
    assert dataset["interactions"]["train"] + dataset["interactions"]["valid"] == counts["train"]
    notes = dataset["split"]["notes"]
    assert dataset["interactions"]["valid"] == notes["validation_candidates"] - notes["validation_returned_to_train"]
    assert 0 < dataset["interactions"]["valid"] < notes["validation_candidates"] / 2


def test_the_tables_show_the_summary(tmp_path: Path) -> None:
    outcome = caged("data", "simulate", "-o", tmp_path / "market", *SET_SMALL)
    summary = json.loads((tmp_path / "market" / "simulation.json").read_text())
    lines = [line.split() for line in outcome.out.splitlines()]
    assert ["market,", "seed", "1"] in lines
    assert ["train", f"{summary['counts']['train']:,}"] in lines
    assert ["train", "from", "explore", f"{summary['counts']['train_by_source']['explore']:,}"] in lines
    for words, name in ((["log"], "log"), (["exposure"], "exposure"), (["true", "appeal"], "true_appeal")):
        assert [*words, f"{summary['gini'][name]:.4f}", f"{summary['top_fifth_share'][name]:.4f}"] in lines


def test_json_is_the_summary(tmp_path: Path) -> None:
    outcome = caged("data", "simulate", "-o", tmp_path / "market", "--json", *SET_SMALL)
    printed = json.loads(outcome.out)
    assert printed.pop("folder") == str(tmp_path / "market")
    assert printed == json.loads((tmp_path / "market" / "simulation.json").read_text())


OTHER = {"share_popular": 0.5, "share_model": 0.3, "candidate_items": 700}


@pytest.mark.parametrize("name", [field.name for field in fields(MarketConfig) if field.name != "share_explore"])
def test_every_parameter_can_be_set(name: str) -> None:
    default = getattr(MarketConfig(), name)
    value = OTHER.get(name, default + 1 if isinstance(default, int) else default / 2 if default else 1.0)
    texts = [f"{name}={value}"]
    wanted = {name: value}
    if name.startswith("share_"):  # the shares sum to 1
        others = MarketConfig().share_popular + MarketConfig().share_model + value - getattr(MarketConfig(), name)
        wanted["share_explore"] = 1 - others
        texts.append(f"share_explore={1 - others}")
    made = build(MarketConfig, _parameters(texts, None), "market")
    assert made == replace(MarketConfig(), **wanted)
    assert made != MarketConfig()
    assert {key for key, seen in asdict(made).items() if seen != asdict(MarketConfig())[key]} == set(wanted)


BAD: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "unknown parameter": (["--set", "user_cuont=5"], ("unknown parameter of the market", "did you mean 'user_count'?")),
    "no value": (["--set", "user_count"], ("name=value", "user_count=500")),
    "empty value": (["--set", "user_count="], ("user_count is ''", "whole number")),
    "not a number": (["--set", "sharpness=much"], ("sharpness is 'much'", "finite number")),
    "out of range": (["--set", "rounds=0"], ("rounds is 0", "integers from 1")),
    "shares": (["--set", "share_explore=0.5"], ("must sum to 1",)),
    "seed twice": (["--seed", "2", "--set", "seed=3"], ("--seed 2", "--set seed=3")),
    "negative seed": (["--seed", "-2"], ("seed is -2",)),
    "too large": (["--set", "item_count=100000000"], ("too large", "reduce")),
    "filled folder": (["-o", "filled"], ("filled is not empty",)),
    "below a file": (["-o", "filled/mine.txt/market"], ("cannot write to output folder",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, tmp_path: Path) -> None:
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "mine.txt").write_text("mine")
    options, words = BAD[case]
    refused_without_a_trace(tmp_path, ["data", "simulate", "-o", "market", *SET_SMALL, *options], *words)


def test_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(config: MarketConfig, **_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("caged.cli.data.simulating.simulate_market", too_much)
    refused_without_a_trace(tmp_path, ["data", "simulate", "-o", "market"], "does not fit into memory", "2,000 users")
    assert contents(tmp_path) == {}


def test_a_world_is_a_set_of_parameters_that_can_still_be_changed(tmp_path: Path) -> None:
    outcome = caged("data", "simulate", "-o", tmp_path / "feed", "--world", "kuairand", "--seed", "2", *SET_SMALL)
    assert outcome.code == 0, outcome.err
    parameters = json.loads((tmp_path / "feed" / "simulation.json").read_text())["parameters"]
    assert parameters == {**asdict(MarketConfig()), **WORLDS["kuairand"], **SMALL, "seed": 2}
    assert "market, world kuairand, seed 2" in outcome.out
    assert "liked, of what was shown at random" in outcome.out
    arguments = ["data", "simulate", "-o", "none", "--world", "kuai"]
    refused_without_a_trace(tmp_path, arguments, "unknown world 'kuai'", "kuairand")
