"""Every answer is the one that `caged recommend` gives for the same model and request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caged
from caged.errors import ConfigError, DataError
from caged.products.serve import Ask, Engine, Limits, UnknownItemError, UnknownUserError
from tests.cli.invoke import caged as run_caged
from tests.cli.invoke import train
from tests.products.serve.exported import exported

Served = Callable[[str], tuple[Engine, caged.Recommender]]


@pytest.fixture(scope="module")
def engine(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return exported(finished_run, tmp_path_factory.mktemp("served") / "artefact")


def listed(engine: Engine, **ask: Any) -> tuple[list[Any], np.ndarray]:
    answer = engine.recommend(Ask(**ask))
    return [engine.model.items[row] for row in answer.items], answer.scores


def same(found: tuple[list[Any], np.ndarray], table: Any) -> None:
    assert found[0] == table["item_id"].to_pylist()
    np.testing.assert_allclose(found[1], table["score"].to_numpy(), atol=1e-6)


@pytest.fixture(scope="module")
def served(log_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A trained method, as an engine and as the model itself."""

    @cache
    def of(method: str) -> tuple[Engine, caged.Recommender]:
        folder = tmp_path_factory.mktemp(method)
        short = ("--set", "train.epochs=2", "--set", "method.embedding_size=4") if method in ("softmax", "macr") else ()
        train(log_csv, folder / "run", *short, method=method)
        return exported(folder / "run", folder / "artefact", with_price=False), caged.load(folder / "run", device="cpu")

    return of


@pytest.mark.parametrize("method", ["lightgcn", "softmax", "ease", "itemknn", "mostpop", "macr"])
def test_known_people_get_what_recommend_gives(method: str, served: Served) -> None:
    engine, model = served(method)
    for user in ("u00", "u17", "u59"):
        same(listed(engine, user_id=user, k=7), model.recommend([user], 7))
        same(listed(engine, user_id=user, k=7, exclude_seen=False), model.recommend([user], 7, exclude_seen=False))


@pytest.mark.parametrize("method", ["lightgcn", "softmax", "ease", "itemknn"])
def test_new_people_get_what_recommend_for_gives(method: str, served: Served) -> None:
    engine, model = served(method)
    history = ["i03", "i17", "i03", "i00"]
    same(listed(engine, history=history, k=9), model.recommend_for({"new": history}, 9))


def test_the_knob_is_adjust(finished_run: Path, engine: Engine) -> None:
    model = caged.load(finished_run, device="cpu")
    for strength in (0.0, 0.35, 1.0):
        adjusted = model.adjusted(strength=strength)
        same(listed(engine, user_id="u05", k=10, less_popular=strength), adjusted.recommend(["u05"], 10))
        wanted = adjusted.recommend_for({"new": ["i02", "i09"]}, 10)
        same(listed(engine, history=["i02", "i09"], k=10, less_popular=strength), wanted)


def test_the_knob_of_scores_that_are_no_product_is_adjust(served: Served) -> None:
    engine, model = served("ease")
    asks = [Ask(user_id="u05", k=10, less_popular=strength) for strength in (0.0, 0.35, 1.0)]
    for ask, answer in zip(asks, engine.recommend_batch(asks), strict=True):
        wanted = model.adjusted(strength=ask.less_popular).recommend(["u05"], 10)
        same((engine.model.items.at(answer.items), answer.scores), wanted)


def test_an_adjusted_run_is_served_with_its_knob(finished_run: Path, tmp_path: Path) -> None:
    assert run_caged("adjust", finished_run, "--strength", "0.4", "-k", "5", "-o", tmp_path / "run").code == 0
    engine = exported(tmp_path / "run", tmp_path / "artefact")
    assert engine.model.manifest.less_popular == 0.4
    same(listed(engine, user_id="u05", k=10), caged.load(tmp_path / "run").recommend(["u05"], 10))
    same(listed(engine, user_id="u05", k=10, less_popular=0.0), caged.load(finished_run).recommend(["u05"], 10))


def test_allow_and_deny_lists_are_those_of_recommend(finished_run: Path, engine: Engine) -> None:
    model = caged.load(finished_run, device="cpu")
    some = [f"i{number:02d}" for number in range(0, 40, 3)]
    same(listed(engine, user_id="u05", k=5, candidates=some), model.recommend(["u05"], 5, candidates=some))
    same(listed(engine, user_id="u05", k=5, exclude=some), model.recommend(["u05"], 5, exclude=some))


def test_a_batch_is_its_requests_one_by_one(engine: Engine) -> None:
    asks = [Ask(user_id="u05"), Ask(history=["i01", "i02"], k=3), Ask(user_id="u09", less_popular=0.5, k=4)]
    for one, alone in zip(engine.recommend_batch(asks), map(engine.recommend, asks), strict=True):
        assert one.items.tolist() == alone.items.tolist()
        np.testing.assert_allclose(one.scores, alone.scores, atol=1e-6)


def test_similar_items_are_those_of_the_model(finished_run: Path, engine: Engine) -> None:
    wanted = caged.load(finished_run, device="cpu").similar_items(["i03"], 5)
    found = engine.similar("i03", 5)
    assert [engine.model.items[row] for row in found.items] == wanted["similar_item_id"].to_pylist()
    np.testing.assert_allclose(found.scores, wanted["score"].to_numpy(), atol=1e-6)


def test_what_the_model_does_not_know(engine: Engine) -> None:
    with pytest.raises(UnknownUserError, match="send the items of the person as history"):
        engine.recommend(Ask(user_id="nobody"))
    with pytest.raises(UnknownItemError, match="not known"):
        engine.similar("nothing")
    with pytest.raises(DataError, match="knows none of the items"):
        engine.recommend(Ask(history=["x", "y"]))
    assert engine.recommend(Ask(history=["i01", "x"])).unknown_items == ["x"]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ({}, "either user_id or history"),
        ({"user_id": "u01", "history": ["i01"]}, "either user_id or history"),
        ({"history": []}, "history is empty"),
        ({"history": "i01"}, "give a list of item ids"),
        ({"user_id": "u01", "k": 0}, "allowed are 1..50"),
        ({"user_id": "u01", "k": 51}, "allowed are 1..50"),
        ({"user_id": "u01", "k": True}, "k is True"),
        ({"user_id": "u01", "less_popular": 1.5}, "between 0 and 1"),
        ({"user_id": "u01", "less_popular": float("nan")}, "between 0 and 1"),
        ({"history": ["i01"] * 4}, "at most 3"),
        ({"user_id": "u01", "filters": {"colour": "red"}}, "attribute"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(engine: Engine, ask: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Engine(engine.model, Limits(k=50, history=3)).recommend(Ask(**ask))
