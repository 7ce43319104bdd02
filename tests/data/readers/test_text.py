"""Text: CSV, TSV and the LightGCN format, good and bad."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.data import read_log
from caged.data.readers import text as textformats
from caged.errors import DataError
from tests.data.readers.written import pairs, rows, written

IDENTIFIERS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


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


@settings(deadline=None)  # writing files takes as long as the machine is busy
@given(st.lists(st.tuples(IDENTIFIERS, IDENTIFIERS)))
def test_csv_round_trip_of_any_text(
    tmp_path_factory: pytest.TempPathFactory, given_pairs: list[tuple[str, str]]
) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    wanted = [*given_pairs, ("a user", "an item"), ("another user", "another item")]  # a log needs two of each
    lines = "".join(f"{quoted(user)},{quoted(item)}\n" for user, item in wanted)
    path = written(tmp_path_factory.mktemp("csv"), f"user_id,item_id\n{lines}")
    assert set(pairs(read_log(path, ids="text"))) == set(wanted)


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
        (
            f"user_id,item_id\n1,2\n{2**63},4\n",
            f"'user_id' is '{2**63}', above .* in data row 2, line 3 .*letter",
        ),
        ("user_id,item_id\n1,2\n1,3\n", "has 1 user; recommending needs"),
        ("user_id,item_id\n1,2\n2,2\n", "has 1 item; recommending needs"),
        ("user_id,item_id,rating\n1,2,3\n2,3,good\n", "'rating' is 'good', not a number, in data row 2"),
        ("user_id,item_id,rating\n1,2,3\n2,3,\n", "'rating' is empty in data row 2"),
        (
            "user_id,item_id,rating\n1,2,3\n2,3,nan\n",
            "'rating' is 'nan' in data row 2, line 3 .*finite",
        ),
        (
            "user_id,item_id,rating\n1,2,-inf\n2,3,1\n",
            "'rating' is '-inf' in data row 1, line 2 .*finite",
        ),
        ("user_id,item_id,timestamp\n1,2,3\n2,3,\n", "'timestamp' is empty in data row 2"),
        (
            "user_id,item_id,timestamp\n1,2,3\n2,3,1.5\n",
            "'timestamp' is '1.5' in data row 2, line 3 .*whole",
        ),
        ("user_id,item_id,timestamp\n1,2,3\n2,3,noon\n", "'timestamp' is 'noon', not .* in data row 2"),
        ("user_id,item_id,timestamp\n1,2,noon\n2,3,4\n", "'timestamp' is 'noon', not .* in data row 1"),
        ("user_id,item_id,timestamp\n1,2,2020-01-01\n2,3,4\n", "'timestamp' is '4', not .* in data row 2"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        read_log(written(tmp_path, text))
    assert "log.csv" in str(raised.value)


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


def test_a_message_names_the_line_of_the_row(tmp_path: Path) -> None:
    """Blank lines and line breaks in fields are lines of the file and no rows of the log."""
    path = written(tmp_path, 'note,user_id,item_id\n"two\nlines",1,2\n\n,3,4\n,None,5\n')
    with pytest.raises(DataError, match=r"'user_id' is 'None', .* in data row 3, line 6 of the file"):
        read_log(path)
    inter = written(tmp_path, "user_id:token item_id:token\n1 2\nnan 4\n", "log.inter")
    with pytest.raises(DataError, match="in data row 2, line 3 of the file"):
        read_log(inter)
    packed = written(tmp_path, "user_id\titem_id\n\n1\t2\n3\tNULL\n", "log.tsv.gz")
    with pytest.raises(DataError, match="in data row 2, line 4 of the file"):
        read_log(packed)


# ---------------------------------------------------------------- bad LightGCN text


RATED = [f"{user} {user * 7 % 50} {user % 5 + 1}" for user in [*range(20), 3, 4, 5]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([f"{line} 88125{place:04d}" for place, line in enumerate(RATED)], "`user item rating time` per line"),
        ([f"{line} 88125{place:07d}" for place, line in enumerate(RATED)], "`user item rating time` per line"),
        (RATED, r"`user item rating` per line \(such as `0 0 1`\), .* header user_id,item_id,rating"),
        (["1 5 881250949", "2 6 881250950"], "`user item time` per line"),
        (["1\t5\t3\t881250949"], "`user item rating time` per line"),
    ],
)
def test_ratings_are_no_lists_of_items(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_log(written(tmp_path, "\n".join(lines), "log.txt"))


@pytest.mark.parametrize(
    "lines",
    [
        [f"{user} {user % 9} {user % 5 + 10}" for user in range(20)],
        [f"{user} {user * 7 % 50} {user % 5}" for user in range(20)],  # one line per user
        [f"{user} 1 2 881250949" if user % 2 else f"{user} 3" for user in range(20)],
        RATED[:8],
    ],
)
def test_lists_of_items_that_look_a_little_like_ratings(tmp_path: Path, lines: list[str]) -> None:
    assert len(read_log(written(tmp_path, "\n".join(lines), "log.txt"))) >= 16


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
