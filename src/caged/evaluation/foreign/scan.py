"""Lists that somebody else made: a table of users, items and what orders them, of any size.

The table is read in pieces of bounded size: `scan` checks every value and finds out which identifiers there are. Large
tables are read once more when the lists are made (`foreign_lists`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap, is_text
from caged.data.readers.batches import TABLE_ROWS
from caged.data.readers.columns import (
    Column,
    LineOf,
    integers_where_all,
    ranks_of,
    reject_no_names,
    scores_of,
    typed_ids,
)
from caged.data.readers.files import arrow_table
from caged.data.readers.folders import part_files
from caged.errors import DataError
from caged.evaluation.foreign.formats import list_file, title_of
from caged.evaluation.foreign.list_columns import ListColumns
from caged.evaluation.foreign.nested import Flat, flattened
from caged.evaluation.foreign.row_lookup import RowLookup
from caged.evaluation.parallel import ahead

OF_A_RUN = "recommendations.parquet"  # the lists in the folder of a run
MOST_KEPT = 1 << 24  # rows that stay in memory between the two readings, 20 bytes each at most


COLUMNS = ListColumns()


@dataclass(frozen=True, eq=False)
class Recommendations:
    """A table of lists that can be read piece by piece, as often as needed."""

    where: str  # for messages
    name: str  # for titles
    untyped: bool  # text that stands for integers where the other side has integers
    tables: Callable[[], Iterator[pa.Table]]
    columns: ListColumns = COLUMNS
    note: str | None = None  # about how the file was read
    line_of: LineOf | None = None  # where the table is a file with lines

    @classmethod
    def of(cls, recs: Any, columns: ListColumns = COLUMNS) -> Recommendations:
        """From a file, a folder of part files, or a frame with the Arrow C stream interface."""
        if isinstance(recs, str | Path):
            return cls._from_file(Path(recs), columns)
        table = arrow_table(recs)
        where = "the frame of recommendations"
        table = table.select(columns.find(table.column_names, where))

        def slices() -> Iterator[pa.Table]:
            return (table.slice(start, TABLE_ROWS) for start in range(0, table.num_rows, TABLE_ROWS))

        return cls(where, "recommendations", False, slices, columns)

    @classmethod
    def _from_file(cls, path: Path, columns: ListColumns) -> Recommendations:
        if path.is_dir():
            return cls._from_folder(path, columns)
        file = list_file(path, columns)
        return cls(str(path), title_of(path), file.untyped, file.tables, columns, file.note, file.line_of)

    @classmethod
    def _from_folder(cls, folder: Path, columns: ListColumns) -> Recommendations:
        if (folder / OF_A_RUN).is_file():
            raise DataError(f"{folder} is a folder of a run; give the file with the lists, {folder / OF_A_RUN}")
        files = [list_file(path, columns) for path in part_files(folder)]
        return cls(
            str(folder),
            folder.resolve().name,
            any(file.untyped for file in files),
            lambda: chain.from_iterable(file.tables() for file in files),
            columns,
            files[0].note,
        )


# ---------------------------------------------------------------- first reading


class Piece(NamedTuple):
    """Some rows of the table, checked; identifiers as the codes of a `Scan`."""

    users: Array  # int32
    items: Array  # int32
    rank: Array | None  # int32
    score: Array | None  # float32 or float64


@dataclass(eq=False)
class Scan:
    """What a table of lists mentions. Codes are rows of the known identifiers, then the unknown ones as they came."""

    recs: Recommendations
    users: RowLookup
    items: RowLookup
    rows: int = 0
    rows_of_user: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rows_of_unknown_items: int = 0
    has_ranks: bool = False
    notes: tuple[str, ...] = ()  # how the columns were found
    kept: list[Piece] | None = field(default_factory=list)  # None where there are too many rows to keep them

    @property
    def unknown_users(self) -> IdMap:
        return IdMap.of(self.users.unknown)

    @property
    def unknown_items(self) -> IdMap:
        return IdMap.of(self.items.unknown)

    def pieces(self) -> Iterator[Piece]:
        """All rows: those that were kept, or the table read once more."""
        return self.read() if self.kept is None else iter(self.kept)

    def read(self) -> Iterator[Piece]:
        before = 0
        for table in ahead(self.recs.tables()):
            flat = flattened(table, self.recs.columns, self.recs.where)
            if before == 0:
                self._note(flat)
            yield _piece(self, flat, before)
            before += len(flat.item)

    def _note(self, flat: Flat) -> None:
        said = (self.recs.note, self.recs.columns.note(flat.names))
        self.notes = tuple(sentence for sentence in said if sentence is not None)


def scan(recs: Recommendations, user_ids: IdMap, item_ids: IdMap) -> Scan:
    """Which users and items occur; identifiers must be of the kind (integers or text) that the maps have."""
    found = Scan(recs, RowLookup(user_ids), RowLookup(item_ids))
    for piece in found.read():
        found.rows_of_user = _added(found.rows_of_user, np.bincount(piece.users))
        found.rows_of_unknown_items += int(np.count_nonzero(piece.items >= len(item_ids)))
        found.rows += len(piece.users)
        found.has_ranks = piece.rank is not None
        if found.kept is not None:
            found.kept = [*found.kept, piece] if found.rows <= MOST_KEPT else None
    if found.rows == 0:
        raise DataError(f"{recs.where} holds no recommendations; an audit needs at least one row")
    return found


def _piece(found: Scan, flat: Flat, rows_before: int) -> Piece:
    recs, names = found.recs, flat.names

    def column(values: pa.ChunkedArray, name: str | None) -> Column:
        before = None if flat.is_nested else rows_before
        return Column(values, str(name), recs.where, rows_before=before, line_of=recs.line_of)

    return Piece(
        _codes(column(flat.user, names.user), found.users, recs),
        _codes(column(flat.item, names.item), found.items, recs),
        None if flat.rank is None else ranks_of(column(flat.rank, names.rank)),
        None if flat.score is None else scores_of(column(flat.score, names.score)),
    )


def _added(total: Array, more: Array) -> Array:
    longer, shorter = (total, more) if len(total) >= len(more) else (more, total)
    longer[: len(shorter)] += shorter
    return longer


def _codes(column: Column, lookup: RowLookup, recs: Recommendations) -> Array:
    codes = lookup.codes(_ids_like(column, lookup.known, recs))
    if recs.columns.ids == "auto":  # what the logs know as a name is one
        reject_no_names(column, among=codes >= len(lookup.known))
    return codes


def _ids_like(column: Column, known: IdMap, recs: Recommendations) -> pa.Array:
    """The identifiers as integers or text, whichever `known` holds."""
    ids = typed_ids(column, recs.columns.ids)
    if recs.untyped and known.are_integers:
        ids = integers_where_all(Column(ids, column.name, column.where, rows_before=column.rows_before))
    if is_text(ids.type) == known.are_integers and len(known):
        if recs.columns.ids == "auto":
            reject_no_names(column)  # the better reason
        kinds = ("integers", "text") if known.are_integers else ("text", "integers")
        raise DataError(
            f"{column.where}: column '{column.name}' holds {kinds[1]} (such as {_first_odd(ids)!r}) where train has "
            f"{kinds[0]} (such as {known.values[0].as_py()!r}), so nothing would match; write both as the same type, "
            f"or read all ids as text with --ids text"
        )
    return ids


def _first_odd(ids: pa.Array) -> Any:
    """An identifier to show; among texts one that is no integer, where there is one."""
    shown = ids[:1000].to_pylist()
    return next((value for value in shown if isinstance(value, str) and not value.isdecimal()), shown[0])
