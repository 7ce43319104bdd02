"""Columns: their types, their names, and what is refused in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caged.data import Columns, read_frame, read_log
from caged.errors import DataError
from tests.data.readers.written import pairs, rows, written

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["10", "9"], [9, 10]),
        (["007", "7"], ["007", "7"]),
        (["1", "x"], ["1", "x"]),
        (["1", "+2"], ["+2", "1"]),
        (["1", " 2"], [" 2", "1"]),
        (["-0", "1"], ["-0", "1"]),
        (["-1", "x"], ["-1", "x"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["1e3", "2"], ["1e3", "2"]),
        (["12e45", "nanna"], ["12e45", "nanna"]),
        (["0", str(2**63 - 1)], [0, 2**63 - 1]),
        (["007", "9" * 30], ["007", "9" * 30]),
    ],
)
def test_text_becomes_integers_only_as_a_whole_column(tmp_path: Path, column: list[str], expected: list[Any]) -> None:
    path = written(tmp_path, "user_id,item_id\n" + "".join(f"{user},i{user}\n" for user in column))
    assert read_log(path).user_ids.values.to_pylist() == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2.0, 1.0]),
        pa.array([2, 1], type=pa.uint64()),
        pa.array([2, 1], type=pa.int8()),
        pa.array([2, 1]).dictionary_encode(),
    ],
)
def test_integral_columns_of_any_type_are_integers(column: pa.Array) -> None:
    assert read_frame(pa.table({"user_id": column, "item_id": [1, 2]})).user_ids.values.to_pylist() == [1, 2]


def test_text_in_frames_stays_text() -> None:
    assert read_frame(pl.DataFrame({"user_id": ["9", "10"], "item_id": ["a", "b"]})).user_ids.values.to_pylist() == [
        "10",
        "9",
    ]


def test_pandas_categories_are_accepted() -> None:
    frame = pd.DataFrame({"user_id": pd.Categorical(["b", "a"]), "item_id": [1, 2]}, index=[7, 8])
    assert pairs(read_frame(frame)) == [("a", 2), ("b", 1)]


# ---------------------------------------------------------------- identifiers that are none

NO_VALUES = ["NaN", "nan", "None", "none", "null", "NULL", "NA", "<NA>", "N/A", "#N/A", "NaT", "\\N", " ", "  "]
SHORTENED = ["1.23e+12", "1.23E+12", "1e+16", "1.5e12", "+1e+3"]


def rows_of(ids: list[str]) -> str:
    return "user_id,item_id\n" + "".join(f'"{user}",{row}\n' for row, user in enumerate(ids))


@pytest.mark.parametrize("odd", [*NO_VALUES, *SHORTENED, ""])
@pytest.mark.parametrize("others", [["7", "8"], ["ann", "bob"]])
def test_what_is_no_identifier_is_refused_and_its_row_named(tmp_path: Path, odd: str, others: list[str]) -> None:
    ids = [*others, odd, others[0]]
    with pytest.raises(DataError, match=r"column 'user_id' is .* in data row 3, line 4 of the file; .*"):
        read_log(written(tmp_path, rows_of(ids)))
    with pytest.raises(DataError, match=r"column 'item_id' is .* in data row 3; .*"):
        read_frame(pa.table({"user_id": [1, 2, 3, 4], "item_id": ids}))


@pytest.mark.parametrize("odd", [*NO_VALUES, *SHORTENED, ""])
def test_ids_as_text_are_names_whatever_they_look_like(tmp_path: Path, odd: str) -> None:
    ids = ["7", "007", odd]
    log = read_log(written(tmp_path, rows_of(ids)), ids="text")
    assert pairs(log) == sorted([("7", "0"), ("007", "1"), (odd, "2")])
    frame = pa.table({"user_id": ids, "item_id": [1, 2, 3]})
    assert pairs(read_frame(frame, ids="text")) == sorted([("7", "1"), ("007", "2"), (odd, "3")])


@pytest.mark.parametrize("name", ["Nancy", "nullable", "12e45678", "1e5", "None of it", "na", "nana", "e+12", "1.2"])
def test_names_that_only_look_odd_are_fine(tmp_path: Path, name: str) -> None:
    assert ("ann", 1) in pairs(read_log(written(tmp_path, rows_of([name, "ann"]))))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([2**64 - 1, 1], type=pa.uint64()), [str(2**64 - 1), "1"]),
        (pa.array([-5, 1]), ["-5", "1"]),
        (pa.array([5.0, 1.0]), ["5", "1"]),
    ],
)
def test_numbers_as_text(column: pa.Array, expected: list[str]) -> None:
    log = read_frame(pa.table({"user_id": column, "item_id": [1, 2]}), ids="text")
    assert sorted(log.user_ids.values.to_pylist()) == sorted(expected)


@pytest.mark.parametrize("column", [pa.array(["a", None]), pa.array([1, None]), pa.array([1.5, 2.0])])
def test_a_null_is_no_name(column: pa.Array) -> None:
    with pytest.raises(DataError, match="in data row"):
        read_frame(pa.table({"user_id": column, "item_id": [1, 2]}), ids="text")


def test_ids_are_read_in_one_of_two_ways() -> None:
    with pytest.raises(DataError, match="unknown way to read ids 'number'; known: auto, text"):
        Columns().reading_ids("number")


# ---------------------------------------------------------------- times in several units


def test_seconds_and_milliseconds_in_one_column_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    times = [1_700_000_000, 1_700_000_001, 1_700_000_000_000, 5]
    text = "".join(f"{row},{row},{time}\n" for row, time in enumerate(times))
    log = read_log(written(tmp_path, f"user_id,item_id,timestamp\n{text}"))
    (note,) = log.notes
    assert "column 'timestamp' mixes units: 2 rows like seconds and 1 rows like milliseconds" in note
    assert note in caplog.text
    assert read_log(written(tmp_path, f"user_id,item_id,timestamp\n{text}"), timestamp_column="timestamp").notes
    assert read_frame(pa.table({"user_id": [1, 2], "item_id": [1, 2], "timestamp": times[:2]})).notes == ()


# ---------------------------------------------------------------- further columns


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "when,reader,book,stars,source\n5,1,2,3,explore\n6,3,4,5,policy\n")
    log = read_log(
        path,
        columns=Columns(keep=("source",)),
        user_column="reader",
        item_column="book",
        rating_column="stars",
        timestamp_column="when",
    )
    assert rows(log)[0] == {"user_id": 1, "item_id": 2, "rating": 3.0, "timestamp": 5, "source": "explore"}
    assert rows(log) == rows(read_log(path, columns=Columns("reader", "book", "stars", "when", ("source",))))


def test_duplicates_are_merged_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "user_id,item_id,rating,timestamp\n1,1,5,9\n1,1,2,8\n2,2,3,1\n")
    log = read_log(path)
    assert log.merged == 1
    assert rows(log)[0]["rating"] == 5.0


def test_min_rating_drops_pairs_and_what_occurs_nowhere_else(tmp_path: Path) -> None:
    """The pair (1, 1) is dropped although it was rated 5 once: its latest rating is 1."""
    path = written(tmp_path, "user_id,item_id,rating\n1,1,5\n1,1,1\n2,2,4\n3,3,3.5\n4,2,1\n2,3,5\n")
    log = read_log(path, min_rating=3.5)
    assert pairs(log) == [(2, 2), (2, 3), (3, 3)]
    assert log.user_ids.values.to_pylist() == [2, 3]
    assert log.item_ids.values.to_pylist() == [2, 3]
    assert log.merged == 1


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["86400", "-5"], [86400, -5]),
        (["86400.0", "1e3"], [86400, 1000]),
        ([" 7", "8 "], [7, 8]),
        (["1970-01-02", "1969-12-31 23:59:59"], [86400, -1]),
        (["1970-01-02T00:00:00Z", "1970-01-01T01:00:00+01:00"], [86400, 0]),
        (pa.array([1000, -2000], type=pa.timestamp("ms")), [1, -2]),
        (pa.array([10**9, 2 * 10**9], type=pa.timestamp("ns", tz="Europe/Paris")), [1, 2]),
        (pa.array([1, -1], type=pa.date32()), [86400, -86400]),
        (pa.array([86_400_000, 0], type=pa.date64()), [86400, 0]),
        (pa.array([3.0, 4.0]), [3, 4]),
        (pa.array([3, 4], type=pa.int32()), [3, 4]),
    ],
)
def test_timestamps(tmp_path: Path, column: Any, expected: list[int]) -> None:
    frame = pa.table({"user_id": [1, 2], "item_id": [1, 2], "timestamp": column})
    timestamp = read_frame(frame).timestamp
    assert timestamp is not None
    assert timestamp.tolist() == expected
    if isinstance(column, list):
        text = "".join(f"{row},{row},{value}\n" for row, value in enumerate(column))
        from_file = read_log(written(tmp_path, f"user_id,item_id,timestamp\n{text}")).timestamp
        assert from_file is not None
        assert from_file.tolist() == expected


@pytest.mark.parametrize(
    ("column", "expected", "unit"),
    [
        (["1970-01-02", "1969-12-31 23:59:59.5"], [86_400_000, -500], "ms"),
        (["1970-01-01T00:00:00.000001Z", "1970-01-01T01:00:00+01:00"], [1, 0], "us"),
        (["1970-01-01 00:00:00.000000001", "1970-01-01 00:00:01"], [1, 10**9], "ns"),
        (pa.array([1500, -1500], type=pa.timestamp("ms")), [1500, -1500], "ms"),
        (pa.array([1500, 0], type=pa.timestamp("us")), [1500, 0], "us"),
        (pa.array([1_500_000, 0], type=pa.timestamp("ns")), [1500, 0], "us"),
        (pa.array([1, 0], type=pa.timestamp("ns", tz="Europe/Paris")), [1, 0], "ns"),
        (pa.array([1, 86_400_000], type=pa.date64()), [1, 86_400_000], "ms"),
    ],
)
def test_times_below_a_second_keep_their_resolution(
    tmp_path: Path, column: Any, expected: list[int], unit: str
) -> None:
    frame = pa.table({"user_id": [1, 2], "item_id": [1, 2], "timestamp": column})
    text = "".join(f"{row},{row},{value}\n" for row, value in enumerate(column))
    sources = [read_frame(frame)]
    if isinstance(column, list):
        sources.append(read_log(written(tmp_path, f"user_id,item_id,timestamp\n{text}")))
    for log in sources:
        assert log.timestamp is not None
        assert log.timestamp.tolist() == expected
        assert log.timestamp_unit == unit


def test_the_later_of_two_ratings_within_a_second_stays(tmp_path: Path) -> None:
    lines = "1,1,5,2024-03-01 12:00:00.250\n1,1,2,2024-03-01 12:00:00.125\n2,2,3,2024-03-01\n"
    log = read_log(written(tmp_path, f"user_id,item_id,rating,timestamp\n{lines}"))
    assert log.merged == 1
    assert rows(log)[0]["rating"] == 5.0


@pytest.mark.parametrize("column", [[True, False], ["1", " 0.0"], [1, 0], np.array([1, 0], dtype=np.float32)])
def test_ratings_of_any_numeric_kind(column: Any) -> None:
    rating = read_frame(pa.table({"user_id": [1, 2], "item_id": [1, 2], "rating": column})).rating
    assert rating is not None
    assert rating.dtype == np.float64
    assert rating.tolist() == [1.0, 0.0]


def test_the_first_bad_rating_of_many_is_named(tmp_path: Path) -> None:
    values = ["1"] * 1000
    values[617] = values[800] = "x"
    text = "".join(f"{row},{row},{value}\n" for row, value in enumerate(values))
    with pytest.raises(DataError, match="data row 618"):
        read_log(written(tmp_path, f"user_id,item_id,rating\n{text}"))


def test_optional_columns_are_required_once_named(tmp_path: Path) -> None:
    path = written(tmp_path, "user_id,item_id\n1,2\n3,4\n")
    assert read_log(path).rating is None
    for options in ({"rating_column": "rating"}, {"columns": Columns(rating="stars")}):
        with pytest.raises(DataError, match="--rating-column"):
            read_log(path, **options)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no column 'source'"):
        read_log(path, columns=Columns(keep=("source",)))
    with pytest.raises(DataError, match="--min-rating needs"):
        read_log(path, min_rating=3)


def test_one_column_cannot_play_two_roles() -> None:
    with pytest.raises(DataError, match="'x' cannot be user and item"):
        Columns(user="x", item="x")
