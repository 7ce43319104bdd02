"""RecBole `.inter` files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from caged.data import Columns, read_log
from caged.errors import DataError

HEADER = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
ROWS = "10\tb\t4.0\t978302109.0\n9\ta\t3.5\t978302110\n"


def written(folder: Path, text: str, name: str = "log.inter") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["log.inter", "log.inter.gz", "LOG.INTER"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_typed_header_and_tabs(tmp_path: Path, name: str, line_end: str) -> None:
    log = read_log(written(tmp_path, (HEADER + ROWS).replace("\n", line_end), name))
    assert log.to_arrow().to_pylist() == [
        {"user_id": 9, "item_id": "a", "rating": 3.5, "timestamp": 978302110},
        {"user_id": 10, "item_id": "b", "rating": 4.0, "timestamp": 978302109},
    ]


@pytest.mark.parametrize("separator", [",", ";", "|", " "])
def test_the_separator_is_what_the_header_uses(tmp_path: Path, separator: str) -> None:
    log = read_log(written(tmp_path, (HEADER + ROWS).replace("\t", separator)))
    assert log.user_ids.values.to_pylist() == [9, 10]
    assert log.rating is not None


def test_names_are_given_without_their_types(tmp_path: Path) -> None:
    path = written(tmp_path, "uid:token\tiid:token\tgenres:token_seq\n1\t2\tx y\n3\t4\tz\n")
    log = read_log(path, user_column="uid", item_column="iid", columns=Columns(keep=("genres",)))
    assert log.to_arrow().to_pylist()[0] == {"user_id": 1, "item_id": 2, "genres": "x y"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user_id\titem_id\n1\t2\n", r"header field 'user_id' has no type; .*user_id:token.*\.tsv"),
        ("user_id:token\titem_id\n1\t2\n", "header field 'item_id' has no type"),
        ("user_id:token\titem_id:word\n1\t2\n", "header field 'item_id:word' has no type"),
        ("uid:token\titem_id:token\n1\t2\n", r"no column 'user_id', found: 'uid', 'item_id'"),
        ("user_id:token\tuser_id:token\n1\t2\n", "2 columns named 'user_id'"),
        (HEADER, "holds no interactions"),
        (HEADER + "1\t2\t3\n", r"line 2: 3 fields, expected 4"),
        (HEADER + "1\t2\tgood\t4\n", "'rating' is 'good', not a number, in data row 1"),
        ("\n\n" + HEADER + ROWS, "has no type"),
        ("", "is empty"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_log(written(tmp_path, text))
