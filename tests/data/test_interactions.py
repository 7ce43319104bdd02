"""The set of pairs: sorting, merging, validation, fingerprint."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caged.data import IdMap, Interactions, read_frame, read_log
from caged.errors import DataError

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.text("abé", max_size=2)), min_size=1)


def of_pairs(pairs: list[tuple[Any, Any]], **columns: Any) -> Interactions:
    return Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs], **columns)


@given(PAIRS, st.randoms())
def test_pairs_are_a_sorted_set_whatever_their_order(pairs: list[tuple[int, str]], random: Any) -> None:
    data = of_pairs(pairs)
    external = data.to_arrow().to_pydict()
    expected = sorted(set(pairs), key=lambda pair: (pair[0], pair[1].encode()))
    assert list(zip(external["user_id"], external["item_id"], strict=True)) == expected
    assert data.merged == len(pairs) - len(expected)
    random.shuffle(pairs)
    assert of_pairs(pairs).fingerprint == data.fingerprint


def test_of_duplicates_the_last_row_stays() -> None:
    data = of_pairs([(1, 1), (2, 1), (1, 1)], rating=[5, 4, 3])
    assert data.merged == 1
    assert data.rating is not None
    assert data.rating.tolist() == [3.0, 4.0]


def test_of_duplicates_the_latest_stays_and_of_equally_late_ones_the_last_row() -> None:
    data = of_pairs([(1, 1), (1, 1), (1, 1), (1, 1)], rating=[1, 2, 3, 4], timestamp=[7, 9, 9, 8])
    assert data.rating is not None
    assert data.rating.tolist() == [3.0]


def test_degrees_and_offsets() -> None:
    data = of_pairs([(10, 3), (10, 1), (30, 1)])
    assert data.user_degrees.tolist() == [2, 1]
    assert data.item_degrees.tolist() == [2, 1]
    assert data.user_offsets.tolist() == [0, 2, 3]
    assert data.keys.tolist() == [0, 1, 2]


def test_fingerprint_is_the_hash_of_the_canonical_text() -> None:
    """By hand: printf '9\\ta\\n9\\té\\n10\\ta\\n' | sha256sum. Integer users order numerically, text items by bytes."""
    data = of_pairs([(10, "a"), (9, "é"), (9, "a"), (9, "a")], rating=[1, 2, 3, 4])
    assert data.fingerprint == hashlib.sha256("9\ta\n9\té\n10\ta\n".encode()).hexdigest()
    assert data.fingerprint == "c1886624479b8908ce9ed4424c5d5659d7847a677191eab63155e3ec510f8c1f"


def test_fingerprint_ignores_what_has_no_interaction() -> None:
    data = of_pairs([(1, 2), (3, 4)])
    assert data.reindexed(IdMap.range(9), IdMap.range(9)).fingerprint == data.fingerprint


def test_fingerprint_of_several_blocks_equals_that_of_one_text() -> None:
    count = (1 << 20) + 3
    data = Interactions.build(
        np.zeros(count, dtype=np.int64),
        np.arange(count),
        user_ids=IdMap.range(1),
        item_ids=IdMap.range(count),
    )
    text = "".join(f"0\t{item}\n" for item in range(count))
    assert data.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_reindexed_keeps_pairs_values_and_the_count_of_duplicates() -> None:
    data = of_pairs([(9, 1), (10, 2), (10, 2)], rating=[1, 2, 3])
    moved = data.reindexed(IdMap.of(["10", "9", "a"]), IdMap.of([0, 1, 2]))
    assert moved.to_arrow().to_pydict() == {"user_id": ["10", "9"], "item_id": [2, 1], "rating": [3.0, 1.0]}
    assert moved.merged == 1


def test_reindexed_to_maps_that_lack_an_identifier_is_an_error() -> None:
    with pytest.raises(DataError, match="user rows span -1"):
        of_pairs([(1, 1), (2, 1)]).reindexed(IdMap.of([1]), IdMap.of([1]))


def test_select_takes_all_columns_along() -> None:
    data = of_pairs(
        [(1, 1), (2, 2)], rating=[1, 2], timestamp=[3, 4], columns={"source": np.array(["a", "b"], dtype=object)}
    )
    chosen = data.select(np.array([False, True]))
    assert chosen.to_arrow().to_pydict() == {
        "user_id": [2], "item_id": [2], "rating": [2.0], "timestamp": [4], "source": ["b"],
    }  # fmt: skip
    assert chosen.user_ids is data.user_ids


def test_joined_takes_along_what_every_part_has() -> None:
    whole = of_pairs(
        [(1, "a"), (1, "b"), (2, "a"), (3, "c"), (3, "c")],
        rating=np.arange(5.0),
        timestamp=np.arange(5),
        columns={"source": np.array(list("vwxyz"), dtype=object), "price": np.arange(5)},
    )
    one, other = whole.select(np.array([0, 3])), whole.select(np.array([1, 2]))
    again = Interactions.joined([replace(one, merged=1), other])
    assert again.to_arrow().equals(whole.to_arrow())
    assert again.merged == whole.merged == 1
    poorer = replace(other, timestamp=None, columns={"price": other.columns["price"]})
    for parts in ([one, poorer], [poorer, one]):
        assert Interactions.joined(parts).to_arrow().column_names == ["user_id", "item_id", "rating", "price"]


def test_joined_brings_times_to_one_unit() -> None:
    seconds = Interactions.from_ids([1], [1], timestamp=np.array([2]))
    later = Interactions.from_ids([1], [2], timestamp=np.array([1500]), timestamp_unit="ms")
    ids = IdMap.of([1]), IdMap.of([1, 2])
    whole = Interactions.joined([seconds.reindexed(*ids), later.reindexed(*ids)])
    assert whole.timestamp is not None
    assert whole.timestamp.tolist() == [2000, 1500]
    assert whole.timestamp_unit == "ms"
    assert whole.to_arrow()["timestamp"].type == pa.timestamp("ms")


def test_an_unknown_unit_of_time_is_an_error() -> None:
    with pytest.raises(DataError, match="timestamp_unit is 'min'; allowed are s, ms, us, ns"):
        Interactions.from_ids([1], [1], timestamp=np.array([2]), timestamp_unit="min")


def test_arrays_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        of_pairs([(1, 1)]).users[0] = 3


def test_repr_says_how_much_there_is() -> None:
    assert repr(of_pairs([(1, 1), (1, 1)])) == "Interactions(1 pairs, 1 users, 1 items, 1 duplicates merged)"


def build(users: list[int], items: list[int], **columns: Any) -> Interactions:
    return Interactions.build(
        np.array(users), np.array(items), user_ids=IdMap.range(2), item_ids=IdMap.range(3), **columns
    )


@pytest.mark.parametrize(
    ("users", "items", "columns", "message"),
    [
        ([0, 2], [0, 0], {}, r"user rows span 0\.\.2; allowed are 0\.\.1"),
        ([0, 1], [3, 0], {}, r"item rows span 0\.\.3; allowed are 0\.\.2"),  # (0, 3) would have the key of (1, 0)
        ([1, 0], [-1, 2], {}, "item rows span -1"),  # (1, -1) would have the key of (0, 2)
        ([0, 1], [0], {}, "column 'item' has 1 values for 2"),
        ([0, 1], [0, 1], {"rating": [1.0]}, "column 'rating' has 1 values for 2"),
        ([0, 1], [0, 1], {"columns": {"source": np.array(["x"])}}, "column 'source' has 1 values for 2"),
        ([0, 1], [0, 1], {"rating": [1.0, float("nan")]}, "rating of pair 1 is nan"),
        ([0, 1], [0, 1], {"timestamp": [1.5, 2.5]}, "timestamps have type float64"),
    ],
)
def test_bad_values_are_errors(users: list[int], items: list[int], columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(users, items, **columns)


def test_the_constructor_wants_sorted_distinct_pairs() -> None:
    data = build([0, 1], [0, 0])
    with pytest.raises(DataError, match="sorted"):
        replace(data, users=data.users[::-1].copy())


@pytest.mark.parametrize("maker", [Interactions.read, Interactions.from_frame, Interactions.from_ids])
def test_every_option_has_a_name_and_a_type(maker: Any) -> None:
    parameters = inspect.signature(maker).parameters.values()
    assert not [one for one in parameters if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    assert not [one for one in parameters if one.annotation is one.empty]


def test_the_options_of_reading_are_those_of_the_readers(tmp_path: Path) -> None:
    """`Interactions.read` and `from_frame` pass every option on, and none is missing."""
    for public, reader in ((Interactions.read, read_log), (Interactions.from_frame, read_frame)):
        assert set(inspect.signature(public).parameters) == set(inspect.signature(reader).parameters) - {"columns"}
    frame = pa.table(
        {
            "who": ["1", "1", "2", "2", "3", "3"],
            "what": ["5", "6", "5", "6", "7", "5"],
            "stars": [5, 5, 5, 5, 5, 4],
            "when": [1, 2, 3, 4, 5, 6],
            "source": list("abcdef"),
        }
    )
    options: dict[str, Any] = {
        "user_column": "who",
        "item_column": "what",
        "rating_column": "stars",
        "timestamp_column": "when",
        "keep": ["source"],
        "ids": "text",
        "min_rating": 5,
        "min_user_interactions": 1,
        "min_item_interactions": 2,
    }
    pq.write_table(frame, tmp_path / "log.parquet")
    for log in (Interactions.from_frame(frame, **options), Interactions.read(tmp_path / "log.parquet", **options)):
        assert log.to_arrow().to_pylist() == [
            {"user_id": "1", "item_id": "5", "rating": 5.0, "timestamp": 1, "source": "a"},
            {"user_id": "1", "item_id": "6", "rating": 5.0, "timestamp": 2, "source": "b"},
            {"user_id": "2", "item_id": "5", "rating": 5.0, "timestamp": 3, "source": "c"},
            {"user_id": "2", "item_id": "6", "rating": 5.0, "timestamp": 4, "source": "d"},
        ]
