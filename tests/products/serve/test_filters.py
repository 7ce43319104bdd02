"""Filters on attributes: which items they keep, and what is no filter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from caged.errors import ConfigError
from caged.products.serve.filters import REMEMBERED, ItemFilters

ITEMS = pa.table(
    {
        "item_id": [1, 2, 3, 4],
        "degree": [9, 5, 2, 1],
        "title": ["a", "b", "c", "d"],
        "category": ["shoes", "hats", None, "shoes"],
        "in_stock": [True, True, False, None],
        "price": [10.0, 20.0, 10.0, 5.0],
        "tags": [["red", "new"], [], None, ["red"]],
    }
)


def kept(**wanted: object) -> list[int]:
    found = ItemFilters(ITEMS).kept(wanted)
    assert found is not None
    everything = np.arange(len(ITEMS))
    assert found.count == found.among(everything).sum()
    return np.array(ITEMS["item_id"])[found.among(everything)].tolist()


def test_values_of_one_attribute_are_alternatives_and_attributes_all_hold() -> None:
    assert kept(category="shoes") == [1, 4]
    assert kept(category=["shoes", "hats"]) == [1, 2, 4]
    assert kept(category=["shoes", "hats"], in_stock=True) == [1, 2]
    assert kept(price=10) == [1, 3]
    assert kept(tags=["red"]) == [1, 4]
    assert kept(tags="new", category="hats") == []


def test_no_filter_keeps_everything() -> None:
    assert ItemFilters(ITEMS).kept({}) is None


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"colour": "red"}, "unknown attribute 'colour'"),
        ({"title": "a"}, "unknown attribute 'title'"),
        ({"category": []}, "names no value"),
        ({"category": [None]}, "give text, numbers"),
        ({"category": {"a": 1}}, "give text, numbers"),
        ({"price": "cheap"}, "no value of that attribute"),
        ({"in_stock": "yes indeed"}, "no value of that attribute"),
        ({"category": ["shoes", 3]}, "no value of that attribute"),
    ],
)
def test_what_is_no_filter_is_a_sentence(wanted: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ItemFilters(ITEMS).kept(wanted)


def test_few_are_listed_and_many_marked() -> None:
    numbers = np.arange(1000)
    filters = ItemFilters(pa.table({"item_id": numbers, "degree": numbers, "number": numbers, "odd": numbers % 2}))
    few, many = filters.kept({"number": [999, 7]}), filters.kept({"odd": 1})
    assert few is not None
    assert many is not None
    assert few.rows is not None
    assert (few.rows.tolist(), few.marks, few.count) == ([7, 999], None, 2)
    assert many.marks is not None
    assert (many.rows, many.marks.sum(), many.count) == (None, 500, 500)
    assert few.among(np.array([999, 8, 7])).tolist() == [True, False, True]


def test_a_filter_is_worked_out_once_and_only_so_many_are_remembered() -> None:
    filters = ItemFilters(ITEMS)
    assert filters.kept({"price": 10, "category": "shoes"}) is filters.kept({"category": ["shoes"], "price": [10]})
    assert filters.kept({"price": 10}) is not filters.kept({"price": 10.0})
    for price in range(REMEMBERED + 5):
        filters.kept({"price": price})
    assert len(filters._known) == REMEMBERED
