"""Files and frames: what is accepted, and the sentence for everything that is not."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caged.data import Columns, Interactions, read_frame, read_log
from caged.data.readers import text as textformats
from caged.errors import DataError

IDENTIFIERS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def written(folder: Path, content: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def rows(log: Interactions) -> list[dict[str, Any]]:
    return log.to_arrow().to_pylist()


def pairs(log: Interactions) -> list[tuple[Any, Any]]:
    return [(row["user_id"], row["item_id"]) for row in rows(log)]


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "LOG.CSV", "log.tsv", "log.tsv.gz"])
def test_delimited_text(tmp_path: Path, name: str) -> None:
    text = "user_id,item_id,rating,timestamp\n2,10,4.5,200\n1,9,3,100\n2,9,1,300\n"
    log = read_log(written(tmp_path, text.replace(",", "\t") if "tsv" in name else text, name))
    assert rows(log) == [
        {"user_id": 1, "item_id": 9, "rating": 3.0, "timestamp": 100},
        {"user_id": 2, "item_id": 9, "rating": 1.0, "timestamp": 300},
        {"user_id": 2, "item_id": 10, "rating": 4.5, "timestamp": 200},
    ]


@pytest.mark.parametrize("name", ["log.parquet", "log.pq"])
def test_parquet(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"user_id": ["b", "a"], "item_id": [1, 2], "more": [0, 0]}), tmp_path / name)
    assert rows(read_log(tmp_path / name)) == [{"user_id": "a", "item_id": 2}, {"user_id": "b", "item_id": 1}]


@pytest.mark.parametrize("name", ["log.txt", "log.txt.gz"])
def test_lightgcn_text(tmp_path: Path, name: str) -> None:
    """A user without items, a user on two lines, repeated pairs, trailing blanks, tabs and blank lines are fine."""
    log = read_log(written(tmp_path, "0 10 2 \n1\n\n3\t7\n0 11 2", name))
    assert pairs(log) == [(0, 2), (0, 10), (0, 11), (3, 7)]
    assert log.merged == 1
    assert log.user_ids.values.to_pylist() == [0, 3]  # user 1 has no interaction


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_do_not_matter(tmp_path: Path, line_end: str) -> None:
    table = written(tmp_path, line_end.join(["user_id,item_id", "1,2", "3,4", ""]))
    lines = written(tmp_path, line_end.join(["1 2", "3 4", ""]), "log.txt")
    assert pairs(read_log(table)) == pairs(read_log(lines)) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(("name", "text"), [("log.csv", "user_id,item_id\n1,2\n3,4\n"), ("log.txt", "1 2\n3 4\n")])
def test_a_byte_order_mark_is_accepted(tmp_path: Path, name: str, text: str) -> None:
    assert pairs(read_log(written(tmp_path, text.encode("utf-8-sig"), name))) == [(1, 2), (3, 4)]


def test_quoted_fields_may_hold_separators_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = written(tmp_path, 'user_id,item_id\n"a,b","x ""1""\ny"\nc,z\n')
    assert pairs(read_log(path)) == [("a,b", 'x "1"\ny'), ("c", "z")]


def test_quoted_line_breaks_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, so that many of their ends fall into a quoted field."""
    monkeypatch.setattr(textformats, "CSV_BLOCK", 64)
    wanted = [(f"{user:02}\n\n{user}", f"x\n{user}") for user in range(50)]
    lines = "".join(f'"{user}","{item}"\n' for user, item in wanted)
    assert pairs(read_log(written(tmp_path, f"user_id,item_id\n{lines}"))) == wanted


@given(st.lists(st.tuples(IDENTIFIERS, IDENTIFIERS)))
def test_csv_round_trip_of_any_text(
    tmp_path_factory: pytest.TempPathFactory, given_pairs: list[tuple[str, str]]
) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    wanted = [*given_pairs, ("a user", "an item"), ("another user", "another item")]  # a log needs two of each
    lines = "".join(f"{quoted(user)},{quoted(item)}\n" for user, item in wanted)
    path = written(tmp_path_factory.mktemp("csv"), f"user_id,item_id\n{lines}")
    assert set(pairs(read_log(path))) == set(wanted)


