"""Files and frames to `Interactions`.

A new format is one function `(path, columns) -> pyarrow.Table` and one line in `READERS`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from caged.arguments import place
from caged.data.filters import k_core, rated_at_least
from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.readers.arrow_files import read_feather, read_json_lines
from caged.data.readers.canonical import is_canonical, read_canonical
from caged.data.readers.columns import (
    Column,
    Columns,
    IdsAs,
    LineOf,
    ids_of,
    kept_values,
    ratings_of,
    timestamps_of,
)
from caged.data.readers.recbole import plain_header, read_inter
from caged.data.readers.sparse import read_npz
from caged.data.readers.text import line_of_row, read_csv, read_lightgcn, read_tsv, text_chunks
from caged.data.times import mixed_units, units_like
from caged.errors import DataError, suggestion

Reader = Callable[[Path, Columns], pa.Table]

DEFAULT_COLUMNS = Columns()

_log = logging.getLogger(__name__)


def read_parquet(path: Path, columns: Columns) -> pa.Table:
    with opened_parquet(path) as file:
        return file.read(columns=columns.find(file.schema_arrow.names, str(path)))


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """A pyarrow `ParquetFile`; whatever goes wrong while it is read is a `DataError`."""
    from pyarrow import parquet

    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty; a log needs at least one interaction")
    try:
        # Not read_table: it would add columns from folder names such as `day=3`.
        with parquet.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{path} is not a readable Parquet file ({str(error).splitlines()[0][:200]}); it may be damaged or "
            f"truncated, fetch or write it again"
        ) from error


READERS: dict[str, Reader] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_tsv,
    ".tsv.gz": read_tsv,
    ".txt": read_lightgcn,
    ".txt.gz": read_lightgcn,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".inter": read_inter,
    ".inter.gz": read_inter,
    ".npz": read_npz,
    ".feather": read_feather,
    ".arrow": read_feather,
    ".jsonl": read_json_lines,
    ".jsonl.gz": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_lines,
}
TABLES = (read_csv, read_tsv, read_parquet, read_feather, read_json_lines)  # these hold whatever columns they have
DELIMITERS = {read_csv: ",", read_tsv: "\t", read_inter: None}  # of text tables; None: the file says it


def line_finder(path: Path) -> LineOf | None:
    """What finds the line of a data row in a text table; None for other files."""
    reader = reader_for(path)
    if reader not in DELIMITERS:
        return None

    def line_of(row: int, text: str) -> int | None:
        delimiter = DELIMITERS[reader] or plain_header(path, next(text_chunks(path), b"")).delimiter
        return line_of_row(path, delimiter, row, text)

    return line_of


def suffix_of(path: Path) -> str | None:
    """The longest known suffix of a file name, whatever its case.

    >>> suffix_of(Path("log.v2.CSV.gz"))
    '.csv.gz'
    """
    known = [suffix for suffix in READERS if path.name.lower().endswith(suffix)]
    return max(known, key=len, default=None)


def read_log(
    path: str | Path,
    *,
    columns: Columns = DEFAULT_COLUMNS,
    min_rating: float | None = None,
    min_user_interactions: int | None = None,
    min_item_interactions: int | None = None,
    user_column: str | None = None,
    item_column: str | None = None,
    rating_column: str | None = None,
    timestamp_column: str | None = None,
    keep: Sequence[str] = (),
    ids: IdsAs | None = None,
) -> Interactions:
    """Read a log of interactions: .csv, .tsv, .txt (LightGCN), .inter (RecBole; these four also with .gz), .parquet,
    .pq, .feather, .jsonl, .npz (scipy.sparse.save_npz), or a folder that `caged data import` wrote.

    Identifiers in text are integers if the whole column is made of canonical integers, else strings; Parquet keeps its
    types. With `ids="text"` all of them are strings, as they are written, even `NaN` and `1.23e+12`. Of several rows of
    a pair the latest stays. Then pairs rated below `min_rating` are dropped, then, until nothing changes, users and
    items with fewer interactions than asked for (see `filters.k_core`); users and items without a pair are dropped with
    them. What is odd about the log is said as a warning, and stands in `Interactions.notes`.
    """
    columns = columns.named(user=user_column, item=item_column, rating=rating_column, timestamp=timestamp_column)
    columns = columns.reading_ids(ids).keeping(keep)
    log = read_part(place("path", path), columns=columns, min_rating=min_rating)
    log = _dense_enough(log, min_user_interactions, min_item_interactions, str(path))
    validate_log(log, str(path))
    _say(log)
    return log


def read_part(path: Path, *, columns: Columns, min_rating: float | None = None) -> Interactions:
    """A file of a larger whole: like `read_log`, but a single user or item is fine."""
    if is_canonical(path):
        log = read_canonical(path, columns=columns)
        return log if min_rating is None else rated_at_least(log, min_rating, where=str(path))
    return _interactions(reader_for(path)(path, columns), columns, min_rating, str(path), line_finder(path))


def read_frame(
    frame: Any,
    *,
    columns: Columns = DEFAULT_COLUMNS,
    min_rating: float | None = None,
    min_user_interactions: int | None = None,
    min_item_interactions: int | None = None,
    user_column: str | None = None,
    item_column: str | None = None,
    rating_column: str | None = None,
    timestamp_column: str | None = None,
    keep: Sequence[str] = (),
    ids: IdsAs | None = None,
) -> Interactions:
    """From a frame with the Arrow C stream interface (pandas >= 2.2, polars, pyarrow, ...); options as `read_log`."""
    columns = columns.named(user=user_column, item=item_column, rating=rating_column, timestamp=timestamp_column)
    columns = columns.reading_ids(ids).keeping(keep)
    where = "the frame"
    log = read_frame_part(frame, columns=columns, min_rating=min_rating)
    log = _dense_enough(log, min_user_interactions, min_item_interactions, where)
    validate_log(log, where)
    _say(log)
    return log


def read_frame_part(
    frame: Any, *, columns: Columns, min_rating: float | None = None, where: str = "the frame"
) -> Interactions:
    """A frame of a larger whole: like `read_frame`, but a single user or item is fine."""
    table = arrow_table(frame)
    table = table.select(columns.find(table.column_names, where))
    return _interactions(table, columns, min_rating, where)


def _say(log: Interactions) -> None:
    for note in log.notes:
        _log.warning(note)


def validate_log(log: Interactions, where: str = "the log") -> None:
    """A log that nothing can be recommended from is an error."""
    check_counts(log.user_count, log.item_count, where)


def check_counts(users: int, items: int, where: str) -> None:
    for kind, count in (("user", users), ("item", items)):
        if count < 2:
            raise DataError(
                f"{where} has {count} {kind}{'' if count == 1 else 's'}; recommending needs at least "
                f"two users and two items, give a larger log or check --{kind}-column"
            )


def reader_for(path: Path) -> Reader:
    """The reader of an existing file; whatever else the path is, is an error."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a log file; give a file, or a folder with train and test files")
    if not path.exists():
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"{path} does not exist; check the path{suggestion(path.name, beside)}")
    suffix = suffix_of(path)
    if suffix is None:
        raise DataError(
            f"{path} has the unknown suffix '{''.join(path.suffixes[-2:])}'; known: {', '.join(READERS)}; "
            f"rename or convert it"
        )
    return READERS[suffix]


