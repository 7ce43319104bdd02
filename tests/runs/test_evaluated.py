"""`model.evaluate`: the numbers of the command line, in Python."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caged as library
from caged.data import Interactions
from caged.errors import CagedError, ConfigError, DataError
from caged.runs.folder import RunFolder
from tests.cli.invoke import train
from tests.conftest import Pair

TINY = {"embedding_size": 4, "epochs": 2, "batch_size": 128, "device": "cpu"}


def log_of(pairs: list[Pair]) -> Interactions:
    return Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs])


def same(one: dict[str, float], other: dict[str, float | None]) -> bool:
    """JSON has no NaN."""
    return {key: None if math.isnan(value) else value for key, value in one.items()} == other


@pytest.fixture(scope="module")
def split(pairs: list[Pair]) -> library.Split:
    return library.split(log_of(pairs))


@pytest.fixture(scope="module")
def model(split: library.Split) -> library.Recommender:
    return library.LightGCN(**TINY).fit(split)


@pytest.mark.parametrize(("method", "options"), [("lightgcn", ()), ("ease", ()), ("lightgcn", ("--refit",))])
def test_the_numbers_of_a_run_are_those_of_its_folder(
    method: str, options: tuple[str, ...], log_csv: Path, tmp_path: Path
) -> None:
    train(log_csv, tmp_path / "run", *options, "--no-report", method=method)
    parts = RunFolder.read(tmp_path / "run").load_data("the run").split
    found = library.load(tmp_path / "run", device="cpu").evaluate(parts)
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert same(found.metrics, written["metrics"])
    assert found.users == written["users"]
    assert found.counts == written["counts"]
    assert (found.protocol, found.evidence) == ("honest", "natural")
    per_user = pq.read_table(tmp_path / "run" / "per_user.parquet")
    assert str(found.per_user.to_pylist()) == str(per_user.to_pylist())  # NaN is unlike NaN
    assert found.recommendations.equals(pq.read_table(tmp_path / "run" / "recommendations.parquet"))


def test_a_test_part_alone_is_the_same_where_validation_was_held_out(
    model: library.Recommender, split: library.Split
) -> None:
    assert split.test is not None
    whole = model.evaluate(split)
    for test in (split.test, split.test.to_arrow(), split.test.to_arrow().to_pandas()):
        assert str(model.evaluate(test).metrics) == str(whole.metrics)


def test_the_intervals_are_those_of_the_audit(model: library.Recommender, split: library.Split) -> None:
    found = model.evaluate(split, k=[5, 10])
    audit = library.audit(found.recommendations, split.train, split.test, valid=split.valid, k=[5, 10])
    assert {key for key in found.metrics if key.startswith("recall")} >= {"recall@5/niche", "recall@10/popular"}
    for key in ("recall@5", "recall@10/niche", "ndcg@10"):
        assert audit.metrics[key] == pytest.approx(found.metrics[key])
        assert audit.intervals[key].low == pytest.approx(found.intervals[key].low)
    assert not found.intervals.keys() & found.withheld.keys()
    rows = {row["metric"]: row for row in found.table().to_pylist()}
    assert list(rows) == list(found.metrics)
    assert rows["recall@5"]["high"] == found.intervals["recall@5"].high
    assert rows["recall@5"]["users"] == found.users["recall@5"]
    assert repr(found).startswith("<lightgcn evaluated, protocol honest, test: natural: ")


def test_groups_are_those_of_the_audit(
    model: library.Recommender, split: library.Split, caplog: pytest.LogCaptureFixture
) -> None:
    items = sorted(split.train.item_ids.values.to_pylist())
    genres = pa.table({"item_id": items[1:], "genre": [["odd", "even"][row % 2] for row in range(len(items) - 1)]})
    ages = {"user_id": split.train.user_ids.values.to_pylist()[:4], "age": ["old", "young"] * 2}
    chosen = {"popular_share": 0.1, "item_groups": genres, "user_groups": pa.table(ages)}
    with caplog.at_level(logging.WARNING, logger="caged"):
        found = model.evaluate(split, k=5, **chosen)
    assert any("genre" in message or "item" in message for message in caplog.messages)  # one item has no genre
    audit = library.audit(found.recommendations, split.train, split.test, valid=split.valid, k=5, **chosen)
    keys = ("recall@5/niche", "recall@5/genre=odd", "rsp@5/genre", "reo@5/genre", "recall@5/user:age=old")
    for key in keys:
        assert found.metrics[key] == pytest.approx(audit.metrics[key], nan_ok=True), key
    plain = model.evaluate(split, k=5).metrics
    assert not set(keys[1:]) & set(plain)
    assert plain["tail_share@5"] < found.metrics["tail_share@5"]  # fewer items are popular, so more are niche


def test_a_run_keeps_its_share_of_popular_items(log_csv: Path, tmp_path: Path) -> None:
    train(log_csv, tmp_path / "run", "--set", "eval.popular_share=0.1", "--no-report", method="mostpop")
    parts = RunFolder.read(tmp_path / "run").load_data("the run").split
    found = library.load(tmp_path / "run", device="cpu").evaluate(parts)
    assert same(found.metrics, json.loads((tmp_path / "run" / "metrics.json").read_text())["metrics"])


def test_what_was_seen_is_masked_and_never_relevant(model: library.Recommender, split: library.Split) -> None:
    assert split.valid is not None
    shown = {(row["user_id"], row["item_id"]) for row in model.evaluate(split).recommendations.to_pylist()}
    for part in (split.train, split.valid):
        assert not shown & {tuple(row.values()) for row in part.to_arrow().to_pylist()}
        with pytest.raises(DataError, match="were also seen in train or valid"):
            model.evaluate(part)


def test_a_refitted_model_is_not_measured_on_what_it_was_trained_on(
    model: library.Recommender, split: library.Split, pairs: list[Pair]
) -> None:
    final = model.refit(log_of(pairs))
    with pytest.raises(DataError, match="were also seen"):
        final.evaluate(split.test)
    with pytest.raises(DataError, match="trained on other interactions than the train and validation parts"):
        final.evaluate(split)


def test_what_the_test_rests_on(model: library.Recommender, pairs: list[Pair], split: library.Split) -> None:
    balanced = library.split(log_of(pairs), "intervened")
    assert library.MostPopular().fit(balanced).evaluate(balanced).evidence == "intervened"
    assert model.evaluate(split, evidence="random").evidence == "random"
    with pytest.raises(ConfigError, match="unknown evidence 'rumour'"):
        model.evaluate(split, evidence="rumour")  # type: ignore[arg-type]


def test_the_protocol_of_a_run(released: Path, tmp_path: Path) -> None:
    train(released, tmp_path / "run", "--protocol", "paper", "--no-report")
    parts = RunFolder.read(tmp_path / "run").load_data("the run").split
    found = library.load(tmp_path / "run", device="cpu").evaluate(parts)
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert found.protocol == "paper"
    assert same(found.metrics, written["metrics"])


def test_names_that_the_model_does_not_know(model: library.Recommender, caplog: pytest.LogCaptureFixture) -> None:
    free = model.recommend("u03", k=1)["item_id"][0].as_py()
    test = Interactions.from_ids(["u03", "u03", "new"], [free, "newer", free])
    with caplog.at_level(logging.WARNING, logger="caged"):
        found = model.evaluate(test)
    assert caplog.messages == [
        "2 of the 3 pairs of test (66.7%) name users or items that the model does not know: left out"
    ]
    assert found.metrics["recall@20"] == 1.0
    with pytest.raises(DataError, match="the model knows no pair"):
        model.evaluate(Interactions.from_ids(["new"], ["newer"]))
    with pytest.raises(DataError, match="holds integers"):
        model.evaluate(Interactions.from_ids([1], ["i01"]))


def test_an_adjusted_model_is_measured_as_it_recommends(model: library.Recommender, split: library.Split) -> None:
    adjusted = model.adjusted(strength=0.8)
    assert adjusted.evaluate(split).metrics["tail_share@20"] > model.evaluate(split).metrics["tail_share@20"]


@pytest.mark.parametrize("k", [0, 41, "5", 1.5, [], [5, 5], [5, "a"], None, True])
def test_cut_offs_that_are_none(k: Any, model: library.Recommender, split: library.Split) -> None:
    with pytest.raises(CagedError):
        model.evaluate(split, k=k)


def test_a_split_without_a_test_part(model: library.Recommender, split: library.Split) -> None:
    with pytest.raises(DataError, match="has no test part"):
        model.evaluate(library.Split(split.train, split.valid, None, kind="given"))
