"""Import of a log of any size into the canonical folder (see `caged.data.readers.canonical`), within bounded memory.

Memory holds the identifiers and one table of a few million rows; everything else is on disk:

1. read the files table by table, check every column, number the identifiers in order of appearance, spool;
2. sort the identifiers, which gives the rows, and deal the spool into buckets of neighbouring users;
3. sort every bucket by (user, item), keep the latest row of every pair, append it to the result.
"""

from __future__ import annotations

import glob
import hashlib
import importlib
import io
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet

from caged._version import __version__
from caged.data.ids import Array, Arrivals, IdMap, is_text
from caged.data.interactions import arrow_times
from caged.data.readers.batches import is_text_table, tables_of
from caged.data.readers.canonical import FORMAT, INTERACTIONS, ITEMS, MANIFEST, OWN_COLUMNS, USERS
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
from caged.data.times import Times, TimeUnit, finest, mixed_units, units_like
from caged.errors import CagedError, DataError
from caged.files import new_folder, refuse_filled_folder, write_json
from caged.progress import ProgressReport, unreported

if TYPE_CHECKING:
    import polars as pl

BUCKET_BYTES = 256 << 20  # of the spool; sorting needs a few times as much
MOST_BUCKETS = 256  # files that are open at once
HASHED_ROWS = 1 << 20
ROW_GROUP = 1 << 20
FAST = ipc.IpcWriteOptions(compression="lz4")


def import_log(
    logs: Iterable[str | Path],
    out: str | Path,
    *,
    columns: Columns | None = None,
    progress: ProgressReport = unreported,
) -> dict[str, Any]:
    """Import one or several files (names may hold wildcards) as one log into the new folder `out`.

    Read back, the result equals what `read_log` makes of the same rows in one file. Returns the manifest.
    """
    _polars()
    columns = columns or Columns()
    _check_kept(columns)
    paths = _files(logs)
    refuse_filled_folder(Path(out))
    with new_folder(Path(out)) as folder:
        work = folder / "work"
        work.mkdir()
        spool = _Spool(work / "spool.arrow")
        sources = [spool.add(path, columns, progress) for path in paths]
        spool.close()
        where = ", ".join(map(str, paths[:3])) + (", ..." if len(paths) > 3 else "")
        users, items = spool.users.numbering(where), spool.items.numbering(where)
        check_counts(len(users.ids), len(items.ids), where)
        buckets = _deal(spool, users, items, work, progress)
        written = _write_sorted(buckets, users, items, folder / INTERACTIONS, progress)
        shutil.rmtree(work)
        _write_ids(folder / USERS, "user", users)
        _write_ids(folder / ITEMS, "item", items)
        manifest = {
            "format": FORMAT,
            "caged": __version__,
            **written,
            "users": len(users.ids),
            "items": len(items.ids),
            "id_types": {"user_id": str(users.ids.values.type), "item_id": str(items.ids.values.type)},
            "merged_duplicates": spool.rows - written["interactions"],
            "notes": list(mixed_units(columns.timestamp, spool.times_like)),
            "sources": sources,
        }
        write_json(folder / MANIFEST, manifest)
    return manifest


def _polars() -> Any:
    try:
        return importlib.import_module("polars")
    except ImportError as error:
        raise CagedError(
            "importing a log needs the package polars, which is not installed; "
            "install it with: pip install 'caged-rec[data]'"
        ) from error


def _check_kept(columns: Columns) -> None:
    for name in columns.keep:
        if name in OWN_COLUMNS:
            raise DataError(f"column '{name}' cannot be kept under that name, which means something else in the result")


