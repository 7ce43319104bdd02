"""What chance showed: which pairs count, which half a user is in, what popularity is worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from caged.data import IdMap, Interactions
from caged.data.popularity import ItemGroups
from caged.data.shown import ShownAtRandom, in_first_half, popularity_contrast
from caged.errors import ConfigError, DataError

USERS, ITEMS = IdMap.range(40), IdMap.range(20)


def part(pairs: list[tuple[int, int]], source: list[str] | None = None) -> Interactions:
    users, items = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    columns = {} if source is None else {"source": np.array(source, dtype=object)}
    return Interactions.build(users, items, user_ids=USERS, item_ids=ITEMS, columns=columns)


def pairs_of(some: Interactions) -> set[tuple[int, int]]:
    return set(zip(some.users.tolist(), some.items.tolist(), strict=True))


def test_clicks_on_what_the_shop_chose_are_left_out_where_both_parts_mark_their_source() -> None:
    test = part([(0, 1), (0, 2), (1, 3)], ["explore", "popular", "explore"])
    negative = part([(0, 4)], ["explore"])
    shown = ShownAtRandom.of(test, negative)
    assert pairs_of(shown.liked) == {(0, 1), (1, 3)}
    assert pairs_of(shown.not_liked) == {(0, 4)}
    assert pairs_of(ShownAtRandom.of(test, part([(0, 4)])).liked) == {(0, 1), (0, 2), (1, 3)}


def test_a_pair_cannot_be_liked_and_not_liked() -> None:
    with pytest.raises(DataError, match="1 of the pairs shown at random are both liked and not liked"):
        ShownAtRandom.of(part([(0, 1), (2, 2)]), part([(0, 1), (0, 3)]))


def test_the_halves_share_no_user_and_are_the_whole() -> None:
    test, negative = part([(user, 1) for user in range(40)]), part([(user, 2) for user in range(0, 40, 2)])
    whole = ShownAtRandom.of(test, negative)
    first, second = (ShownAtRandom.of(test, negative, half) for half in ("first", "second"))
    for name in ("liked", "not_liked"):
        one, other = pairs_of(getattr(first, name)), pairs_of(getattr(second, name))
        assert one
        assert other
        assert not {user for user, _ in one} & {user for user, _ in other}
        assert one | other == pairs_of(getattr(whole, name))
    assert {user for user, _ in pairs_of(first.not_liked)} <= {user for user, _ in pairs_of(first.liked)}
    assert len({whole.fingerprint, first.fingerprint, second.fingerprint}) == 3
    with pytest.raises(ConfigError, match=r"unknown half of the users 'third'; known: all, first, second"):
        ShownAtRandom.of(test, negative, "third")


def test_a_user_stays_in_the_same_half_whoever_else_is_there() -> None:
    everybody = in_first_half(IdMap.range(10_000))
    assert np.array_equal(in_first_half(IdMap.of(np.arange(5_000, 10_000))), everybody[5_000:])
    assert in_first_half(IdMap.of(["17"]))[0] == everybody[17]  # by the text of the id
    assert abs(everybody.mean() - 0.5) < 0.02


def test_the_contrast_by_hand() -> None:
    """Ten trained items with 10, 9, ..., 1 training users, so each is a tenth; an eleventh has none."""
    groups = ItemGroups.from_degrees(np.array([*range(10, 0, -1), 0]))
    users, items = IdMap.range(9), IdMap.range(11)

    def shown(pairs: list[tuple[int, int]]) -> Interactions:
        rows = np.array(pairs).T
        return Interactions.build(rows[0], rows[1], user_ids=users, item_ids=items)

    liked = shown([(0, 0), (1, 0), (2, 0), (0, 9), (3, 10)])
    not_liked = shown([(3, 0), (1, 9), (2, 9), (4, 9), (5, 10), (6, 10)])
    found = popularity_contrast(groups, ShownAtRandom(liked, not_liked))
    assert found.degree == (10.0, 1.0)
    assert found.degree.ratio == 10
    assert found.like_rate == (0.75, 0.25)  # the item without training users is in no tenth
    assert found.to_json()["like_rate"] == {"top": 0.75, "bottom": 0.25, "ratio": 3.0}


def test_the_contrast_of_nothing_is_undefined() -> None:
    nothing = part([])
    found = popularity_contrast(ItemGroups.from_degrees(np.zeros(20, dtype=int)), ShownAtRandom(nothing, nothing))
    assert all(math.isnan(value) for one in found for value in (*one, one.ratio))
