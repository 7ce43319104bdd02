"""Filters on attributes: which items they keep, and what is no filter."""

from __future__ import annotations

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
    allowed = ItemFilters(ITEMS).allowed(wanted)
    assert allowed is not None
    return [item for item, one in zip(ITEMS["item_id"].to_pylist(), allowed, strict=True) if one]


def test_values_of_one_attribute_are_alternatives_and_attributes_all_hold() -> None:
    assert kept(category="shoes") == [1, 4]
    assert kept(category=["shoes", "hats"]) == [1, 2, 4]
    assert kept(category=["shoes", "hats"], in_stock=True) == [1, 2]
    assert kept(price=10) == [1, 3]
    assert kept(tags=["red"]) == [1, 4]
    assert kept(tags="new", category="hats") == []


def test_no_filter_keeps_everything() -> None:
    assert ItemFilters(ITEMS).allowed({}) is None


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
        ItemFilters(ITEMS).allowed(wanted)


def test_only_so_many_are_remembered() -> None:
    filters = ItemFilters(ITEMS)
    for price in range(2 * REMEMBERED):
        filters.allowed({"price": price})
    assert len(filters._known) == REMEMBERED
