"""RecBole `.inter` files: a table whose header gives every field a type, such as `user_id:token`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from caged.data.readers.columns import Columns
from caged.data.readers.text import parse_table, read_text
from caged.errors import DataError

TYPES = ("token", "token_seq", "float", "float_seq")
TYPED_FIELD = re.compile(rf"(.+):({'|'.join(TYPES)})")
# RecBole separates by tabs unless its configuration says otherwise; what follows the first type is the separator.
SEPARATOR = re.compile(rf"[^:]+:(?:{'|'.join(sorted(TYPES, key=len, reverse=True))})([^\w\r\n])")
LINE_END = re.compile(rb"\r\n|\r|\n")


class PlainHeader(NamedTuple):
    """The header without its types, as one line of the file, and where the file goes on behind the typed one."""

    line: bytes
    delimiter: str
    end: int


def read_inter(path: Path, columns: Columns) -> pa.Table:
    content = read_text(path)
    header = plain_header(path, content)
    return parse_table(path, header.line + content[header.end :], columns, header.delimiter)


def plain_header(path: Path, content: bytes) -> PlainHeader:
    """Of the content of a file, or of its beginning.

    >>> plain_header(Path("log.inter"), b"user_id:token,item_id:token\\n1,2\\n")
    PlainHeader(line=b'user_id,item_id', delimiter=',', end=27)
    """
    line_end = LINE_END.search(content)
    end = line_end.start() if line_end else len(content)
    line = content[:end].decode("utf-8", "replace")
    separator = SEPARATOR.match(line)
    delimiter = separator[1] if separator else "\t"
    names = [_name_of(path, field) for field in line.split(delimiter)]
    return PlainHeader(delimiter.join(names).encode(), delimiter, end)


def _name_of(path: Path, field: str) -> str:
    typed = TYPED_FIELD.fullmatch(field.strip())
    if typed is None:
        raise DataError(
            f"{path}: header field {field[:40]!r} has no type; the header of a .inter file names them all, such as "
            f"user_id:token and rating:float (types: {', '.join(TYPES)}), a plain table needs the suffix .tsv or .csv"
        )
    return typed[1]
