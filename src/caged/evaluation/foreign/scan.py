"""Lists that somebody else made: a table of user_id, item_id and score or rank, of any size.

The table is read in pieces of bounded size: `scan` checks every value and finds out which identifiers there are. Large
tables are read once more when the lists are made (`foreign_lists`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap, is_text
from caged.data.readers.batches import TABLE_ROWS, is_text_table, tables_of
from caged.data.readers.columns import (
    Column,
    Columns,
    ids_of,
    integers_where_all,
    listed,
    need_column,
    ranks_of,
    refuse_repeated,
    scores_of,
)
from caged.data.readers.files import arrow_table, reader_for, suffix_of
from caged.errors import DataError
from caged.evaluation.foreign.row_lookup import RowLookup
from caged.evaluation.parallel import ahead

SUFFIXES = (".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
MOST_KEPT = 1 << 24  # rows that stay in memory between the two readings, 20 bytes each at most


@dataclass(frozen=True)
class ListColumns(Columns):
    """user_id, item_id and what orders a list: at least one of score and rank."""

    def named_in(self, found: Sequence[str]) -> tuple[str, str]:
        """The user and the item column: called as in the logs, or by their default names where only these are there."""
        user, item = (
            default if name not in found and default in found else name
            for name, default in ((self.user, Columns.user), (self.item, Columns.item))
        )
        return user, item

    def find(self, found: Sequence[str], where: str, *, hint: str = "") -> list[str]:
        refuse_repeated(found, where)
        ids = self.named_in(found)
        for name in ids:
            fix = "lists need user_id, item_id and score or rank, rename the columns"
            need_column(name, found, where, fix=fix, hint=hint)
        ordering = [name for name in ("score", "rank") if name in found]
        if not ordering:
            raise DataError(
                f"{where} has neither 'score' nor 'rank', found: {listed(found)}; nothing says which item comes first, "
                f"add one of the two columns"
            )
        return [*ids, *ordering]


COLUMNS = ListColumns()


@dataclass(frozen=True, eq=False)
class Recommendations:
    """A table of lists that can be read piece by piece, as often as needed."""

    where: str  # for messages
    name: str  # for titles
    untyped: bool  # text that stands for integers where the other side has integers
    tables: Callable[[], Iterator[pa.Table]]
    columns: ListColumns = COLUMNS

    @classmethod
    def of(cls, recs: Any, names: Columns = COLUMNS) -> Recommendations:
        """From a Parquet, CSV or TSV file, or a frame with the Arrow C stream interface."""
        columns = ListColumns(user=names.user, item=names.item)
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
            raise DataError(
                f"{path} is a folder; give the file with the lists, such as recommendations.parquet in a run folder"
            )
        reader_for(path)  # the sentence for a file that is absent or of no known kind
        suffix = suffix_of(path)
        if suffix not in SUFFIXES:
            raise DataError(
                f"{path} cannot hold lists, because {suffix} files have neither score nor rank; give a table as "
                f"{', '.join(SUFFIXES)}"
            )
        name = path.name[: len(path.name) - len(suffix)]
        return cls(str(path), name, is_text_table(path), lambda: tables_of(path, columns), columns)


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
            yield _piece(self, table, before)
            before += table.num_rows


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


def _piece(found: Scan, table: pa.Table, rows_before: int) -> Piece:
    recs = found.recs

    def column(name: str) -> Column:
        return Column(table[name], name, recs.where, rows_before=rows_before)

    user, item = recs.columns.named_in(table.column_names)
    return Piece(
        found.users.codes(_ids_like(column(user), found.users.known, recs.untyped)),
        found.items.codes(_ids_like(column(item), found.items.known, recs.untyped)),
        ranks_of(column("rank")) if "rank" in table.column_names else None,
        scores_of(column("score")) if "score" in table.column_names else None,
    )


def _added(total: Array, more: Array) -> Array:
    longer, shorter = (total, more) if len(total) >= len(more) else (more, total)
    longer[: len(shorter)] += shorter
    return longer


def _ids_like(column: Column, known: IdMap, untyped: bool) -> pa.Array:
    """The identifiers as integers or text, whichever `known` holds."""
    ids = ids_of(column)
    if untyped and known.are_integers:
        ids = integers_where_all(Column(ids, column.name, column.where, rows_before=column.rows_before))
    if is_text(ids.type) == known.are_integers and len(known):
        kinds = ("integers", "text") if known.are_integers else ("text", "integers")
        raise DataError(
            f"{column.where}: column '{column.name}' holds {kinds[1]} (such as {_first_odd(ids)!r}) where train has "
            f"{kinds[0]} (such as {known.values[0].as_py()!r}), so nothing would match; write both as the same type"
        )
    return ids


def _first_odd(ids: pa.Array) -> Any:
    """An identifier to show; among texts one that is no integer, where there is one."""
    shown = ids[:1000].to_pylist()
    return next((value for value in shown if isinstance(value, str) and not value.isdecimal()), shown[0])
