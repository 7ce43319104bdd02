"""How the files of a known dataset are read, in each of the forms in which they are found.

A dataset is data plus a reader function: a new form is one `Layout`, and perhaps one function here.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from caged.data.filters import rated_at_least
from caged.data.interactions import Interactions
from caged.data.readers.columns import ROLES, Column, Columns, ids_of
from caged.data.readers.files import DEFAULT_COLUMNS, read_part
from caged.data.readers.text import read_text
from caged.errors import DataError

ReadPart = Callable[[Path, Columns, float | None], Interactions]
Remark = Callable[[Mapping[str, Path], float | None], tuple[str, ...]]


def suffix_decides(path: Path, columns: Columns, min_rating: float | None) -> Interactions:
    """Parquet, CSV and TSV with a header, LightGCN text."""
    return read_part(path, columns=columns, min_rating=min_rating)


def anything(path: Path) -> bool:
    return True


def no_remark(files: Mapping[str, Path], min_rating: float | None) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Titles:
    """The file that names the items, and the function that makes a table (item_id, title) of it."""

    file: str
    read: Callable[[Path], pa.Table]


@dataclass(frozen=True)
class Layout:
    """One form of a dataset's folder. Every file may also lie there gzipped, with .gz behind its name."""

    files: Mapping[str, str]  # part -> file; a log is the single part "log", further tests have names of their own
    read: ReadPart = suffix_decides
    columns: Columns = DEFAULT_COLUMNS
    looks_right: Callable[[Path], bool] = anything  # tells a folder of the same name with other contents apart
    remark: Remark = no_remark  # what a reader of this form should be told
    titles: Titles | None = None
    beside: tuple[str, ...] = ()  # optional further files that belong to it, such as licence and features

    def find(self, folder: Path) -> dict[str, Path] | None:
        """The file of every part, or None where one is missing."""
        found = {part: find_file(folder, name) for part, name in self.files.items()}
        return {part: path for part, path in found.items() if path is not None} if all(found.values()) else None

    def companions(self, folder: Path) -> list[Path]:
        """The other files of this form that are there."""
        names = [*([self.titles.file] if self.titles else []), *self.beside]
        return [path for name in names if (path := find_file(folder, name)) is not None]

    def columns_with(self, asked: Columns) -> Columns:
        """The columns of this form, with those roles replaced that somebody named."""
        default = DEFAULT_COLUMNS
        named = {role: getattr(asked, role) for role in ROLES}
        named = {
            role: name for role, name in named.items() if role in asked.asked_for or name != getattr(default, role)
        }
        kept = tuple(dict.fromkeys((*self.columns.keep, *asked.keep)))
        return replace(self.columns.named(**named), keep=kept, ids=asked.ids)


def find_file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


# ---------------------------------------------------------------- interactions


def delimited(separator: str, *, id_base: int = 0, rating: bool = True, timestamp: bool = False) -> ReadPart:
    """Text without a header: user, item, then rating and timestamp where they are there.

    `id_base` is taken off every identifier: MovieLens-1M counts from 1 where the released split of it counts from 0.
    """
    names = ["user_id", "item_id", *(["rating"] if rating else []), *(["timestamp"] if timestamp else [])]

    def read(path: Path, columns: Columns, min_rating: float | None) -> Interactions:
        table = _parse(path, separator, names)
        for position, name in enumerate(("user_id", "item_id")):
            ids = table[name].to_numpy()
            if ids.min() < id_base:
                raise DataError(f"{path}: column {position + 1} holds {ids.min()}; identifiers start at {id_base} here")
            table = table.set_column(position, name, pa.array(ids - id_base))
        return _interactions(table, columns, min_rating, path)

    return read


def _parse(path: Path, separator: str, names: list[str]) -> pa.Table:
    from pyarrow import csv as arrow_csv

    content = read_text(path)
    if len(separator) > 1:  # Arrow wants one character
        content, separator = content.replace(separator.encode(), b"\t"), "\t"
    known = {"user_id": pa.int64(), "item_id": pa.int64(), "rating": pa.float64(), "timestamp": pa.int64()}
    types = {name: known[name] for name in names}
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(column_names=names),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: types[name] for name in names}, null_values=[]
            ),
        )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path} does not hold {', '.join(names)} per line without a header ({str(error).splitlines()[0][:200]}); "
            f"fetch the file again, and give a log of your own as a file of its own"
        ) from error


