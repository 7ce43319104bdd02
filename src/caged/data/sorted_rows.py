"""A log of any size as sorted, distinct, numbered pairs, within bounded memory.

Memory holds the identifiers and one table of a few million rows; everything else is on disk:

1. read the files table by table, check every column, number the identifiers in order of appearance, spool;
2. sort the identifiers, which gives the rows, and deal the spool into buckets of neighbouring users;
3. sort every bucket by (user, item) and keep the latest row of every pair.
"""

from __future__ import annotations

import glob
import hashlib
import importlib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from caged.data.ids import Array, Arrivals, IdMap, is_text
from caged.data.interactions import arrow_times
from caged.data.readers.batches import is_text_table, tables_of
from caged.data.readers.canonical import OWN_COLUMNS
from caged.data.readers.columns import (
    Column,
    Columns,
    IdsAs,
    ids_of,
    integers_where_all,
    ratings_of,
    reject_negative,
    time_form,
    timestamps_of,
)
from caged.data.readers.files import check_counts, line_finder, reader_for
from caged.data.readers.folders import log_files
from caged.data.times import Times, TimeUnit, finest, mixed_units, units_like
from caged.errors import CagedError, DataError
from caged.progress import ProgressReport

if TYPE_CHECKING:
    import polars as pl

BUCKET_BYTES = 256 << 20  # of the spool; sorting needs a few times as much
MOST_BUCKETS = 256  # files that are open at once
HASHED_ROWS = 1 << 20
FAST = ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, eq=False)
class SortedRows:
    """What became of a log: the identifiers of its rows, and its pairs in buckets on disk."""

    users: Numbering
    items: Numbering
    schema: pa.Schema  # of `tables`
    rows: int  # of the log, duplicates included
    sources: list[dict[str, Any]]  # what the manifest says about each file
    notes: list[str]
    buckets: list[Path]

    def tables(self, progress: ProgressReport) -> Iterator[pa.Table]:
        """The distinct pairs in (user, item) order, a bucket of whole users at a time; buckets are used up."""
        for number, bucket in enumerate(self.buckets):
            progress("sorting", number / len(self.buckets))
            with ipc.open_file(pa.OSFile(str(bucket))) as file:
                table = file.read_all().combine_chunks()
            bucket.unlink()
            pairs = table.take(pa.array(_latest_of_pairs(table, len(self.items.ids))))
            del table  # so that memory holds one copy while the pairs are used
            yield pairs


def sort_log(
    logs: Iterable[str | Path],
    columns: Columns,
    work: Path,
    progress: ProgressReport,
    *,
    leave_out: Sequence[str] = (),
) -> SortedRows:
    """Read one or several files (names may hold wildcards, or be folders of part files) as one log; `work` is an empty
    folder for what is spooled.

    The columns in `leave_out` ("rating", "timestamp") are checked, but not kept.
    """
    needed_polars()
    paths = _files(logs)
    spool = _Spool(work / "spool.arrow", leave_out)
    sources = [spool.add(path, columns, progress) for path in paths]
    spool.close()
    where = ", ".join(map(str, paths[:3])) + (", ..." if len(paths) > 3 else "")
    users, items = (encoder.numbering(spool.first_place) for encoder in (spool.users, spool.items))
    check_counts(len(users.ids), len(items.ids), where)
    notes = list(mixed_units(columns.timestamp, spool.times_like))
    buckets = _deal(spool, users, items, work, progress)
    return SortedRows(users, items, spool.final_schema, spool.rows, sources, notes, buckets)


def needed_polars() -> Any:
    try:
        return importlib.import_module("polars")
    except ImportError as error:
        raise CagedError(
            "importing a log needs the package polars, which is not installed; "
            "install it with: pip install 'caged-rec[data]'"
        ) from error


def _files(logs: Iterable[str | Path]) -> list[Path]:
    """The files that are meant, in the order given; those of a folder and of wildcards in sorted order."""
    paths: list[Path] = []
    for log in logs:
        if Path(log).is_dir():
            paths += log_files(Path(log))
            continue
        if Path(log).exists() or not glob.has_magic(str(log)):
            paths.append(Path(log))
            continue
        matching = [Path(path) for path in sorted(glob.glob(str(log), recursive=True))]  # noqa: PTH207 (absolute too)
        if not matching:
            raise DataError(f"no file matches {log}; check the pattern")
        files = [path for path in matching if not path.is_dir()]  # `**` also finds the folders that these are in
        paths += files or [path for folder in matching for path in log_files(folder)]
    if not paths:
        raise DataError("no log is given; name at least one file")
    seen: set[Path] = set()
    for path in paths:
        reader_for(path)
        if path.resolve() in seen:
            raise DataError(f"{path} is given twice; name every file once")
        seen.add(path.resolve())
    return paths


