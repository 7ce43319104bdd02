"""Tables of groups in every format, and the sentence for each that makes no groups."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from caged.data.readers.columns import Columns
from caged.data.readers.group_tables import GroupTable, Kind, read_groups
from caged.errors import ConfigError, DataError
from tests.data.readers.written import written

ROWS = {"item_id": [3, 1, 2], "genre": ["Drama", "Action", "Drama"], "year": [1999, 2001, 2001]}


def groups(found: GroupTable, family: int = 0) -> dict[object, list[str]]:
    """By identifier."""
    one = found.families[family]
    return {
        name: [one.groups[label] for label in labels if label >= 0]
        for name, labels in zip(found.ids.values.to_pylist(), one.labels.T.tolist(), strict=True)
    }


def read(source: object, kind: Kind = "item", separator: str | None = None) -> GroupTable:
    return read_groups(source, kind, Columns(), separator)


def csv(folder: Path, text: str, name: str = "groups.csv") -> Path:
    return written(folder, text, name)


def test_all_formats_say_the_same(tmp_path: Path) -> None:
    table = pa.table(ROWS)
    pq.write_table(table, tmp_path / "groups.parquet")
    pyarrow.feather.write_feather(table, str(tmp_path / "groups.feather"))
    lines = [json.dumps(row) for row in table.to_pylist()]
    files = [
        csv(tmp_path, "item_id,genre,year\n3,Drama,1999\n1,Action,2001\n2,Drama,2001\n"),
        csv(tmp_path, "genre\titem_id\tyear\nDrama\t3\t1999\nAction\t1\t2001\nDrama\t2\t2001\n", "groups.tsv"),
        csv(tmp_path, "\n".join(lines) + "\n", "groups.jsonl"),
        tmp_path / "groups.parquet",
        tmp_path / "groups.feather",
    ]
    for source in [*files, table, table.to_pandas()]:
        found = read(source)
        assert [family.name for family in found.families] == ["genre", "year"]
        assert groups(found) == {1: ["Action"], 2: ["Drama"], 3: ["Drama"]}
        assert groups(found, 1) == {1: ["2001"], 2: ["2001"], 3: ["1999"]}
        assert found.notes == ()


def test_columns_are_named_behind_the_file(tmp_path: Path) -> None:
    path = csv(tmp_path, "item_id,genre,year\n3,Drama,1999\n1,Action,2001\n")
    assert [family.name for family in read(f"{path}:year").families] == ["year"]
    assert [family.name for family in read(f"{path}:year, genre").families] == ["year", "genre"]
    odd = csv(tmp_path, "item_id,kind\n1,a\n", "a:b.csv")
    assert [family.name for family in read(str(odd)).families] == ["kind"]
    with pytest.raises(DataError, match=r"has no column 'gener', found: .*did you mean 'genre'"):
        read(f"{path}:gener")
    with pytest.raises(ConfigError, match="names an empty column"):
        read(f"{path}:")


def test_identifiers_are_named_as_in_the_logs_or_as_usual(tmp_path: Path) -> None:
    named = Columns().named(user="reader", item="book")
    for text in ("reader,age\n1,old\n", "user_id,age\n1,old\n"):
        found = read_groups(csv(tmp_path, text), "user", named)
        assert groups(found) == {1: ["old"]}
    known = read(csv(tmp_path, "movieId,title,genre\n1,Alien,Horror\n"))
    assert groups(known) == {1: ["Horror"]}
    assert "'movieId' was taken for the items by its name" in known.notes[0]
    with pytest.raises(DataError, match=r"has no column 'user_id', found: 'age'.*--user-column"):
        read(csv(tmp_path, "age\nold\n"), "user")


def test_several_groups_of_one_item(tmp_path: Path) -> None:
    path = csv(tmp_path, "item_id,genres\n1,Action| Comedy\n2,Comedy|\n3,\n")
    assert groups(read(path, separator="|")) == {1: ["Action", "Comedy"], 2: ["Comedy"], 3: []}
    lists = pa.table({"item_id": [1, 2, 3], "genres": [["Comedy", "Action", "Comedy"], [], None]})
    assert groups(read(lists)) == {1: ["Action", "Comedy"], 2: [], 3: []}
    untold = read(path)
    assert groups(untold)[1] == ["Action| Comedy"]
    (note,) = untold.notes
    assert note == f"{path}: 'Action| Comedy' in column 'genres' is one group; --group-separator '|' makes it several."


def test_values_of_other_types() -> None:
    table = pa.table(
        {
            "user_id": ["a", "b", "c"],
            "age": [25.0, float("nan"), 18.0],  # a frame's way with integers and missing values
            "member": [True, False, None],
            "level": pa.array(["low", "high", "low"]).dictionary_encode(),
            "score": [0.5, 1.0, None],
        }
    )
    found = read(table, "user")
    assert [groups(found, place) for place in range(4)] == [
        {"a": ["25"], "b": [], "c": ["18"]},
        {"a": ["true"], "b": ["false"], "c": []},
        {"a": ["low"], "b": ["high"], "c": ["low"]},
        {"a": ["0.5"], "b": ["1"], "c": []},
    ]


def test_rows_about_one_item_have_to_agree(tmp_path: Path) -> None:
    agree = csv(tmp_path, "item_id,genre\n1,Drama\n2,Noir\n1,Drama\n2,\n")
    assert groups(read(agree)) == {1: ["Drama"], 2: ["Noir"]}
    with pytest.raises(DataError, match="item 1 has genre 'Drama' in one row and 'Noir' in another; keep one row per"):
        read(csv(tmp_path, "item_id,genre\n1,Noir\n2,Noir\n1,Drama\n"))


def many(count: int, text: str = "value {}") -> pa.Table:
    return pa.table({"item_id": range(count), "kind": [text.format(number) for number in range(count)]})


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (many(51), r"holds 51 different values \(such as 'value 0'\).*at most 50 groups.*merge the rare ones$"),
        (pa.table({"item_id": range(60), "kind": range(60)}), "holds 60 different numbers.*cut them into bands first"),
        (pa.table({"item_id": [1, 2], "kind": ["", None]}), "holds no value; choose another column"),
        (pa.table({"item_id": [1], "kind": [{"a": 1}]}), "has type struct.*groups are text"),
        (pa.table({"item_id": [1], "title": ["Alien"]}), "has no column but 'item_id', found: 'item_id', 'title'"),
        (pa.table({"item_id": pa.array([], pa.int64()), "kind": pa.array([], pa.string())}), "holds no items"),
        (pa.table({"item_id": [1, None], "kind": ["a", "b"]}), "column 'item_id' is empty in data row 2"),
        (pa.table([pa.array([1]), pa.array(["a"]), pa.array(["b"])], ["item_id", "kind", "kind"]), "2 columns named"),
    ],
)
def test_tables_that_make_no_groups(table: pa.Table, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read(table)


def test_fifty_groups_are_not_too_many() -> None:
    assert len(read(many(50)).families[0].groups) == 50


def test_a_separator_is_suggested_where_it_helps(tmp_path: Path) -> None:
    kinds = [f"{a}|{b}" for a in "abcdefgh" for b in "stuvwxyz"]
    path = csv(tmp_path, "item_id,genres\n" + "".join(f"{n},{kind}\n" for n, kind in enumerate(kinds)))
    with pytest.raises(DataError, match=r"holds 64 different values .*say so with --group-separator '\|'$"):
        read(f"{path}:genres")
    assert len(read(path, separator="|").families[0].groups) == 16


def test_columns_that_nobody_named_are_left_out_and_told() -> None:
    table = many(60).append_column("half", pa.array(["a", "b"] * 30)).append_column("title", pa.array(["x"] * 60))
    found = read(table)
    assert [family.name for family in found.families] == ["half"]
    (note,) = found.notes
    assert note.startswith("the frame of item groups: column 'kind' holds 60 different values")
    assert note.endswith(": left out.")


@pytest.mark.parametrize("name", ["groups.npz", "groups.txt", "groups.xlsx", "none.csv"])
def test_files_that_are_no_tables(tmp_path: Path, name: str) -> None:
    if name != "none.csv":
        (tmp_path / name).write_bytes(b"1 2 3\n")
    with pytest.raises(DataError, match=r"is no table of item groups|unknown suffix|does not exist"):
        read(tmp_path / name)


@pytest.mark.parametrize("separator", ["", 1])
def test_separators_that_are_none(separator: object) -> None:
    with pytest.raises(ConfigError, match="the group separator is"):
        read_groups(pa.table(ROWS), "item", Columns(), separator)