def test_all_formats_have_one_fingerprint(tmp_path: Path) -> None:
    table = pa.table({"user_id": [10, 9, 10], "item_id": [3, 3, 20]})
    pq.write_table(table, tmp_path / "log.parquet")
    logs = [
        read_log(written(tmp_path, "item_id,user_id\n20,10\n3,10\n3,9\n")),
        read_log(written(tmp_path, "9 3\n10 20 3\n", "log.txt")),
        read_log(tmp_path / "log.parquet"),
        read_frame(table),
        read_frame(table.to_pandas()),
        read_frame(pl.from_arrow(table)),
        Interactions.read(tmp_path / "log.parquet"),
        Interactions.from_frame(table),
    ]
    assert len({log.fingerprint for log in logs}) == 1


def test_lightgcn_text_is_parsed_fast(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    items = generator.integers(0, 40_000, size=(8_000, 100))
    lines = "\n".join(f"{user} {' '.join(map(str, row))}" for user, row in enumerate(items.tolist()))
    path = written(tmp_path, lines, "log.txt")
    start = time.process_time()
    log = read_log(path)
    assert time.process_time() - start < 1.5
    assert len(log) + log.merged == items.size
    expected = np.unique(np.repeat(np.arange(8_000), 100) * 40_000 + items.ravel())
    assert np.array_equal(log.users * 40_000 + np.array(log.item_ids.values)[log.items], expected)


# ---------------------------------------------------------------- identifiers


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
        (["NA", "null"], ["NA", "null"]),
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
        (["1970-01-02", "1969-12-31 23:59:59.5"], [86400, -1]),
        (["1970-01-02T00:00:00Z", "1970-01-01T01:00:00+01:00"], [86400, 0]),
        (pa.array([1500, -1500], type=pa.timestamp("ms")), [1, -2]),
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


@pytest.mark.parametrize("column", [[True, False], ["1", " 0.0"], [1, 0], np.array([1, 0], dtype=np.float32)])
def test_ratings_of_any_numeric_kind(column: Any) -> None:
    rating = read_frame(pa.table({"user_id": [1, 2], "item_id": [1, 2], "rating": column})).rating
    assert rating is not None
    assert rating.dtype == np.float64
    assert rating.tolist() == [1.0, 0.0]


# ---------------------------------------------------------------- bad tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("user_id,item_id\n", "holds no interactions"),
        ("user,item_id\n1,2\n", r"no column 'user_id', found: 'user', 'item_id'; .*--user-column.*did you mean 'user'"),
        ("user_id,movie\n1,2\n", r"no column 'item_id', found: 'user_id', 'movie'; .*--item-column"),
        ("1,2,5.0\n3,4,4.0\n", "the first line looks like data: a header line such as .* is missing"),
        ("user_id;item_id\n1;2\n", "a single column: separate a .csv file by commas"),
        ("user_id,item_id,item_id\n1,2,3\n", "2 columns named 'item_id'"),
        ("user_id,item_id\n1,2\n3\n", "line 3: 1 fields, expected 2"),
        ('user_id,item_id\n"1\n1",2\n3,4,5\n', "line 4: 3 fields, expected 2"),
        ('user_id,item_id\n1,2\n"3,4\n5,6\n', "fields, expected 2|quote left open"),
        ("user_id,item_id\n1,2\n,3\n", "'user_id' is empty in data row 2"),
        ("user_id,item_id\nx,2\ny,\n", "'item_id' is empty in data row 2"),
        ("user_id,item_id\n1,2\n-3,4\n", "'user_id' is -3, a negative identifier, in data row 2"),
        (f"user_id,item_id\n1,2\n{2**63},4\n", f"'user_id' is '{2**63}', above .* in data row 2; .*letter in front"),
        ("user_id,item_id\n1,2\n1,3\n", "has 1 user; recommending needs"),
        ("user_id,item_id\n1,2\n2,2\n", "has 1 item; recommending needs"),
        ("user_id,item_id,rating\n1,2,3\n2,3,good\n", "'rating' is 'good', not a number, in data row 2"),
        ("user_id,item_id,rating\n1,2,3\n2,3,\n", "'rating' is empty in data row 2"),
        ("user_id,item_id,rating\n1,2,3\n2,3,nan\n", "'rating' is 'nan' in data row 2; ratings must be finite"),
        ("user_id,item_id,rating\n1,2,-inf\n2,3,1\n", "'rating' is '-inf' in data row 1; ratings must be finite"),
        ("user_id,item_id,timestamp\n1,2,3\n2,3,\n", "'timestamp' is empty in data row 2"),
        ("user_id,item_id,timestamp\n1,2,3\n2,3,1.5\n", "'timestamp' is '1.5' in data row 2; .*whole"),
        ("user_id,item_id,timestamp\n1,2,3\n2,3,noon\n", "'timestamp' is 'noon', not .* in data row 2"),
        ("user_id,item_id,timestamp\n1,2,noon\n2,3,4\n", "'timestamp' is 'noon', not .* in data row 1"),
        ("user_id,item_id,timestamp\n1,2,2020-01-01\n2,3,4\n", "'timestamp' is '4', not .* in data row 2"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        read_log(written(tmp_path, text))
    assert "log.csv" in str(raised.value)


def test_the_first_bad_rating_of_many_is_named(tmp_path: Path) -> None:
    values = ["1"] * 1000
    values[617] = values[800] = "x"
    text = "".join(f"{row},{row},{value}\n" for row, value in enumerate(values))
    with pytest.raises(DataError, match="data row 618"):
        read_log(written(tmp_path, f"user_id,item_id,rating\n{text}"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user_id,item_id\n1,caf\u00e9\n".encode("latin-1"), "not UTF-8 text: byte 0xe9 at position 21; .*iconv"),
        ("user_id,item_id\n1,2\n".encode("utf-16"), "not UTF-8"),
        ("user_id,item_id\n1,2\n".encode("utf-16-le"), "NUL byte at position 1"),
        (bytes(range(256)) * 20, "not UTF-8"),
        (gzip.compress(b"user_id,item_id\n1,2\n", mtime=0), "not UTF-8.*proper suffix"),
        (b"\x01\x02\x03 garbage", "no column 'user_id'"),
    ],
)
def test_bad_bytes(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_log(written(tmp_path, content))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-6],  # truncated
        lambda content: content[:40] + b"\x00\xff\x00" + content[43:],  # corrupt
        lambda content: b"user_id,item_id\n",  # no gzip at all
        lambda content: content + b"trailing garbage",
    ],
)
@pytest.mark.parametrize("name", ["log.csv.gz", "log.txt.gz"])
def test_damaged_gzip(tmp_path: Path, damage: Any, name: str) -> None:
    path = written(tmp_path, "user_id,item_id\n" + "".join(f"{row * 77 % 1013},{row}\n" for row in range(500)), name)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match="damaged or truncated gzip"):
        read_log(path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: content[:-50], "no readable Parquet"),
        (lambda content: content[:100] + b"\xff" * 500 + content[600:], "no readable Parquet"),
        (lambda content: b"user_id,item_id\n1,2\n", "no readable Parquet"),
    ],
)
def test_damaged_parquet(tmp_path: Path, damage: Any, message: str) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"user_id": range(5000), "item_id": range(5000)}), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        read_log(path)


