"""Files that hold lists only: TREC runs, tables without a header, arrays and matrices of NumPy and SciPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caged.data.ids import Array
from caged.data.readers.batches import is_text_table, tables_of
from caged.data.readers.columns import Columns, LineOf
from caged.data.readers.files import READERS, line_finder, reader_for, suffix_of
from caged.data.readers.sparse import DAMAGED, read_npz
from caged.data.readers.text import csv_options, header_of, read_csv, read_text, read_tsv, text_chunks
from caged.errors import DataError, suggestion

TREC_SUFFIXES = (".run", ".trec", ".res", ".run.gz", ".trec.gz", ".res.gz")
TREC_COLUMNS = ("user_id", "iteration", "item_id", "rank", "score", "tag")
PLAIN_COLUMNS = ("user_id", "item_id", "score")  # of a table without a header, as Elliot writes it
UNFIT = (".txt", ".txt.gz")  # of logs: neither score nor rank
SUFFIXES = (*(suffix for suffix in READERS if suffix not in UNFIT), *TREC_SUFFIXES)
NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
DELIMITERS = {read_csv: ",", read_tsv: "\t"}


class ListFile(NamedTuple):
    """How a file of lists is read."""

    tables: Callable[[], Iterator[pa.Table]]
    untyped: bool  # text that stands for integers where the other side has integers
    note: str | None = None
    line_of: LineOf | None = None


def list_file(path: Path, columns: Columns) -> ListFile:
    """By its suffix, and by its first line where there is no header."""
    if _ends_in(path, TREC_SUFFIXES):
        if not path.is_file():
            raise DataError(f"{path} does not exist; check the path{suggestion(path.name, _beside(path))}")
        return ListFile(lambda: iter([_trec_run(path)]), True)
    reader = reader_for(path)  # with the sentence for a file that is absent or of no known kind
    if _ends_in(path, UNFIT):
        raise DataError(
            f"{path} cannot hold lists, because {suffix_of(path)} files have neither score nor rank; give a table as "
            f"{', '.join(SUFFIXES)}"
        )
    if reader is read_npz:
        return ListFile(lambda: iter([_arrays(path)]), False)
    if reader in DELIMITERS and _lacks_header(path, DELIMITERS[reader]):
        note = f"{path} has no header line: its columns were taken as user, item and score."
        return ListFile(lambda: iter([_without_header(path, DELIMITERS[reader])]), True, note)
    return ListFile(lambda: tables_of(path, columns), is_text_table(path), line_of=line_finder(path))


def title_of(path: Path) -> str:
    """The name of a file without its suffix."""
    suffix = next((suffix for suffix in TREC_SUFFIXES if path.name.lower().endswith(suffix)), suffix_of(path) or "")
    return path.name[: len(path.name) - len(suffix)]


def _ends_in(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.name.lower().endswith(suffixes)


def _beside(path: Path) -> list[str]:
    return [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []


# ---------------------------------------------------------------- text without a header


def _lacks_header(path: Path, delimiter: str) -> bool:
    """Whether the first line is a user, an item and a number."""
    head = next(text_chunks(path), b"")
    if not head.strip():
        return False
    fields = header_of(path, head, delimiter)
    return len(fields) == len(PLAIN_COLUMNS) and NUMBER.fullmatch(fields[-1]) is not None


def _without_header(path: Path, delimiter: str) -> pa.Table:
    return _parsed(path, read_text(path), delimiter, PLAIN_COLUMNS, "user, item and score")


def _trec_run(path: Path) -> pa.Table:
    """`user Q0 item rank score tag` per line, separated by spaces or tabs."""
    content = re.sub(rb"[ \t]+", b" ", read_text(path))
    lines, form = re.sub(rb" ?(\r\n|\r|\n) ?", b"\n", content), "user Q0 item rank score tag"
    try:
        return _parsed(path, lines, " ", TREC_COLUMNS, form)
    except DataError:  # a tag may be a name of several words
        one_word = re.sub(rb"(?m)^((?:[^ \n]+ ){5})[^\n]+$", rb"\1tag", lines)
        return _parsed(path, one_word, " ", TREC_COLUMNS, form)


def _parsed(path: Path, content: bytes, delimiter: str, names: tuple[str, ...], form: str) -> pa.Table:
    from pyarrow import csv

    options = csv_options(list(names), delimiter, newlines_in_values=False)
    options["read_options"].column_names = list(names)
    options["parse_options"].quote_char = False
    try:
        return csv.read_csv(pa.BufferReader(content), **options)
    except pa.ArrowException as error:
        raise DataError(
            f"{path} cannot be parsed ({str(error).splitlines()[0][:200]}); every line needs {len(names)} fields: "
            f"{form}"
        ) from error


# ---------------------------------------------------------------- arrays


def _arrays(path: Path) -> pa.Table:
    """implicit's pair of arrays (item ids and scores, a row per user, and perhaps the users), or a matrix of scores."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except DAMAGED as error:
        raise DataError(f"{path} is not a readable .npz file ({str(error)[:200]}); write it again") from error
    return _matrix(path) if {"format", "shape", "data"} <= arrays.keys() else _pair(path, arrays)


def _matrix(path: Path) -> pa.Table:
    table = read_npz(path, Columns())
    if Columns.rating not in table.column_names:
        raise DataError(f"{path} has the value 1 everywhere, so nothing says which item comes first; store the scores")
    return table.rename_columns(["user_id", "item_id", "score"])


def _pair(path: Path, arrays: dict[str, Array]) -> pa.Table:
    def of(dimensions: int, kinds: str) -> list[Array]:
        return [one for one in arrays.values() if one.ndim == dimensions and one.dtype.kind in kinds]

    ids, scores, users = of(2, "iu"), of(2, "f"), of(1, "iu")
    if len(ids) != 1 or len(scores) != 1 or ids[0].shape != scores[0].shape or len(users) > 1:
        seen = ", ".join(f"{name} {one.dtype} {one.shape}" for name, one in list(arrays.items())[:5])
        raise DataError(
            f"{path} holds {seen or 'nothing'}; lists are one array of item ids (integers) and one of scores (floats) "
            f"of the same two-dimensional shape, and perhaps one of user ids, as in np.savez(file, ids, scores, users)"
        )
    rows = users[0] if users else np.arange(len(ids[0]))
    if len(rows) != len(ids[0]):
        raise DataError(f"{path} has {len(rows)} user ids for {len(ids[0])} rows of items; store one per row")
    listed = ~_filled_up(ids[0], scores[0])
    columns: dict[str, Any] = {
        "user_id": np.repeat(rows, listed.sum(axis=1)),
        "item_id": ids[0][listed],
        "score": scores[0][listed],
    }
    return pa.table(columns)


def _filled_up(ids: Array, scores: Array) -> Array:
    """Places that implicit fills up where it finds fewer items than asked for: with -1, with items that it filters
    out, whose score is the lowest there is, and behind those, where there are no more items, with item 0 at 0."""
    filler = (ids < 0) | (scores <= np.finfo(np.float32).min)
    behind = np.logical_or.accumulate(filler, axis=1)
    return np.asarray(filler | (behind & (ids == 0) & (scores == 0)))
