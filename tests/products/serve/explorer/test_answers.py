"""What the page asks is answered from the engine, row for row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caged.errors import ConfigError
from caged.products.serve import Ask, Engine, ServedModel, UnknownItemError, UnknownUserError
from caged.products.serve.explorer.answers import Answers
from tests.cli.invoke import train
from tests.products.serve.explorer.shop import MARKUP
from tests.products.serve.exported import exported


@pytest.fixture(scope="module")
def answers(shop: list[Path]) -> Answers:
    return Answers([Engine(ServedModel.load(folder)) for folder in shop])


def ids(listed: list[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in listed]


def test_lists_are_those_of_the_engines(answers: Answers) -> None:
    found = answers.lists({"user_id": "u09", "less_popular": [0.0, 0.5]})
    for engine, knob, listed in zip(answers.engines, (0.0, 0.5), found["lists"], strict=True):
        wanted = engine.recommend(Ask(user_id="u09", k=20, less_popular=knob))
        assert ids(listed["items"]) == engine.model.items.at(wanted.items)
        assert [item["people"] for item in listed["items"]] == engine.model.degrees[wanted.items].tolist()
    both = set(ids(found["lists"][0]["items"])) & set(ids(found["lists"][1]["items"]))
    assert found["shared"] == sorted(both)


def test_the_knob_says_what_came_what_went_and_from_where(answers: Answers) -> None:
    base = answers.lists({"history": ["i01", "i02"], "less_popular": [0.0, 0.0]})["lists"][0]
    turned = answers.lists({"history": ["i01", "i02"], "less_popular": [1.0, 0.0]})["lists"][0]
    assert [item["rank_before"] for item in base["items"]] == list(range(1, 21))
    assert (base["left"], base["niche_share"][0]) == ([], base["niche_share"][1])
    before, after = ids(base["items"]), ids(turned["items"])
    assert [item["rank_before"] for item in turned["items"]] == [
        before.index(name) + 1 if name in before else None for name in after
    ]
    assert ids(turned["left"]) == [name for name in before if name not in after]
    assert turned["left"]
    assert turned["niche_share"] == [
        np.mean([not item["popular"] for item in listed["items"]]) for listed in (base, turned)
    ]
    assert turned["people"][1] < turned["people"][0]


def test_one_artefact_that_cannot_answer_does_not_keep_the_other_back(
    answers: Answers, log_csv: Path, tmp_path: Path
) -> None:
    train(log_csv, tmp_path / "run", method="mostpop")
    mixed = Answers([answers.engines[0], exported(tmp_path / "run", tmp_path / "artefact", with_price=False)])
    found = mixed.lists({"history": [MARKUP, "i01"], "less_popular": [0.0, 0.0]})
    assert len(found["lists"][0]["items"]) == 20
    assert "new people" in found["lists"][1]["error"]
    assert found["shared"] == []
    assert [model["price"] for model in mixed.about({})["models"]][1] is None
    assert mixed.names() == ["LightGCN", "Most popular"]


def test_the_price_is_the_curve_of_the_manifest(answers: Answers) -> None:
    for engine, model in zip(answers.engines, answers.about({})["models"], strict=True):
        curve = engine.model.manifest.price["curve"]["valid"]
        assert (model["price"]["part"], model["price"]["k"]) == ("valid", 20)
        assert [notch["strength"] for notch in model["price"]["notches"]] == [point["strength"] for point in curve]
        assert model["price"]["notches"][4]["recall"] == curve[4]["metrics"]["recall@20"]
        assert model["price"]["notches"][4]["tail_share"] == curve[4]["metrics"]["tail_share@20"]


def test_reasons_and_the_rest_add_up_to_the_score(answers: Answers) -> None:
    few = {"model": 0, "item_id": "i20", "history": ["i01", "i02", MARKUP]}
    found = answers.why(few)
    assert found["adds_up"]
    assert found["of"] == 3
    assert found["rest"] == pytest.approx(0, abs=1e-5)  # somebody new is the sum over the history
    known = answers.why({"model": 0, "item_id": "i20", "user_id": "u09"})
    assert abs(known["rest"]) > 0.001
    assert [item["share"] for item in known["reasons"]] == sorted(
        (item["share"] for item in known["reasons"]), reverse=True
    )


def test_where_scores_are_no_sum_the_nearest_items_are_told(log_csv: Path, tmp_path: Path) -> None:
    options = ("--set", "train.epochs=2", "--set", "method.embedding_size=4", "--set", "method.layers=0")
    train(log_csv, tmp_path / "run", *options)
    engine = exported(tmp_path / "run", tmp_path / "artefact", with_price=False)
    answers = Answers([engine])
    assert "layers=0" in answers.about({})["models"][0]["new_people_refused"]
    found = answers.why({"model": 0, "item_id": "i20", "user_id": "u09"})
    assert not found["adds_up"]
    near = {engine.model.items[int(row)]: score for row, score in zip(*_similar(engine, "i20"), strict=True)}
    for reason in found["reasons"]:
        assert reason["share"] == pytest.approx(near[reason["id"]], abs=1e-5)


def _similar(engine: Engine, item: str) -> tuple[Any, Any]:
    answer = engine.similar(item, 39)
    return answer.items, answer.scores


def test_similar_items_are_those_of_the_engines(answers: Answers) -> None:
    found = answers.similar({"item_id": MARKUP})
    assert found["item"]["id"] == MARKUP
    for engine, listed in zip(answers.engines, found["lists"], strict=True):
        assert ids(listed["items"]) == engine.model.items.at(engine.similar(MARKUP, 10).items)


def test_two_of_the_same_method_are_told_apart(answers: Answers) -> None:
    assert answers.names() == ["LightGCN", "Softmax"]
    assert Answers([answers.engines[0]] * 2).names() == ["LightGCN (A)", "LightGCN (B)"]
    with pytest.raises(ConfigError, match="one artefact or 2; got 3"):
        Answers([answers.engines[0]] * 3)


@pytest.mark.parametrize(
    ("question", "body", "error", "words"),
    [
        ("person", {"user_id": "nobody"}, UnknownUserError, "'nobody' is not known"),
        ("person", {}, UnknownUserError, "None is not known"),
        ("search", {"q": 5}, ConfigError, "give text of at most 200"),
        ("search", {"q": "x" * 201}, ConfigError, "give text of at most 200"),
        ("lists", {"user_id": "u01", "less_popular": 0.5}, ConfigError, "a number for each artefact"),
        ("lists", {"user_id": "u01", "less_popular": [0.5]}, ConfigError, "a number for each artefact"),
        ("why", {"model": 2, "item_id": "i01", "user_id": "u01"}, ConfigError, "model is 2"),
        ("why", {"model": 0, "item_id": "zzz", "user_id": "u01"}, UnknownItemError, "'zzz' is not known"),
        ("why", {"model": 0, "item_id": "i01", "user_id": "zzz"}, UnknownUserError, "'zzz' is not known"),
        ("why", {"model": 0, "item_id": None, "user_id": "u01"}, ConfigError, "give the id as text"),
        ("why", {"model": 0, "item_id": "i01"}, ConfigError, "either user_id or history"),
        ("similar", {"item_id": ["i01"]}, ConfigError, "give the id as text"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(
    answers: Answers, question: str, body: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        getattr(answers, question)(body)


@pytest.mark.parametrize("knob", [2, -1, "much", None, True])
def test_a_wrong_knob_is_told_where_its_list_would_be(answers: Answers, knob: object) -> None:
    found = answers.lists({"user_id": "u01", "less_popular": [0.0, knob]})["lists"]
    assert len(found[0]["items"]) == 20
    assert knob is None or "between 0 and 1" in found[1]["error"]