def test_parquet_with_other_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"userId": [1, 2], "item_id": [1, 2]}), tmp_path / "log.parquet")
    with pytest.raises(DataError, match=r"no column 'user_id', found: 'userId', .*did you mean 'userId'"):
        read_log(tmp_path / "log.parquet")


# ---------------------------------------------------------------- bad paths and options


def test_a_missing_file_is_answered_with_a_close_name(tmp_path: Path) -> None:
    written(tmp_path, "", "ratings.csv")
    with pytest.raises(DataError, match=r"rating\.csv does not exist.*did you mean 'ratings\.csv'"):
        read_log(tmp_path / "rating.csv")
    with pytest.raises(DataError, match="does not exist"):
        read_log(tmp_path / "nowhere" / "rating.csv")


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read_log(tmp_path)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown suffix '\.xlsx'; known: \.csv"):
        read_log(written(tmp_path, "", "log.xlsx"))


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


def test_min_rating_above_everything(tmp_path: Path) -> None:
    path = written(tmp_path, "user_id,item_id,rating\n1,2,3\n2,3,4\n")
    with pytest.raises(DataError, match=r"no rating of at least 4\.5 \(the largest is 4\)"):
        read_log(path, min_rating=4.5)


def test_one_column_cannot_play_two_roles() -> None:
    with pytest.raises(DataError, match="'x' cannot be user and item"):
        Columns(user="x", item="x")


