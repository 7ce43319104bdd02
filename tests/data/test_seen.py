from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caged.data import IdMap, Interactions, Split
from caged.data.seen import Seen
from caged.errors import DataError

USERS, ITEMS = 4, 5
PAIRS = st.sets(st.tuples(st.integers(0, USERS - 1), st.integers(0, ITEMS - 1)))


def part(pairs: set[tuple[int, int]], items: int = ITEMS) -> Interactions:
    users, columns = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    return Interactions.build(users, columns, user_ids=IdMap.range(USERS), item_ids=IdMap.range(items))


@given(PAIRS, st.none() | PAIRS)
def test_everything_agrees_with_a_set(train: set[tuple[int, int]], valid: set[tuple[int, int]] | None) -> None:
    seen = Seen(part(train), None if valid is None else part(valid))
    expected = train | (valid or set())
    assert seen.keys.tolist() == sorted(user * ITEMS + item for user, item in expected)
    users, items = np.divmod(np.arange(USERS * ITEMS), ITEMS)
    assert seen.holds(users, items).tolist() == [pair in expected for pair in zip(users, items, strict=True)]
    offsets, listed = seen.by_user()
    rows = [listed[start:stop].tolist() for start, stop in pairwise(offsets.tolist())]
    assert rows == [sorted(item for owner, item in expected if owner == user) for user in range(USERS)]


def test_validation_is_seen_unless_it_is_evaluated() -> None:
    train, valid, test = part({(0, 0)}), part({(0, 1)}), part({(0, 2)})
    split = Split(train, valid, test, kind="given")
    assert split.seen_before(test).keys.tolist() == [0, 1]
    assert split.seen_before(valid).keys.tolist() == [0]


def test_parts_with_other_rows_are_refused() -> None:
    with pytest.raises(DataError, match="share their users and items"):
        Seen(part({(0, 0)}), part({(0, 0)}, items=ITEMS + 1))