def _interactions(table: pa.Table, columns: Columns, min_rating: float | None, path: Path) -> Interactions:
    """From a table of checked numbers, in the columns that were asked for."""
    wanted = columns.find(table.column_names, str(path))
    if table.num_rows == 0:
        raise DataError(f"{path} holds no interactions; is it the right file?")
    optional = {"rating": columns.rating, "timestamp": columns.timestamp}
    values = {role: table[name].to_numpy() for role, name in optional.items() if name in wanted}
    kept = {name: table[name].to_numpy() for name in columns.keep}
    ids = [ids_of(Column(table[name], name, str(path)), columns.ids) for name in (columns.user, columns.item)]
    log = Interactions.from_ids(*ids, rating=values.get("rating"), timestamp=values.get("timestamp"), columns=kept)
    return log if min_rating is None else rated_at_least(log, min_rating, where=str(path), column=columns.rating)


def starts_with_numbers(path: Path) -> bool:
    """Whether the first line is data, not a header."""
    try:
        first = read_text(path).split(b"\n", 1)[0].split()
    except DataError:
        return False
    return bool(first) and all(field.isdigit() for field in first)


def has_columns(*names: str) -> Callable[[Path], bool]:
    """Whether a Parquet file has these columns."""

    def look(path: Path) -> bool:
        from pyarrow import parquet

        try:
            return set(names) <= set(parquet.read_schema(path).names)
        except (pa.ArrowException, OSError):
            return False

    return look


def dense_matrix(path: Path, columns: Columns, min_rating: float | None) -> Interactions:
    """One line of ratings per user, one number per item, 0 where there is none; rows and columns are the ids."""
    try:
        matrix = np.loadtxt(read_text(path).decode("ascii").splitlines(), ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no matrix of numbers ({str(error)[:200]}); fetch the file again") from error
    users, items = np.nonzero(matrix)
    table = pa.table({"user_id": users, "item_id": items, "rating": matrix[users, items]})
    return _interactions(table, columns, min_rating, path)


def star_intervals(files: Mapping[str, Path], min_rating: float | None) -> tuple[str, ...]:
    """How many pairs a smallest rating leaves out although their stars, known as an interval, may reach it."""
    if min_rating is None:
        return ()
    from pyarrow import parquet

    stars = parquet.read_table(files["log"], columns=["rating_lo", "rating_hi"])
    low, high = stars["rating_lo"].to_numpy(), stars["rating_hi"].to_numpy()
    undecided = int(np.count_nonzero((low < min_rating) & (min_rating <= high)))
    return (
        f"stars are known as an interval and the lower end counts: {undecided:,} further pairs may be rated "
        f"{min_rating:g} or more but are not certain, and are left out",
    )


# ---------------------------------------------------------------- titles


def separated_titles(separator: str, *, id_base: int = 0) -> Callable[[Path], pa.Table]:
    """`id SEPARATOR title SEPARATOR ...` per line in latin-1, as GroupLens wrote it before 2010."""

    def read(path: Path) -> pa.Table:
        rows = [line.split(separator) for line in _lines(path, "latin-1")]
        return _titles_table(path, [(row[0], row[1] if len(row) > 1 else "") for row in rows], id_base)

    return read


def csv_titles(path: Path) -> pa.Table:
    """CSV with the columns movieId and title."""
    rows = list(csv.reader(_lines(path, "utf-8")))
    if not rows or rows[0][:2] != ["movieId", "title"]:
        raise DataError(f"{path} does not start with movieId,title; fetch the file again")
    return _titles_table(path, [(row[0], row[1]) for row in rows[1:] if len(row) > 1], 0)


def _lines(path: Path, encoding: str) -> list[str]:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode(encoding)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the titles in {path} ({error}); fetch the file again") from error
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def _titles_table(path: Path, rows: list[tuple[str, str]], id_base: int) -> pa.Table:
    try:
        ids = [int(item) - id_base for item, _ in rows]
    except ValueError as error:
        raise DataError(f"{path} has an item without a number in front ({error}); fetch the file again") from error
    return pa.table(
        {"item_id": pa.array(ids, pa.int64()), "title": pa.array([title for _, title in rows], pa.string())}
    )
