"""Lists in the order asked for, within allow and deny lists, with titles; items beside items."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import caged
from caged.errors import ConfigError, DataError
from tests.conftest import ITEMS, Pair

TINY = {"embedding_size": 4, "epochs": 3, "batch_size": 128, "device": "cpu"}


@pytest.fixture(scope="module")
def data(pairs: list[Pair]) -> caged.Interactions:
    return caged.Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs])


@pytest.fixture(scope="module")
def model(data: caged.Interactions) -> caged.Recommender:
    return caged.LightGCN(**TINY).fit(caged.split(data, seed=1))


def order_of(table: pa.Table) -> list[Any]:
    return list(dict.fromkeys(table["user_id"].to_pylist()))


# ---------------------------------------------------------------- order


def test_users_come_in_the_order_asked_each_once(model: caged.Recommender) -> None:
    asked = ["u41", "u07", "u55", "u07", "u00"]
    table = model.recommend(asked, k=3)
    assert order_of(table) == ["u41", "u07", "u55", "u00"]
    assert table["rank"].to_pylist() == [1, 2, 3] * 4
    everyone = {row["user_id"]: [] for row in table.to_pylist()}
    for row in model.recommend(k=3).to_pylist():
        if row["user_id"] in everyone:
            everyone[row["user_id"]].append(row["item_id"])
    for row in table.to_pylist():
        assert everyone[row["user_id"]][row["rank"] - 1] == row["item_id"]


def test_unknown_users_keep_their_place(model: caged.Recommender) -> None:
    table = model.recommend(["zoe", "u07", "abe", "u03"], k=2, unknown="popular")
    assert order_of(table) == ["zoe", "u07", "abe", "u03"]
    assert table["rank"].to_pylist() == [1, 2] * 4
    assert order_of(model.recommend(["zoe", "u07", "abe", "u03"], k=2, unknown="skip")) == ["u07", "u03"]


def test_integers_asked_for_as_text(pairs: list[Pair]) -> None:
    users, items = [int(user[1:]) for user, _ in pairs], [int(item[1:]) for _, item in pairs]
    model = caged.MostPopular().fit(caged.Interactions.from_ids(users, items))
    table = model.recommend(["9", "900", "3"], k=1, unknown="popular")
    assert table["user_id"].to_pylist() == [9, 900, 3]


def test_everyone_comes_in_row_order(model: caged.Recommender) -> None:
    assert order_of(model.recommend(k=1)) == sorted(order_of(model.recommend(k=1)))


# ---------------------------------------------------------------- allow and deny lists


@pytest.mark.parametrize("exclude_seen", [True, False])
def test_candidates_and_exclude_are_applied_before_ranking(model: caged.Recommender, exclude_seen: bool) -> None:
    users = ["u20", "u03"]
    whole = model.recommend(users, k=ITEMS, exclude_seen=exclude_seen).to_pandas()
    candidates = [f"i{item:02d}" for item in range(0, ITEMS, 2)]
    exclude = ["i04", "i10", "i33"]
    for given in ({"candidates": candidates}, {"exclude": exclude}, {"candidates": candidates, "exclude": exclude}):
        allowed = set(given.get("candidates", set(whole["item_id"]))) - set(given.get("exclude", ()))
        table = model.recommend(users, k=5, exclude_seen=exclude_seen, **given).to_pandas()  # type: ignore[arg-type]
        expected = whole[whole["item_id"].isin(allowed)].groupby("user_id", sort=False).head(5)
        assert table["item_id"].tolist() == expected["item_id"].tolist()
        assert table["score"].tolist() == expected["score"].tolist()
        assert table["rank"].tolist() == [1, 2, 3, 4, 5] * 2


def test_fewer_candidates_than_places(model: caged.Recommender) -> None:
    table = model.recommend("u03", k=10, candidates=["i39", "i38"], exclude_seen=False)
    assert sorted(table["item_id"].to_pylist()) == ["i38", "i39"]


def test_strangers_get_popular_items_within_the_lists(model: caged.Recommender) -> None:
    table = model.recommend("zoe", k=3, unknown="popular", candidates=["i30", "i02", "i01", "i00"], exclude=["i00"])
    degrees = model.artefact.train.item_degrees
    assert sorted(table["item_id"].to_pylist()) == ["i01", "i02", "i30"]
    assert table["score"].to_pylist() == sorted((float(degrees[row]) for row in (1, 2, 30)), reverse=True)


@pytest.mark.parametrize("form", [list, tuple, set, np.array, pa.array, pd.Series])
def test_every_form_of_a_list(form: Any, model: caged.Recommender) -> None:
    expected = model.recommend("u03", k=2, candidates=["i30", "i20", "i11"], exclude=["i11"])
    assert model.recommend("u03", k=2, candidates=form(["i30", "i20", "i11"]), exclude="i11").equals(expected)


def test_unknown_ids_in_the_lists_are_told(model: caged.Recommender, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="caged"):
        model.recommend("u03", k=2, candidates=["i30", "nothing", "i20"], exclude=["gone"])
    assert caplog.messages == [
        "1 of the 3 ids in candidates are unknown to the model and were ignored, e.g. 'nothing'",
        "1 of the 1 ids in exclude are unknown to the model and were ignored, e.g. 'gone'",
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"candidates": []}, "none of the candidates"),
        ({"candidates": ["nothing"]}, "none of the candidates"),
        ({"candidates": ["i01"], "exclude": ["i01"]}, "leaves none of the items"),
        ({"candidates": 1.5}, "identifiers"),
    ],
)
def test_lists_that_leave_nothing(given: dict[str, Any], problem: str, model: caged.Recommender) -> None:
    with pytest.raises(DataError, match=problem):
        model.recommend("u03", k=2, **given)


# ---------------------------------------------------------------- titles


@pytest.mark.parametrize("form", ["dict", "frame"])
def test_titles_on_request(form: str, model: caged.Recommender) -> None:
    names = {f"i{item:02d}": f"The {item}" for item in range(ITEMS - 1)}
    given = names if form == "dict" else pd.DataFrame({"item_id": names.keys(), "title": names.values()})
    table = model.recommend("u03", k=ITEMS, exclude_seen=False, titles=given)
    assert table.column_names == ["user_id", "item_id", "title", "score", "rank"]
    assert table["title"].to_pylist() == [names.get(item) for item in table["item_id"].to_pylist()]


def test_titles_that_nobody_knows(model: caged.Recommender) -> None:
    with pytest.raises(ConfigError, match="this model knows no titles"):
        model.recommend("u03", k=2, titles=True)
    with pytest.raises(ConfigError, match="titles is 5"):
        model.recommend("u03", k=2, titles=5)
    with pytest.raises(DataError, match="needs one column 'title', found: item_id"):
        model.recommend("u03", k=2, titles=pd.DataFrame({"item_id": ["i01"]}))


# ---------------------------------------------------------------- items beside items


def test_similar_items_come_in_the_order_asked(model: caged.Recommender) -> None:
    table = model.similar_items(["i30", "i05", "i30"], k=2)
    assert table["item_id"].to_pylist() == ["i30", "i30", "i05", "i05"]


def test_similar_items_of_ease_are_rows_of_b(data: caged.Interactions) -> None:
    model = caged.EASE(ridge=20.0, device="cpu").fit(data)
    weights = model.artefact.method.state().tensors["weights"]
    table = model.similar_items(["i07", "i02"], k=ITEMS - 1).to_pandas()
    for item, listed in table.groupby("item_id"):
        row = weights[int(str(item)[1:])].clone()
        row[int(str(item)[1:])] = -np.inf
        best = row.sort(descending=True, stable=True)
        assert listed["similar_item_id"].tolist() == [f"i{other:02d}" for other in best.indices[:-1].tolist()]
        assert listed["score"].tolist() == best.values[:-1].tolist()
    assert "i07" not in table[table["item_id"] == "i07"]["similar_item_id"].tolist()


def test_similar_items_of_itemknn_are_its_neighbours(data: caged.Interactions) -> None:
    model = caged.ItemKNN(neighbours=5, device="cpu").fit(data)
    state = model.artefact.method.state().tensors
    table = model.similar_items(["i07", "i02"], k=10)
    assert table["item_id"].to_pylist() == ["i07"] * 5 + ["i02"] * 5  # no more than it has
    for row in table.to_pylist():
        own = int(row["item_id"][1:])
        place = state["neighbours"][own].tolist().index(int(row["similar_item_id"][1:]))
        assert row["score"] == state["similarities"][own, place].item()
        assert place == row["rank"] - 1


def test_items_that_share_nobody_are_not_similar() -> None:
    data = caged.Interactions.from_ids(["a", "a", "b", "b", "c"], ["x", "y", "x", "y", "z"])
    model = caged.ItemKNN(neighbours=3, shrinkage=0.0, device="cpu").fit(data)
    assert model.similar_items("x", k=2)["similar_item_id"].to_pylist() == ["y"]
    assert len(model.similar_items("z", k=2)) == 0
