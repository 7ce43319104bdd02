"""A catalogue without what only the test parts name."""

from __future__ import annotations

import pytest

from caged.data import IdMap, Interactions, Split, training_catalogue
from caged.errors import DataError
from tests.data.splits.logs import pairs_of

USERS, ITEMS = IdMap.of(["ann", "bob", "cid", "dan"]), IdMap.of(list("vwxyz"))


def part(*pairs: tuple[str, str]) -> Interactions:
    return Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs]).reindexed(USERS, ITEMS)


def a_split(*test: tuple[str, str]) -> Split:
    train = part(("bob", "w"), ("dan", "z"))
    return Split(train, part(("dan", "x")), part(*test), kind="given")


def test_only_what_training_sees_has_a_row() -> None:
    """Validation chooses the epoch, so item x is seen; item y and user ann are in test only, v is in the item table."""
    seen = training_catalogue(a_split(("bob", "z"), ("ann", "w"), ("dan", "y")), listed=IdMap.of(["v"]))
    assert seen.split.train.user_ids.values.to_pylist() == ["bob", "dan"]
    assert seen.split.train.item_ids.values.to_pylist() == ["v", "w", "x", "z"]
    assert pairs_of(seen.split.train) == [(0, 1), (1, 3)]
    assert pairs_of(seen.split.valid) == [(1, 2)]
    assert pairs_of(seen.split.test) == [(0, 3)]
    (note,) = seen.notes
    assert note.startswith("2 of the 3 pairs of test (66.7%) name users or items that training never sees: left out")


def test_further_tests_are_in_the_same_rows() -> None:
    seen = training_catalogue(a_split(("bob", "z")), {"ood": part(("bob", "x"), ("cid", "x"))})
    assert pairs_of(seen.further["ood"]) == [(0, 1)]
    assert seen.further["ood"].item_ids == seen.split.train.item_ids
    assert len(seen.notes) == 1


def test_a_test_part_of_which_nothing_is_left_is_an_error() -> None:
    with pytest.raises(DataError, match="no pair of test has a user and an item that training sees"):
        training_catalogue(a_split(("ann", "z"), ("bob", "y")))