# ---------------------------------------------------------------- 1: read, check, spool


class _Spool:
    """The checked rows of all files in their order, identifiers as codes, on disk."""

    def __init__(self, path: Path, leave_out: Sequence[str] = ()) -> None:
        self.path, self._leave_out = path, leave_out
        self.users, self.items = IdEncoder("user"), IdEncoder("item")
        self.rows = self.bytes = 0
        self.schema: pa.Schema | None = None
        self._units: list[TimeUnit] = []  # of the times in each table
        self._begins: list[tuple[Path, int]] = []  # each file, and how many rows came before it
        self.times_like: Counter[TimeUnit] = Counter()
        self._writer: Any = None

    def add(self, path: Path, columns: Columns, progress: ProgressReport) -> dict[str, Any]:
        """Append one file; what the manifest says about it."""
        rows = 0
        self._begins.append((path, self.rows))
        dates = _OneKindOfTimestamp()
        self.users.name, self.items.name = columns.user, columns.item
        for table in tables_of(path, columns):
            checked = _checked(table, columns, path, rows, dates)
            kept = checked.select([name for name in checked.column_names if name not in self._leave_out])
            self._append(kept, path, columns.ids)
            self._units.append(dates.unit)
            self.times_like += dates.like
            rows += table.num_rows
            progress(f"reading: {self.rows:,} rows, in {path.name}", None)  # how many there are shows at the end
        return {"file": str(path), "bytes": path.stat().st_size, "rows": rows}

    def _append(self, table: pa.Table, path: Path, ids: IdsAs) -> None:
        untyped = is_text_table(path) and ids == "auto"
        for name, encoder in (("user", self.users), ("item", self.items)):
            codes = encoder.encode(table[name].combine_chunks(), untyped=untyped)
            table = table.set_column(table.column_names.index(name), name, pa.array(codes))
        if self.schema is None:
            self.schema = table.schema
            self._writer = ipc.new_file(str(self.path), table.schema, options=FAST)
        elif table.schema != self.schema:
            raise DataError(
                f"{path} has the columns {_described(table.schema)}, the files before it {_described(self.schema)}; "
                f"all files of one log need the same"
            )
        (batch,) = table.combine_chunks().to_batches()
        self._writer.write_batch(batch)
        self.rows += table.num_rows
        self.bytes += table.nbytes

    def close(self) -> None:
        if self._writer is None:
            raise DataError("the log holds no interactions; it needs at least one row below its header")
        self._writer.close()

    def first_place(self, side: str, code: int) -> tuple[Path, int]:
        """The file where an identifier came first, and how many of its rows came before; by a pass over all of them."""
        before = 0
        with ipc.open_file(pa.OSFile(str(self.path))) as file:
            for position in range(file.num_record_batches):
                codes = file.get_batch(position).column(side).to_numpy()
                found = np.flatnonzero(codes == code)
                if len(found):
                    before += int(found[0])
                    break
                before += len(codes)
        path, begin = next(one for one in reversed(self._begins) if one[1] <= before)
        return path, before - begin

    @property
    def final_schema(self) -> pa.Schema:
        """Of `tables`."""
        assert self.schema is not None  # `close` refuses a log without rows
        unit = finest(self._units)
        if unit == "s" or "timestamp" not in self.schema.names:
            return self.schema
        place = self.schema.get_field_index("timestamp")
        return self.schema.set(place, pa.field("timestamp", pa.timestamp(unit)))

    def tables(self) -> Iterator[pa.Table]:
        """All tables, their times in the one unit that holds them all."""
        unit = finest(self._units)
        with ipc.open_file(pa.OSFile(str(self.path))) as file:
            for position, own in enumerate(self._units):
                table = pa.Table.from_batches([file.get_batch(position)])
                if "timestamp" in table.column_names:
                    times = Times(table["timestamp"].to_numpy(), own).to(unit)
                    place = table.column_names.index("timestamp")
                    table = table.set_column(place, "timestamp", arrow_times(times))
                yield table


