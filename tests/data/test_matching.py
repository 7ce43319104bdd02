"""Parts that do not name the same users and items."""

from __future__ import annotations

import pytest

from caged.data import IdMap, Interactions
from caged.data.matching import check_kinds, check_overlap
from caged.errors import DataError

USERS, ITEMS = IdMap.of(range(6)), IdMap.of(range(6))


def part(users: list[int], items: list[int]) -> Interactions:
    return Interactions.from_ids(users, items).reindexed(USERS, ITEMS)


def test_half_in_common_needs_no_note_and_less_does() -> None:
    train = part([0, 1], [0, 1])
    assert check_overlap(train, {"test": part([0, 3], [0, 3])}) == ()
    users, items = check_overlap(train, {"test": part([0, 3, 4], [0, 3, 4])})
    assert "only 1 of the 3 users of test (33.3%) are in train" in users
    assert "only 1 of the 3 items of test (33.3%) are in train" in items


def test_users_and_items_are_each_needed() -> None:
    train = part([0, 1], [0, 1])
    with pytest.raises(DataError, match=r"valid has no user in common with train .such as 2 here, 0 there."):
        check_overlap(train, {"valid": part([2, 3], [0, 1])})
    with pytest.raises(DataError, match=r"valid has no item in common with train .such as 4 here, 0 there."):
        check_overlap(train, {"valid": part([0, 1], [4, 5])})


def test_integers_and_text_never_match() -> None:
    train = part([0, 1], [0, 1])
    with pytest.raises(DataError, match=r"'item_id' of test holds text .such as '5.0'. where train has integers"):
        check_kinds(train, {"test": Interactions.from_ids([0], ["5.0"])})
    with pytest.raises(DataError, match="'item_id' of the item table holds text"):
        check_kinds(train, {}, IdMap.of(["a"]))
