"""A log of any size as a sequence of tables of bounded size.

The columns come as they are in the file: text formats give text, since only the whole file could tell that an
identifier is always an integer.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa

from caged.data.readers.columns import Columns
from caged.data.readers.files import DELIMITERS, opened_parquet, read_parquet, reader_for
from caged.data.readers.recbole import plain_header
from caged.data.readers.text import (
    CSV_BLOCK,
    ChunkStream,
    csv_options,
    header_hint,
    header_of,
    malformed,
    reject_empty,
    text_chunks,
)

TABLE_ROWS = 1 << 22
TABLE_BYTES = 256 << 20  # long identifiers make for fewer rows


def is_text_table(path: Path) -> bool:
    """Whether the columns of this file come as text that may stand for integers."""
    return reader_for(path) in DELIMITERS


def tables_of(path: Path, columns: Columns) -> Iterator[pa.Table]:
    """The wanted columns of a log file, in tables of at most `TABLE_ROWS` rows or about `TABLE_BYTES` bytes."""
    reader = reader_for(path)
    if reader in DELIMITERS:
        pieces = _delimited(path, columns, DELIMITERS[reader])
    elif reader is read_parquet:
        pieces = _parquet(path, columns)
    else:  # formats that have to be read as a whole
        pieces = iter([reader(path, columns)])
    return _regrouped(pieces)


def _parquet(path: Path, columns: Columns) -> Iterator[pa.Table]:
    with opened_parquet(path) as file:
        names = columns.find(file.schema_arrow.names, str(path))
        for group in range(file.num_row_groups):  # one by one: a reader of all of them keeps what it has read
            for batch in file.iter_batches(batch_size=TABLE_ROWS // 8, columns=names, row_groups=[group]):
                yield pa.Table.from_batches([batch])


def _delimited(path: Path, columns: Columns, delimiter: str | None) -> Iterator[pa.Table]:
    from pyarrow import csv

    chunks = text_chunks(path)
    head = next(chunks, b"")
    reject_empty(path, head)
    if delimiter is None:
        typed = plain_header(path, head)
        head, delimiter = typed.line + head[typed.end :], typed.delimiter
    header = header_of(path, head, delimiter)
    names = columns.find(header, str(path), hint=header_hint(header))
    stream = io.BufferedReader(ChunkStream(chain([head], chunks)), CSV_BLOCK)
    # A quote may come anywhere in a file that nobody has seen whole, so line breaks may always be quoted.
    options = csv_options(names, delimiter, newlines_in_values=True)
    try:
        with csv.open_csv(pa.PythonFile(stream, "r"), **options) as batches:
            for batch in batches:
                yield pa.Table.from_batches([batch])
    except pa.ArrowException as error:
        raise malformed(path, delimiter, len(header), error) from error


def _regrouped(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Small neighbours together, large tables apart."""
    group: list[pa.Table] = []
    rows = size = 0
    for piece in pieces:
        for start in range(0, piece.num_rows, TABLE_ROWS):
            part = piece.slice(start, TABLE_ROWS)
            if group and (rows + part.num_rows > TABLE_ROWS or size + part.nbytes > TABLE_BYTES):
                yield pa.concat_tables(group)
                group, rows, size = [], 0, 0
            group.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
    if group:
        yield pa.concat_tables(group)
