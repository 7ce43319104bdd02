"""Items written piece by piece are those that a JSON library writes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caged.products.serve.texts import ItemTexts, Shown, answer_text, items_json
from tests.products.serve.small_model import small_model

IDS = ["a,b", 'quo"te', "ü", "\n"]
TITLES = ["One, two", None, 'The "Best"', "[x]"]


def catalogue(*, titles: bool, numbers: bool = False) -> pa.Table:
    columns: dict[str, Any] = {"item_id": [3, 5, 8, 2**62] if numbers else IDS, "degree": [4, 9, 1, 1]}
    return pa.table(columns | ({"title": TITLES} if titles else {}))


@pytest.mark.parametrize("with_titles", [True, False])
@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("are_kept", [True, False])
def test_items_are_those_of_a_json_library(
    with_titles: bool, numbers: bool, are_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caged.products.serve.texts.LISTED", 4 if are_kept else 3)
    model = small_model(catalogue(titles=with_titles, numbers=numbers))
    texts = ItemTexts(model)
    texts.prepare()
    rows, scores = np.array([2, 0, 3, 1]), np.array([1.5, 1e-30, -0.0, -3.4e38], dtype=np.float32)
    for titles in (True, False):
        for popularity in (True, False):
            wanted = items_json(model, rows, scores, titles=titles, popularity=popularity)
            (found,) = texts.of([Shown(rows, scores, titles, popularity)])
            assert json.loads(found) == wanted
            assert list(json.loads(found)[0]) == list(wanted[0])  # in the same order
            assert b" " not in found.replace(b"One, two", b"").replace(b'The \\"Best\\"', b"")


@pytest.mark.parametrize("are_kept", [True, False])
def test_lists_of_any_length_are_written_one_by_one(are_kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caged.products.serve.texts.LISTED", 4 if are_kept else 3)
    model = small_model(catalogue(titles=True))
    draw = np.random.default_rng(1)
    lists = [
        Shown(draw.permutation(4)[:length], draw.standard_normal(length).astype(np.float32), length > 2, length != 3)
        for length in (2, 0, 3, 1, 0)
    ]
    assert [json.loads(text) for text in ItemTexts(model).of(lists)] == [
        items_json(model, rows, scores, titles=titles, popularity=popularity)
        for rows, scores, titles, popularity in lists
    ]
    assert ItemTexts(model).of(lists[1:2]) == [b"[]"]
    assert ItemTexts(model).of([]) == []


def test_items_have_titles_and_popularity_where_they_are_wanted() -> None:
    model = small_model(catalogue(titles=True))
    assert items_json(model, np.array([1, 2])) == [
        {"item_id": 'quo"te', "title": None},
        {"item_id": "ü", "title": 'The "Best"'},
    ]
    (item,) = items_json(model, np.array([1]), np.array([0.5]), titles=False, popularity=True)
    assert item == {"item_id": 'quo"te', "score": 0.5, "popularity": 9, "popularity_rank": 1}


def test_unknown_items_come_back_as_they_were_sent() -> None:
    unknown = ["ü", 'a"b', 2**70, -1, "\ud800"]
    found = json.loads(answer_text(b"[]", 0.25, unknown))
    assert found == {"items": [], "less_popular": 0.25, "unknown_items": unknown}