# ---------------------------------------------------------------- bad LightGCN text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("0\n1\n", "holds no interactions"),
        ("0 1\n1 -2\n", "line 2: identifier -2 is negative"),
        ("0 1\r\n\r\n1 2.5\r\n", "line 3: '2.5' is not an integer"),
        ("user_id,item_id\n1,2\n", r"line 1: 'user_id,item_id' is not an integer; .*\.csv"),
        ("0 1\n1 2147483648\n", "line 2: identifier 2147483648 is above 2147483647"),
        (f"0 1\n1 2\n2 {'9' * 30}\n", f"line 3: identifier {'9' * 30} is above"),
        ("0 1 2\n", "has 1 user"),
        ("0 1\n1 1\n", "has 1 item"),
        ("0 1\n1 é\n", "line 2: 'é' is not an integer"),
        (b"0 1\n1 \xff\n", "not UTF-8"),
    ],
)
def test_bad_lightgcn_text(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_log(written(tmp_path, text, "log.txt"))


def test_lightgcn_text_has_no_columns_to_name(tmp_path: Path) -> None:
    path = written(tmp_path, "0 1\n1 2\n", "log.txt")
    with pytest.raises(DataError, match="no named columns"):
        read_log(path, user_column="user")
    with pytest.raises(DataError, match="--min-rating needs"):
        read_log(path, min_rating=3)


def test_the_largest_row_number_is_accepted(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "0 2147483647\n0001 2\n", "log.txt"))
    assert pairs(log) == [(0, 2147483647), (1, 2)]


# ---------------------------------------------------------------- bad frames


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"user_id": [1]}, r"builtins\.dict is no frame"),
        (pa.chunked_array([[1, 2]]), "cannot be read as an Arrow table"),
        (pd.DataFrame({"user_id": [1, "a"], "item_id": [1, 2]}), "cannot be read as an Arrow table"),
        (pd.DataFrame([[1, 2, 3]], columns=["user_id", "item_id", "item_id"]), "item_id"),
        (pa.table([[1], [2], [3]], names=["user_id", "item_id", "item_id"]), "2 columns named 'item_id'"),
        (pl.DataFrame({"user": [1, 2], "item_id": [1, 2]}), "the frame has no column 'user_id'.*did you mean 'user'"),
        (pl.DataFrame({"user_id": [], "item_id": []}), "holds no interactions"),
        (pl.DataFrame({"user_id": [1, None], "item_id": [1, 2]}), "'user_id' is empty in data row 2"),
        (pd.DataFrame({"user_id": [1, None], "item_id": [1, 2]}), "'user_id' is empty in data row 2"),
        (pl.DataFrame({"user_id": [None, None], "item_id": [1, 2]}), "'user_id' is empty in data row 1"),
        (pl.DataFrame({"user_id": ["a", ""], "item_id": [1, 2]}), "'user_id' is empty in data row 2"),
        (pl.DataFrame({"user_id": [1.0, 1.5], "item_id": [1, 2]}), "'user_id' is 1.5, which is no exact integer"),
        (pl.DataFrame({"user_id": [1.0, 1e17], "item_id": [1, 2]}), "no exact integer"),
        (pl.DataFrame({"user_id": [1.0, float("nan")], "item_id": [1, 2]}), "'user_id' is nan"),
        (pl.DataFrame({"user_id": [1, -1], "item_id": [1, 2]}), "'user_id' is -1, a negative identifier"),
        (pl.DataFrame({"user_id": [1.0, -1.0], "item_id": [1, 2]}), "'user_id' is -1.0, a negative identifier"),
        (pa.table({"user_id": pa.array([1, 2**63], pa.uint64()), "item_id": [1, 2]}), "above .* in data row 2"),
        (pl.DataFrame({"user_id": [True, False], "item_id": [1, 2]}), "type bool; allowed are integers and strings"),
        (pa.table({"user_id": [1, 2], "item_id": [1, 2], "rating": [[1], [2]]}), "allowed are numbers"),
        (pl.DataFrame({"user_id": [1, 2], "item_id": [1, 2], "rating": [1.0, float("inf")]}), "'rating' is inf"),
        (pl.DataFrame({"user_id": [1, 2], "item_id": [1, 2], "rating": [1, None]}), "'rating' is empty in data row 2"),
        (pl.DataFrame({"user_id": [1, 2], "item_id": [1, 2], "timestamp": [1.0, 1.5]}), "'timestamp' is 1.5"),
        (pl.DataFrame({"user_id": [1, 2], "item_id": [1, 2], "timestamp": [True, False]}), "integers, dates and"),
        (pa.table({"user_id": [1, 2], "item_id": [1, 2], "timestamp": pa.array([1, 2**63], pa.uint64())}), "below"),
        (pl.DataFrame({"user_id": [1, 1], "item_id": [1, 2]}), "the frame has 1 user"),
    ],
)
def test_bad_frames(frame: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_frame(frame)


def test_text_that_is_not_utf8_in_a_frame() -> None:
    broken = pa.array([b"a", b"\xff"]).view(pa.string())
    with pytest.raises(DataError, match="'user_id' is damaged or not UTF-8"):
        read_frame(pa.table({"user_id": broken, "item_id": [1, 2]}))
