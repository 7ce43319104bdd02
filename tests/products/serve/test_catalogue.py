"""Searching items: by title, by id, most popular first."""

from __future__ import annotations

import pyarrow as pa
import pytest

from caged.errors import ConfigError
from caged.products.serve.catalogue import Catalogue
from tests.products.serve.small_model import small_model

ITEMS = pa.table(
    {
        "item_id": [1, 2, 10, 12, 30],
        "degree": [5, 9, 7, 1, 9],
        "title": ["Blue Shoes", "Red SHOES", "Grüne Hüte", None, "12 hats (a+b)"],
    }
)


def found(text: str, **page: int) -> list[int]:
    catalogue = Catalogue(small_model(ITEMS))
    return ITEMS["item_id"].take(pa.array(catalogue.search(text, **page).items)).to_pylist()


def test_titles_match_anywhere_ids_from_their_beginning_and_an_exact_id_is_first() -> None:
    assert found("") == [2, 30, 10, 1, 12]
    assert found("shoes") == [2, 1]
    assert found("GRÜNE") == [10]
    assert found("1") == [1, 30, 10, 12]
    assert found("12") == [12, 30]
    assert found("(a+b)") == [30]
    assert found(".*") == []
    assert found("0") == []


def test_pages() -> None:
    assert found("", offset=1, limit=2) == [30, 10]
    assert found("", offset=99) == []
    assert Catalogue(small_model(ITEMS)).search("shoes", limit=1).total == 2


def test_text_ids_and_no_titles() -> None:
    catalogue = Catalogue(small_model(pa.table({"item_id": ["ab", "ac", "b"], "degree": [1, 2, 3]})))
    assert catalogue.search("A").items.tolist() == [1, 0]
    assert catalogue.search("ab").items.tolist() == [0]


@pytest.mark.parametrize(
    ("text", "page"), [("x" * 201, {}), ("", {"offset": -1}), ("", {"limit": 0}), ("", {"limit": 1001})]
)
def test_what_cannot_be_searched_is_a_sentence(text: str, page: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="allowed"):
        found(text, **page)