def read_table(path: Path, columns: Columns, what: str) -> pa.Table:
    """A file that is no log: the columns that `columns` finds in it."""
    reader = reader_for(path)
    if reader not in TABLES:
        known = ", ".join(suffix for suffix, one in READERS.items() if one in TABLES)
        raise DataError(f"{path} is no {what}; give one of {known}, with a header")
    return reader(path, columns)


def arrow_table(frame: Any) -> pa.Table:
    """The whole of any frame with the Arrow C stream interface."""
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            f"{type(frame).__module__}.{type(frame).__name__} is not a frame with the Arrow C stream interface; "
            f"give a pandas (2.2 or later), polars or pyarrow table"
        )
    try:
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"the frame cannot be read as an Arrow table ({error}); repair the column it names") from error


def _interactions(
    table: pa.Table, columns: Columns, min_rating: float | None, where: str, line_of: LineOf | None = None
) -> Interactions:
    if table.num_rows == 0:
        raise DataError(f"{where} holds no interactions; a log needs at least one row below its header")

    def column(name: str) -> Column:
        return Column(table[name], name, where, line_of=line_of)

    times = timestamps_of(column(columns.timestamp)) if columns.timestamp in table.column_names else None
    user_ids, users = IdMap.numbered(ids_of(column(columns.user), columns.ids))
    item_ids, items = IdMap.numbered(ids_of(column(columns.item), columns.ids))
    log = Interactions.build(
        users,
        items,
        user_ids=user_ids,
        item_ids=item_ids,
        rating=ratings_of(column(columns.rating)) if columns.rating in table.column_names else None,
        timestamp=None if times is None else times.values,
        timestamp_unit="s" if times is None else times.unit,
        columns={name: kept_values(column(name)) for name in columns.keep if name in table.column_names},
    )
    if times is not None and (notes := mixed_units(columns.timestamp, units_like(times))):
        log = replace(log, notes=notes)
    return log if min_rating is None else rated_at_least(log, min_rating, where=where, column=columns.rating)


def _dense_enough(log: Interactions, per_user: int | None, per_item: int | None, where: str) -> Interactions:
    if per_user is None and per_item is None:
        return log
    return k_core(log, 1 if per_user is None else per_user, 1 if per_item is None else per_item, where=where)
