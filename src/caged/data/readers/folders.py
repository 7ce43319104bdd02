"""A table in a folder of part files, as Spark, Dask, BigQuery and others write it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa

from caged.data.cgraph.layout import is_graph_folder
from caged.data.ids import is_text
from caged.data.interactions import Interactions
from caged.data.parts import PARTS
from caged.data.readers.canonical import is_canonical
from caged.data.readers.columns import Columns
from caged.data.readers.files import READERS, read_frame_part, reader_for, suffix_of
from caged.errors import DataError

BESIDE = ("_", ".")  # how names of files begin that hold no rows: _SUCCESS, .part-0.crc


def part_files(folder: Path) -> list[Path]:
    """The files of one table, in the order of their names; they all have the same suffix."""
    visible = [path for path in sorted(folder.rglob("*")) if _is_visible(path.relative_to(folder)) and path.is_file()]
    suffixes = Counter(suffix_of(path) for path in visible)
    if not visible:
        raise DataError(f"{folder} holds no files; give a file, or a folder of part files")
    if len(suffixes) > 1 or None in suffixes:
        names = ", ".join(path.name for path in visible[:5])
        raise DataError(
            f"{folder} is not a folder of part files, found: {names}{', ...' if len(visible) > 5 else ''}; all of them "
            f"need one suffix ({', '.join(READERS)}), so give the file that is meant"
        )
    return visible


def holds_split(folder: Path) -> bool:
    """Whether the files of a folder are named after the parts of a split."""
    return bool({path.name.partition(".")[0] for path in folder.iterdir()} & set(PARTS))


def log_files(folder: Path) -> list[Path]:
    """The files to import: a folder has to hold the part files of one log."""
    if is_canonical(folder) or is_graph_folder(folder):
        raise DataError(
            f"{folder} is imported already; train on it with --data {folder}, or import the files that it was made of"
        )
    if holds_split(folder):
        raise DataError(
            f"{folder} holds the parts of a split, and an import reads one log, which it may split itself; give the "
            f"file of the whole log, or train on these parts as they are with --data {folder}"
        )
    return part_files(folder)


def read_part_files(folder: Path, *, columns: Columns, min_rating: float | None = None) -> Interactions:
    """A log in a folder of part files."""
    tables = [reader_for(path)(path, columns) for path in part_files(folder)]
    for name in (columns.user, columns.item):
        tables = _with_one_type(tables, name)
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            f"the files of {folder} have columns of different types ({str(error).splitlines()[0][:200]}); write them "
            f"again from one table"
        ) from error
    return read_frame_part(table, columns=columns, min_rating=min_rating, where=str(folder))


def _with_one_type(tables: list[pa.Table], name: str) -> list[pa.Table]:
    """Ids of text files are integers only where all parts have integers."""
    if len({is_text(table[name].type) for table in tables}) == 1:
        return tables
    return [table.set_column(table.column_names.index(name), name, table[name].cast(pa.string())) for table in tables]


def _is_visible(path: Path) -> bool:
    return not any(part.startswith(BESIDE) for part in path.parts)
