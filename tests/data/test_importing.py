"""Import into the canonical folder: the same interactions as `read_log`, however the memory is cut."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.data import Columns, Interactions, importing, read_log, sorted_rows
from caged.data.importing import import_log
from caged.data.readers import batches
from caged.data.readers import text as textformats
from caged.data.readers.canonical import read_canonical
from caged.data.times import TICKS
from caged.errors import CagedError, DataError, RunError

pytest.importorskip("polars")

FILES = {"interactions.parquet", "users.parquet", "items.parquet", "manifest.json"}


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that a tiny log needs many tables, blocks and buckets."""
    monkeypatch.setattr(batches, "TABLE_ROWS", 16)
    monkeypatch.setattr(sorted_rows, "BUCKET_BYTES", 200)
    monkeypatch.setattr(sorted_rows, "HASHED_ROWS", 5)
    monkeypatch.setattr(importing, "ROW_GROUP", 7)
    monkeypatch.setattr(textformats, "CSV_BLOCK", 256)
    monkeypatch.setattr(textformats, "CHUNK", 61)


def a_log(rows: int = 400) -> pa.Table:
    """Three of four rows are repeats; equal timestamps are frequent."""
    generator = np.random.default_rng(3)
    return pa.table(
        {
            "user_id": [f"{user} \u00fc,\n" for user in generator.integers(0, 12, rows)],
            "item_id": generator.integers(0, 9, rows) * 10,
            "rating": generator.integers(1, 6, rows) / 2,
            "timestamp": generator.integers(0, 4, rows),
            "source": generator.choice(["policy", "explore"], rows).tolist(),
        }
    )


def as_csv(table: pa.Table, path: Path) -> Path:
    from pyarrow import csv

    csv.write_csv(table, path)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def equal(one: Interactions, other: Interactions) -> bool:
    return one.to_arrow().equals(other.to_arrow()) and one.user_ids == other.user_ids and one.item_ids == other.item_ids


# ---------------------------------------------------------------- the result


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.parquet"])
@pytest.mark.usefixtures("small_memory")
def test_equals_reading_the_file_at_once(tmp_path: Path, name: str) -> None:
    path, out = tmp_path / name, tmp_path / "imported"
    if name.endswith(".parquet"):
        pq.write_table(a_log(), path)
    else:
        as_csv(a_log(), path)
    columns = Columns(keep=("source",))
    manifest = import_log([path], out, columns=columns)
    expected = read_log(path, columns=columns)
    assert equal(read_canonical(out), expected)
    assert equal(read_log(out, columns=columns), expected)
    assert read_log(out).columns == {}  # only what is asked for
    assert read_log(out).merged == expected.merged == manifest["merged_duplicates"]
    assert manifest["fingerprint"] == expected.fingerprint
    assert (manifest["interactions"], manifest["users"], manifest["items"]) == (len(expected), 12, 9)
    assert manifest == json.loads((out / "manifest.json").read_text())
    assert {path.name for path in out.iterdir()} == FILES
    assert {path.name for path in tmp_path.iterdir()} == {name, "imported"}


def moments(log: pa.Table, unit: str) -> pa.Table:
    """The times as moments, with fractions of a second in the last rows only."""
    ticks = np.array(log["timestamp"]) * TICKS[unit]
    ticks[-50:] += np.arange(50)
    return log.set_column(log.column_names.index("timestamp"), "timestamp", pa.array(ticks).cast(pa.timestamp(unit)))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
@pytest.mark.usefixtures("small_memory")
def test_times_below_a_second_are_imported_in_full(tmp_path: Path, name: str, unit: str) -> None:
    log = moments(a_log(), unit)
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(log, path)
    else:
        as_csv(log, path)
    import_log([path], tmp_path / "out")
    imported = read_canonical(tmp_path / "out")
    assert imported.timestamp_unit == unit
    assert equal(imported, read_log(path))