class _OneKindOfTimestamp:
    """Text timestamps have one form all through a file, as if it were read at once.

    `unit` and `like` are about the latest table: its unit, and how many rows look like each.
    """

    def __init__(self) -> None:
        self.unit: TimeUnit = "s"
        self.like: Counter[TimeUnit] = Counter()
        self._form: str | None = None

    def __call__(self, column: Column) -> Array:
        if column.is_text and len(column.values):
            form = time_form(column.values[:1])
            if self._form not in (None, form):
                raise column.error(0, "is {}, not a timestamp in the form of the other rows,", "repair these rows")
            self._form = form
        times = timestamps_of(column)
        self.unit, self.like = times.unit, units_like(times)
        return times.values


def _checked(
    table: pa.Table, columns: Columns, path: Path, rows_before: int, timestamps: _OneKindOfTimestamp
) -> pa.Table:
    """The columns of the result, in its names and types, but with external identifiers."""

    def column(name: str) -> Column:
        return Column(table[name], name, str(path), rows_before=rows_before, line_of=line_finder(path))

    values = {
        "user": ids_of(column(columns.user), columns.ids),
        "item": ids_of(column(columns.item), columns.ids),
    }
    if columns.rating in table.column_names:
        values["rating"] = pa.array(ratings_of(column(columns.rating)))
    if columns.timestamp in table.column_names:
        values["timestamp"] = pa.array(timestamps(column(columns.timestamp)))
    return pa.table({**values, **{name: _kept(column(name)) for name in columns.keep}})


def _kept(column: Column) -> pa.Array:
    kind = column.values.type
    if not (pa.types.is_primitive(kind) or is_text(kind)):
        raise column.wrong_type("numbers, booleans, dates and strings")
    return column.values


def _described(schema: pa.Schema) -> str:
    return ", ".join(field.name if field.name in OWN_COLUMNS else f"{field.name} ({field.type})" for field in schema)


# ---------------------------------------------------------------- 2: rows and buckets