def _files(logs: Iterable[str | Path]) -> list[Path]:
    """The files that are meant, in the order given; wildcards in sorted order."""
    paths: list[Path] = []
    for log in logs:
        if Path(log).exists() or not glob.has_magic(str(log)):
            paths.append(Path(log))
            continue
        matching = sorted(glob.glob(str(log), recursive=True))  # noqa: PTH207 (absolute patterns too)
        if not matching:
            raise DataError(f"no file matches {log}; check the pattern")
        paths += map(Path, matching)
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

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users, self.items = IdEncoder("user"), IdEncoder("item")
        self.rows = self.bytes = 0
        self.schema: pa.Schema | None = None
        self._units: list[TimeUnit] = []  # of the times in each table
        self.times_like: Counter[TimeUnit] = Counter()
        self._writer: Any = None

    def add(self, path: Path, columns: Columns, progress: ProgressReport) -> dict[str, Any]:
        """Append one file; what the manifest says about it."""
        rows = 0
        dates = _OneKindOfTimestamp()
        self.users.name, self.items.name = columns.user, columns.item
        for table in tables_of(path, columns):
            self._append(_checked(table, columns, path, rows, dates), path, columns.ids)
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

    @property
    def final_schema(self) -> pa.Schema:
        """Of `tables`."""
        assert self.schema is not None  # `close` refuses a log without rows
        unit = finest(self._units)
        if unit == "s":
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


# ---------------------------------------------------------------- 3: sort, merge, write


def _write_sorted(
    buckets: Sequence[Path], users: Numbering, items: Numbering, path: Path, progress: ProgressReport
) -> dict[str, Any]:
    """Write the pairs; their number, columns and fingerprint."""
    fingerprint = _Fingerprint(users, items)
    count = 0
    with ipc.open_file(pa.OSFile(str(buckets[0]))) as first:
        schema = first.schema
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for number, bucket in enumerate(buckets):
            progress("sorting", number / len(buckets))
            with ipc.open_file(pa.OSFile(str(bucket))) as file:
                table = file.read_all().combine_chunks()
            bucket.unlink()
            pairs = table.take(pa.array(_latest_of_pairs(table, len(items.ids))))
            del table
            writer.write_table(pairs, row_group_size=ROW_GROUP)
            fingerprint.update(pairs)
            count += pairs.num_rows
    return {"interactions": count, "columns": schema.names, "fingerprint": fingerprint.hexdigest()}


def _latest_of_pairs(table: pa.Table, item_count: int) -> Array:
    """Positions of the distinct pairs in (user, item) order; of a pair the largest timestamp, then the last row."""
    pl = _polars()
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


class _Fingerprint:
    """`Interactions.fingerprint` of pairs that come in order, a table at a time."""

    def __init__(self, users: Numbering, items: Numbering) -> None:
        polars = _polars()
        self._frame = polars.DataFrame
        self._ids: dict[str, pl.Series] = {
            "user": polars.from_arrow(users.ids.values),
            "item": polars.from_arrow(items.ids.values),
        }
        self._digest = hashlib.sha256()

    def update(self, pairs: pa.Table) -> None:
        for start in range(0, pairs.num_rows, HASHED_ROWS):
            block = pairs.slice(start, HASHED_ROWS)
            external = {name: ids.gather(block[name].to_numpy()) for name, ids in self._ids.items()}
            text = io.BytesIO()
            self._frame(external).write_csv(text, include_header=False, separator="\t", quote_style="never")
            self._digest.update(text.getbuffer())

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _write_ids(path: Path, kind: str, numbering: Numbering) -> None:
    rows = np.arange(len(numbering.ids), dtype=np.int32)
    parquet.write_table(pa.table({kind: rows, f"{kind}_id": numbering.ids.values}), path, compression="zstd")


# ---------------------------------------------------------------- identifiers, table by table


@dataclass(frozen=True, eq=False)
class Numbering:
    ids: IdMap
    row_of_code: Array  # int32 (n,)
    log_rows: Array  # int64 (n,): how often each row number occurs in the log, duplicates included


class IdEncoder:
    """Codes 0, 1, ... in order of first appearance."""

    def __init__(self, name: str) -> None:
        self.name = name
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

    def numbering(self, where: str) -> Numbering:
        """All identifiers in the order of an `IdMap`."""
        known = self._known.values if self._known is not None else pa.array([], type=pa.int64())
        if is_text(known.type) and self._may_be_integers:
            column = Column(known, self.name, where, rows_before=None)
            known = integers_where_all(column)
            if not is_text(known.type):
                reject_negative(column, known)
        order = pc.sort_indices(known).to_numpy()
        row_of_code = np.empty(len(known), dtype=np.int32)
        row_of_code[order] = np.arange(len(known), dtype=np.int32)
        return Numbering(IdMap(known.take(pa.array(order))), row_of_code, self._count[order])