@pytest.mark.usefixtures("small_memory")
def test_files_with_times_in_different_units_are_one_log(tmp_path: Path) -> None:
    parts = [moments(a_log().slice(start, 100), unit) for start, unit in enumerate(("s", "us", "ms"))]
    paths = [tmp_path / f"{number}.parquet" for number in range(len(parts))]
    for part, path in zip(parts, paths, strict=True):
        pq.write_table(part, path)
    finest = parts[1].schema
    pq.write_table(pa.concat_tables([part.cast(finest) for part in parts]), tmp_path / "whole.parquet")
    import_log(paths, tmp_path / "out")
    assert equal(read_canonical(tmp_path / "out"), read_log(tmp_path / "whole.parquet"))


@pytest.mark.usefixtures("small_memory")
def test_a_zone_in_some_of_the_times_is_refused_wherever_the_file_is_cut(tmp_path: Path) -> None:
    lines = [f"{row},{row % 7},2024-01-01 00:00:{row % 60:02d}{'Z' * (row >= 64)}" for row in range(128)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["user_id,item_id,timestamp", *lines]))
    for read in (lambda: read_log(path), lambda: import_log([path], tmp_path / "out")):
        with pytest.raises(DataError, match="in data row 65"):
            read()


@pytest.mark.usefixtures("small_memory")
def test_odd_identifiers_are_refused_or_names(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user_id,item_id\n" + "".join(f"{row},{row % 7}\n" for row in range(100)) + "NaN,3\n-4,1\n")
    with pytest.raises(DataError, match=r"is 'NaN', .* in data row 101, line 102 of the file"):
        import_log([path], tmp_path / "out")
    text = Columns(ids="text")
    import_log([path], tmp_path / "out", columns=text)
    assert equal(read_canonical(tmp_path / "out"), read_log(path, columns=text))


def test_an_import_with_integers_can_be_read_as_text(tmp_path: Path) -> None:
    path = as_csv(pa.table({"user_id": [9, 10, 10], "item_id": [2, 10, 2]}), tmp_path / "log.csv")
    import_log([path], tmp_path / "out")
    assert equal(read_log(tmp_path / "out", ids="text"), read_log(path, ids="text"))


@pytest.mark.usefixtures("small_memory")
def test_times_in_several_units_are_said(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    times = [1_700_000_000 * (1000 if row > 90 else 1) for row in range(100)]
    path.write_text("user_id,item_id,timestamp\n" + "".join(f"{n},{n % 7},{time}\n" for n, time in enumerate(times)))
    manifest = import_log([path], tmp_path / "out")
    assert "91 rows like seconds and 9 rows like milliseconds" in manifest["notes"][0]
    assert read_canonical(tmp_path / "out").notes == read_log(path).notes == tuple(manifest["notes"])


def test_the_tables_hold_rows_and_their_ids(tmp_path: Path) -> None:
    path = as_csv(pa.table({"user_id": [9, 10, 10], "item_id": ["b", "a", "b"]}), tmp_path / "log.csv")
    import_log([path], tmp_path / "out")
    tables = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in ("interactions", "users", "items")}
    assert tables["interactions"].schema.field("user").type == pa.int32()
    assert tables["interactions"].to_pydict() == {"user": [0, 1, 1], "item": [1, 0, 1]}
    assert tables["users"].to_pydict() == {"user": [0, 1], "user_id": [9, 10]}
    assert tables["items"].to_pydict() == {"item": [0, 1], "item_id": ["a", "b"]}


@pytest.mark.usefixtures("small_memory")
def test_several_files_are_one_log(tmp_path: Path) -> None:
    """The last row of a pair wins across files too, in the order in which they are given."""
    whole = a_log().drop(["timestamp", "source"])
    paths = [as_csv(whole.slice(start, 100), tmp_path / f"part-{start}.csv") for start in (0, 100, 200, 300)]
    as_csv(whole, tmp_path / "whole.csv")
    manifest = import_log(paths, tmp_path / "out")
    assert equal(read_canonical(tmp_path / "out"), read_log(tmp_path / "whole.csv"))
    assert [source["rows"] for source in manifest["sources"]] == [100] * 4
    import_log([tmp_path / "part-*.csv"], tmp_path / "matched")
    assert equal(read_canonical(tmp_path / "matched"), read_log(tmp_path / "whole.csv"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.txt", b"0 1 2\n4 2\n"),
        ("log.tsv", b"user_id\titem_id\n0\t1\n4\t2\n"),
        ("log.inter", b"user_id:token;item_id:token\n0;1\n4;2\n"),
        ("log.inter.gz", gzip.compress(b"user_id:token\titem_id:token\n0\t1\n4\t2\n", mtime=0)),
        ("log.csv", "user_id,item_id\r0,1\r4,2\r".encode("utf-8-sig")),
    ],
)
def test_every_format(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    import_log([tmp_path / name], tmp_path / "out")
    assert equal(read_canonical(tmp_path / "out"), read_log(tmp_path / name))


IDS = st.one_of(
    st.sampled_from(["0", "7", "007", "-0", "12", "x", "1.0", "\u00e9", "\U0001f40d", "n.a.", "a\tb", "\u2028", '"'])
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(IDS, IDS, st.integers(0, 2)), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 2)), max_size=10),
)
def test_identifiers_of_any_kind_in_two_files(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str, int]], numbers: list[tuple[int, int, int]]
) -> None:
    """Text in one file and integers in another: as if all had been in one CSV file."""
    folder = tmp_path_factory.mktemp("kinds")
    names = ("user_id", "item_id", "timestamp")
    texts = [*texts, ("0", "0", 0), ("7", "7", 0)]

    def table(rows: list[Any]) -> pa.Table:
        return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})

    paths = [as_csv(table(texts), folder / "texts.csv")]
    if numbers:
        pq.write_table(table(numbers), folder / "numbers.parquet")
        paths.append(folder / "numbers.parquet")
    whole = [*texts, *((str(user), str(item), time) for user, item, time in numbers)]
    expected = read_log(as_csv(table(whole), folder / "whole.csv"))
    manifest = import_log(paths, folder / "out")
    assert equal(read_canonical(folder / "out"), expected)
    assert manifest["fingerprint"] == expected.fingerprint


