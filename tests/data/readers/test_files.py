"""Files and frames: what is accepted, and the sentence for everything that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.data import Interactions, read_frame, read_log
from caged.errors import DataError
from tests.data.readers.written import rows, written

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.mark.parametrize("name", ["log.parquet", "log.pq"])
def test_parquet(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"user_id": ["b", "a"], "item_id": [1, 2], "more": [0, 0]}), tmp_path / name)
    assert rows(read_log(tmp_path / name)) == [{"user_id": "a", "item_id": 2}, {"user_id": "b", "item_id": 1}]


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


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: content[:-50], "not a readable Parquet"),
        (lambda content: content[:100] + b"\xff" * 500 + content[600:], "not a readable Parquet"),
        (lambda content: b"user_id,item_id\n1,2\n", "not a readable Parquet"),
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


def test_min_rating_above_everything(tmp_path: Path) -> None:
    path = written(tmp_path, "user_id,item_id,rating\n1,2,3\n2,3,4\n")
    with pytest.raises(DataError, match=r"no rating of at least 4\.5 \(the largest is 4\)"):
        read_log(path, min_rating=4.5)


# ---------------------------------------------------------------- bad frames


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"user_id": [1]}, r"builtins\.dict is not a frame"),
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
        (pl.DataFrame({"user_id": [1.0, 1.5], "item_id": [1, 2]}), "'user_id' is 1.5, which is not an exact integer"),
        (pl.DataFrame({"user_id": [1.0, 1e17], "item_id": [1, 2]}), "not an exact integer"),
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
