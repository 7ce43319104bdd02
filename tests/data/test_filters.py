"""The k-core and the smallest rating."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.data import Interactions, read_frame, read_log
from caged.data.filters import k_core, rated_at_least
from caged.errors import CagedError, ConfigError, DataError
from caged.runs.execute import start
from caged.runs.spec import resolve

Pairs = set[tuple[int, int]]
PAIRS = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=40)


def log_of(pairs: Pairs, **columns: Any) -> Interactions:
    ordered = sorted(pairs)
    return Interactions.from_ids([user for user, _ in ordered], [item for _, item in ordered], **columns)


def pairs_of(log: Interactions) -> Pairs:
    return {(row["user_id"], row["item_id"]) for row in log.to_arrow().to_pylist()}


def slow_k_core(pairs: Pairs, k_user: int, k_item: int) -> Pairs:
    """One user or item after the other, until none has too few."""
    while True:
        users, items = Counter(user for user, _ in pairs), Counter(item for _, item in pairs)
        poor_user = next((user for user in users if users[user] < k_user), None)
        poor_item = next((item for item in items if items[item] < k_item), None)
        if poor_user is None and poor_item is None:
            return pairs
        pairs = {(user, item) for user, item in pairs if user != poor_user and item != poor_item}


@settings(deadline=None)
@given(PAIRS, st.integers(1, 4), st.integers(1, 4))
def test_k_core_equals_the_slow_loop(pairs: Pairs, k_user: int, k_item: int) -> None:
    expected = slow_k_core(pairs, k_user, k_item)
    if not expected:
        with pytest.raises(DataError, match="leaves nothing"):
            k_core(log_of(pairs), k_user, k_item)
        return
    core = k_core(log_of(pairs), k_user, k_item)
    assert pairs_of(core) == expected
    assert core.user_ids.values.to_pylist() == sorted({user for user, _ in expected})
    assert core.item_ids.values.to_pylist() == sorted({item for _, item in expected})


def test_one_pass_is_not_enough() -> None:
    """Item 9 takes user 3 with it, who takes item 4 along; a 2 x 2 block remains."""
    log = log_of({(1, 1), (1, 2), (2, 1), (2, 2), (3, 9), (3, 4), (2, 4)}, rating=[1.0, 2, 3, 4, 5, 6, 7])
    core = k_core(log, 2, 2)
    assert core.to_arrow().to_pylist() == [
        {"user_id": 1, "item_id": 1, "rating": 1.0},
        {"user_id": 1, "item_id": 2, "rating": 2.0},
        {"user_id": 2, "item_id": 1, "rating": 3.0},
        {"user_id": 2, "item_id": 2, "rating": 4.0},
    ]


def test_users_and_items_have_their_own_number() -> None:
    log = log_of({(1, 1), (1, 2), (2, 1), (3, 3)})
    assert pairs_of(k_core(log, 2, 1)) == {(1, 1), (1, 2)}
    assert pairs_of(k_core(log, 1, 2)) == {(1, 1), (2, 1)}
    assert pairs_of(k_core(log, 1, 1)) == pairs_of(log)


@pytest.mark.parametrize(("k_user", "k_item", "kind"), [(0, 1, "user"), (1, -2, "item")])
def test_numbers_below_one_are_refused(k_user: int, k_item: int, kind: str) -> None:
    with pytest.raises(ConfigError, match=rf"per {kind} is .*; it must be a whole number, 1 or more"):
        k_core(log_of({(1, 1)}), k_user, k_item)


def test_readers_filter_by_rating_first_and_then_by_number(tmp_path: Path) -> None:
    """Without the badly rated (1, 3), item 3 has too few; the merged duplicate stays counted."""
    text = "user_id,item_id,rating\n1,1,5\n1,2,5\n2,1,5\n2,2,5\n2,2,5\n1,3,1\n3,3,5\n3,1,5\n"
    (tmp_path / "log.csv").write_text(text)
    log = read_log(tmp_path / "log.csv", min_rating=3, min_user_interactions=2, min_item_interactions=2)
    assert pairs_of(log) == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert log.merged == 1
    only_items = read_frame(log.to_arrow(), min_item_interactions=2)
    assert pairs_of(only_items) == pairs_of(log)
    with pytest.raises(DataError, match=r"log\.csv has no users with 9"):
        read_log(tmp_path / "log.csv", min_user_interactions=9)


def test_rated_at_least_needs_ratings() -> None:
    with pytest.raises(DataError, match="--min-rating needs"):
        rated_at_least(log_of({(1, 1)}), 3)


def test_experiments_take_the_core_of_a_log_and_refuse_it_for_parts(
    log_csv: Path, released: Path, tmp_path: Path
) -> None:
    core = read_log(log_csv, min_user_interactions=9, min_item_interactions=9)
    assert core.user_count < read_log(log_csv).user_count
    spec = resolve(str(log_csv), "mostpop", overrides=["data.k_core=9"], device="cpu", threads=1)
    dataset = start(spec, tmp_path / "run").run.dataset
    assert (dataset["users"], dataset["items"]) == (core.user_count, core.item_count)
    assert sum(dataset["interactions"].values()) == len(core)
    for source, message in ((released, "is already split"), (log_csv, "leaves nothing")):
        with pytest.raises(CagedError, match=message):
            start(resolve(str(source), "mostpop", overrides=["data.k_core=40"], device="cpu"), tmp_path / "no")
    assert not (tmp_path / "no").exists()