def test_text_in_parquet_stays_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user_id": ["9", "10"], "item_id": [1, 2]}), tmp_path / "log.parquet")
    import_log([tmp_path / "log.parquet"], tmp_path / "out")
    assert read_canonical(tmp_path / "out").user_ids.values.to_pylist() == ["10", "9"]


def test_filters_apply_to_an_imported_log(tmp_path: Path) -> None:
    path = as_csv(a_log(), tmp_path / "log.csv")
    import_log([path], tmp_path / "out")
    options: dict[str, Any] = {"min_rating": 1.5, "min_user_interactions": 4, "min_item_interactions": 4}
    assert equal(read_log(tmp_path / "out", **options), read_log(path, **options))


# ---------------------------------------------------------------- what is refused, without a trace


BAD = {
    "no header": (b"1,2\n3,4\n", "header line"),
    "only a header": (b"user_id,item_id\n", "holds no interactions"),
    "empty": (b"", "is empty"),
    "ragged": (b"user_id,item_id\n1,2\n3,4,5\n", "line 3: 3 fields, expected 2 as in the header"),
    "open quote": (b'user_id,item_id\n1,2\n"3,4\n5,6\n', "line 3: 1 fields, expected 2 .*or quote fields"),
    "latin1": (b"user_id,item_id\n1,\xe9\n", "not UTF-8 text: byte 0xe9 at position 18"),
    "cut character": (b"user_id,item_id\n1,\xc3", "not UTF-8 text: byte 0xc3 at position 18"),
    "NUL": (b"user_id,item_id\n1,2\n\x00,4\n", "NUL byte at position 20"),
    "one user": (b"user_id,item_id\n1,2\n1,3\n", "has 1 user"),
    "negative": (
        b"user_id,item_id\n-1,2\n1,3\n",
        "'user_id' is '-1', a negative identifier, in data row 1, line 2 of ",
    ),
    "above int64": (
        b"user_id,item_id\n1,2\n99999999999999999999,3\n",
        "'99999999999999999999', above .* in data row 2, line 3 of ",
    ),
    "no rating": (b"user_id,item_id,rating\n1,2,3\n2,3,\n", "'rating' is empty in data row 2"),
    "late bad rating": (
        b"user_id,item_id,rating\n" + b"1,2,3\n" * 99 + b"1,2,x\n",
        "'rating' is 'x', not a number, in data row 100",
    ),
    "mixed times": (
        b"user_id,item_id,timestamp\n" + b"1,2,3\n" * 16 + b"1,2,2020-01-01\n" * 16,
        "'timestamp' is '2020-01-01', not a timestamp in the form of the other rows, in data row 17",
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("small_memory")
def test_bad_logs(tmp_path: Path, case: str) -> None:
    content, message = BAD[case]
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        import_log([tmp_path / "log.csv"], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize("case", ["ragged", "open quote", "above int64"])
@pytest.mark.usefixtures("small_memory")
def test_a_bad_line_is_told_as_if_the_file_were_read_at_once(tmp_path: Path, case: str) -> None:
    header, rows = BAD[case][0].split(b"\n", 1)
    good, bad = tmp_path / "good.csv", tmp_path / "more.csv"
    good.write_bytes(header + b"\n7,7\n8,8\n")
    bad.write_bytes(header + b"\n" + b"7,7\n\n" * 40 + rows)
    with pytest.raises(DataError) as at_once:
        read_log(bad)
    with pytest.raises(DataError) as streamed:
        import_log([good, bad], tmp_path / "out")
    assert str(streamed.value) == str(at_once.value)
    assert "line 8" in str(streamed.value)


def test_a_folder_of_part_files_is_one_log(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    table = a_log()
    for number, start in enumerate(range(0, len(table), 150)):
        pq.write_table(table.slice(start, 150), parts / f"part-{number:05}.parquet")
    (parts / "_SUCCESS").touch()
    manifest = import_log([parts], tmp_path / "out")
    assert [Path(source["file"]).name for source in manifest["sources"]] == [f"part-{n:05}.parquet" for n in range(3)]
    assert manifest["fingerprint"] == import_log([parts / "*.parquet"], tmp_path / "again")["fingerprint"]
    for imported in ("out", "again"):
        with pytest.raises(
            DataError, match=f"{imported} is imported already; train on it with --data .*{imported}, or"
        ):
            import_log([tmp_path / imported], tmp_path / "third")


def test_a_pattern_may_match_folders_of_part_files(tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / f"day={number}"
        folder.mkdir()
        (folder / "part-0.csv").write_text(f"user_id,item_id\n{number},{number}\n")
    patterns = {"folders": "day=*", "files": "day=*/part-*.csv", "both": "day=*/**"}
    found = {import_log([tmp_path / text], tmp_path / name)["fingerprint"] for name, text in patterns.items()}
    assert len(found) == 1


def test_a_folder_with_the_parts_of_a_split_is_no_log(tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv"):
        as_csv(a_log(), tmp_path / name)
    with pytest.raises(DataError, match=f"holds the parts of a split, .* give the file .* with --data {tmp_path}"):
        import_log([tmp_path], tmp_path / "out")


def test_damaged_files_leave_nothing(tmp_path: Path) -> None:
    compressed = gzip.compress(b"user_id,item_id\n" + b"".join(b"%d,%d\n" % (row, row) for row in range(5000)))
    (tmp_path / "log.csv.gz").write_bytes(compressed[:-20])
    pq.write_table(a_log(), tmp_path / "log.parquet")
    (tmp_path / "log.parquet").write_bytes((tmp_path / "log.parquet").read_bytes()[:-20])
    for name, message in (("log.csv.gz", "damaged or truncated gzip"), ("log.parquet", "not a readable Parquet")):
        with pytest.raises(DataError, match=message):
            import_log([tmp_path / name], tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"log.csv.gz", "log.parquet"}


def test_files_must_have_the_same_columns(tmp_path: Path) -> None:
    one = as_csv(pa.table({"user_id": [1, 2], "item_id": [1, 2], "rating": [1, 2]}), tmp_path / "one.csv")
    two = as_csv(pa.table({"user_id": [1, 2], "item_id": [1, 2]}), tmp_path / "two.csv")
    with pytest.raises(DataError, match="has the columns user, item, the files before it user, item, rating;"):
        import_log([one, two], tmp_path / "out")


def test_bad_names(tmp_path: Path) -> None:
    path = as_csv(a_log(), tmp_path / "log.csv")
    (tmp_path / "nothing").mkdir()
    cases: list[tuple[list[Path], str]] = [
        ([tmp_path / "none.csv"], "does not exist"),
        ([tmp_path / "none*.csv"], "no file matches"),
        ([path, tmp_path / "log*"], "is given twice"),
        ([path, tmp_path], "is given twice"),
        ([tmp_path / "nothing"], "holds no files"),
        ([], "no log is given"),
    ]
    for logs, message in cases:
        with pytest.raises(DataError, match=message):
            import_log(logs, tmp_path / "out")
    with pytest.raises(DataError, match="'item' cannot be kept"):
        import_log([path], tmp_path / "out", columns=Columns(keep=("item",)))
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "file").touch()
    with pytest.raises(RunError, match="not empty"):
        import_log([path], tmp_path / "filled")


def test_kept_columns_are_plain(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user_id": [1, 2], "item_id": [1, 2], "tags": [[1], [2]]}), tmp_path / "log.parquet")
    with pytest.raises(DataError, match="'tags' has type list"):
        import_log([tmp_path / "log.parquet"], tmp_path / "out", columns=Columns(keep=("tags",)))


def test_without_polars_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(CagedError, match=r"needs the package polars.*pip install 'caged-rec\[data\]'"):
        import_log([tmp_path / "log.csv"], tmp_path / "out")


# ---------------------------------------------------------------- damaged folders


def test_a_damaged_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    import_log([as_csv(a_log(), tmp_path / "log.csv")], out)
    whole = {path.name: path.read_bytes() for path in out.iterdir()}
    shuffled = pq.read_table(out / "users.parquet").take(pa.array([1, 0, *range(2, 12)]))
    other = json.loads(whole["manifest.json"]) | {"interactions": 5}

    def written(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        return bytes(sink.getvalue())

    damages = [
        ("manifest.json", b"{", "not readable JSON"),
        ("manifest.json", b"[]", "not a manifest of format 1"),
        ("manifest.json", json.dumps(other).encode(), "rows, manifest.json says 5"),
        ("interactions.parquet", whole["interactions.parquet"][:-9], "cannot be read"),
        ("users.parquet", b"", "cannot be read"),
        ("users.parquet", whole["items.parquet"], "cannot be read"),
        ("users.parquet", written(shuffled), "not sorted by user_id"),
        ("items.parquet", written(pa.table({"item_id": [1]})), "item rows span"),
    ]
    for name, content, message in damages:
        (out / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_log(out)
        (out / name).write_bytes(whole[name])
    with pytest.raises(DataError, match="leave the column options out"):
        read_log(out, user_column="u")
    with pytest.raises(DataError, match=r"'source'.*--keep source"):
        read_log(out, columns=Columns(keep=("source",)))
