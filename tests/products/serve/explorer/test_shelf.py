"""People and items are found by a few letters, and everybody's popularity is the training data's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from caged.products.serve import ServedModel
from caged.products.serve.explorer.shelf import FOUND, Shelf
from tests.products.serve.explorer.shop import MARKUP, STRANGE, UNSEEN


@pytest.fixture(scope="module")
def shelf(shop: list[Path]) -> Shelf:
    return Shelf(ServedModel.load(shop[0]))


def found(shelf: Shelf, query: str) -> tuple[list[str], list[str]]:
    answer = shelf.find(query)
    return [one["id"] for one in answer["people"]], [one["id"] for one in answer["items"]]


def test_people_are_found_by_any_letters_of_their_id(shelf: Shelf) -> None:
    assert found(shelf, "u17")[0] == ["u17"]
    assert found(shelf, "ONERROR")[0] == [STRANGE]
    assert len(found(shelf, "u")[0]) == FOUND
    assert found(shelf, " 59 ")[0] == ["u59"]


def test_items_are_found_by_id_and_title_the_most_popular_first(shelf: Shelf) -> None:
    assert found(shelf, "<script")[1] == [MARKUP]
    assert found(shelf, "i12")[1] == ["i12"]
    rivers = shelf.find("river")["items"]
    assert len(rivers) == FOUND
    assert [item["people"] for item in rivers] == sorted((item["people"] for item in rivers), reverse=True)
    assert found(shelf, UNSEEN[:8])[1] == ["i07"]


@pytest.mark.parametrize("query", ["", "   ", "\ud800", "nothing like it", "%", "\\", "[u", "\x00"])
def test_nothing_is_found_quietly(shelf: Shelf, query: str) -> None:
    assert found(shelf, query) == ([], [])


def test_an_item_says_how_popular_it_is(shelf: Shelf) -> None:
    items = shelf.items(np.arange(40))
    degrees = shelf.model.degrees
    assert [item["people"] for item in items] == degrees.tolist()
    assert sum(item["popular"] for item in items) == 8
    assert max(item["height"] for item in items) == 1
    assert min(item["height"] for item in items) >= 0
    assert items[7]["title"] in (UNSEEN, "The 6th <b>River</b>")  # rows are in the order of the ids


def test_a_person_is_what_they_have_had(shelf: Shelf) -> None:
    row = shelf.model.users.row(STRANGE)
    person = shelf.person(row)
    assert person["id"] == STRANGE
    assert {item["id"] for item in person["history"]} == set(shelf.model.items.at(shelf.model.seen(row)))
    people = [item["people"] for item in person["history"]]
    assert people == sorted(people)
    assert person["niche_share"] == np.mean([not item["popular"] for item in person["history"]])


def test_the_page_begins_with_somebody_of_each_taste(shelf: Shelf) -> None:
    starts = shelf.starts()
    assert [start["taste"] for start in starts] == ["niche-taste", "diverse", "blockbuster"]
    shares = [shelf.person(shelf.model.users.row(start["id"]))["niche_share"] for start in starts]
    assert shares[0] > shares[1] > shares[2]


def test_the_sample_reaches_from_the_most_to_the_least_popular(shelf: Shelf) -> None:
    people = [item["people"] for item in shelf.sample()]
    assert people == sorted(people, reverse=True)
    assert len(people) == 12
    assert (people[0], people[-1]) == (shelf.model.degrees.max(), shelf.model.degrees[shelf.model.degrees > 0].min())


def test_ids_that_javascript_would_round_travel_as_text(shop: list[Path]) -> None:
    model = ServedModel.load(shop[0])
    large = pa.array([2**60 + number for number in range(len(model.items))])
    named = ServedModel(
        model.folder, model.manifest, model.users, type(model.items)(large), model.item_table, model.arrays
    )
    assert Shelf(named).items(np.array([1]))[0]["id"] == str(2**60 + 1)
    assert named.items.row(str(2**60 + 1)) == 1