def _deal(spool: _Spool, users: Numbering, items: Numbering, work: Path, progress: ProgressReport) -> list[Path]:
    """The spool in row numbers, dealt into files of neighbouring users that each fit in memory several times."""
    count = min(MOST_BUCKETS, 1 + spool.bytes // BUCKET_BYTES)
    log_rows_before = np.cumsum(users.log_rows) - users.log_rows
    bucket_of = (log_rows_before * count // spool.rows).astype(np.uint8)  # a byte sorts fastest; MOST_BUCKETS fits
    paths = [work / f"bucket-{bucket}.arrow" for bucket in range(count)]
    with ExitStack() as stack:
        schema = spool.final_schema
        writers = [stack.enter_context(ipc.new_file(str(path), schema, options=FAST)) for path in paths]
        dealt = 0
        for table in spool.tables():
            dealt += table.num_rows
            progress("numbering", dealt / spool.rows)
            numbered = _numbered(table, users, items)
            buckets = bucket_of[numbered["user"].to_numpy()]
            if count > 1:
                order = np.argsort(buckets, kind="stable")
                numbered, buckets = numbered.take(pa.array(order)), buckets[order]
            bounds = np.searchsorted(buckets, np.arange(count + 1))
            for writer, start, end in zip(writers, bounds[:-1], bounds[1:], strict=True):
                if end > start:
                    writer.write_table(numbered.slice(start, end - start))
    spool.path.unlink()
    return paths


def _numbered(table: pa.Table, users: Numbering, items: Numbering) -> pa.Table:
    for name, numbering in (("user", users), ("item", items)):
        rows = numbering.row_of_code[table[name].to_numpy()]
        table = table.set_column(table.column_names.index(name), name, pa.array(rows))
    return table


# ---------------------------------------------------------------- 3: sort, merge


def _latest_of_pairs(table: pa.Table, item_count: int) -> Array:
    """Positions of the distinct pairs in (user, item) order; of a pair the largest timestamp, then the last row."""
    pl = needed_polars()
    key = table["user"].to_numpy().astype(np.int64) * item_count + table["item"].to_numpy()
    by_key = pl.DataFrame({"key": key}).with_row_index("position").sort("key", maintain_order=True)
    position, key = by_key["position"].to_numpy().astype(np.int64), by_key["key"].to_numpy()
    last_of_pair = np.ones(len(key), dtype=bool)
    last_of_pair[:-1] = key[1:] != key[:-1]
    if "timestamp" in table.column_names and not last_of_pair.all():
        # Duplicates are few: only their timestamps are looked at, each pair within its own places.
        repeated = np.flatnonzero(~last_of_pair | ~np.concatenate(([True], last_of_pair[:-1])))
        timestamp = table["timestamp"].cast(pa.int64()).to_numpy()[position[repeated]]
        position[repeated] = position[repeated[np.lexsort((timestamp, key[repeated]))]]
    return np.asarray(position[last_of_pair])


class Fingerprint:
    """`Interactions.fingerprint` of pairs that come in order, some at a time."""

    def __init__(self, user_ids: IdMap, item_ids: IdMap) -> None:
        polars = needed_polars()
        self._frame = polars.DataFrame
        self._user_ids: pl.Series = polars.from_arrow(user_ids.values)
        self._item_ids: pl.Series = polars.from_arrow(item_ids.values)
        self._digest = hashlib.sha256()

    def update(self, users: Array, items: Array) -> None:
        for start in range(0, len(users), HASHED_ROWS):
            block = slice(start, start + HASHED_ROWS)
            external = {"user": self._user_ids.gather(users[block]), "item": self._item_ids.gather(items[block])}
            text = io.BytesIO()
            self._frame(external).write_csv(text, include_header=False, separator="\t", quote_style="never")
            self._digest.update(text.getbuffer())

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


# ---------------------------------------------------------------- identifiers, table by table


@dataclass(frozen=True, eq=False)
class Numbering:
    ids: IdMap
    row_of_code: Array  # int32 (n,)
    log_rows: Array  # int64 (n,): how often each row number occurs in the log, duplicates included


FirstPlace = Callable[[str, int], tuple[Path, int]]  # from "user" or "item" and a code to a file and the rows before


class _Distinct(Column):
    """Identifiers in the order of their codes: an error about one names the file and the row where it came first."""

    def __init__(self, values: pa.Array, name: str, first_place: Callable[[int], tuple[Path, int]]) -> None:
        super().__init__(values, name, "")
        self._first_place = first_place

    def error(self, row: int, problem: str, fix: str) -> DataError:
        path, before = self._first_place(row)
        there = Column(self.values.slice(row, 1), self.name, str(path), rows_before=before, line_of=line_finder(path))
        return there.error(0, problem, fix)


class IdEncoder:
    """Codes 0, 1, ... in order of first appearance."""

    def __init__(self, side: Literal["user", "item"]) -> None:
        self.name: str = side  # of the column in the log, once that is known
        self._side = side
        self._known: Arrivals | None = None
        self._count = np.zeros(0, dtype=np.int64)
        self._may_be_integers = True

    def encode(self, ids: pa.Array, *, untyped: bool) -> Array:
        """The code of every identifier, int32. `untyped`: text that stands for integers if all of it looks like it."""
        self._may_be_integers &= untyped or not is_text(ids.type)
        known = self._known = self._known or Arrivals(ids.type)
        if known.values.type != ids.type:  # integers in one file, text in another: all of it is text
            known.values, ids = known.values.cast(pa.large_string()), ids.cast(pa.large_string())
        codes = known.numbers(ids)
        count = np.bincount(codes, minlength=len(known.values))
        count[: len(self._count)] += self._count
        self._count = count
        return codes

    def numbering(self, first_place: FirstPlace) -> Numbering:
        """All identifiers in the order of an `IdMap`."""
        known = self._known.values if self._known is not None else pa.array([], type=pa.int64())
        if is_text(known.type) and self._may_be_integers:
            column = _Distinct(known, self.name, partial(first_place, self._side))
            known = integers_where_all(column)
            if not is_text(known.type):
                reject_negative(column, known)
        order = pc.sort_indices(known).to_numpy()
        row_of_code = np.empty(len(known), dtype=np.int32)
        row_of_code[order] = np.arange(len(known), dtype=np.int32)
        return Numbering(IdMap(known.take(pa.array(order))), row_of_code, self._count[order])
