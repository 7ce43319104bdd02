"""Readers of text: CSV, TSV and the LightGCN format, plain or gzipped."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from caged.data.ids import Array
from caged.data.readers.columns import Column, Columns, integers_where_all
from caged.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

LARGEST_ROW = 2**31 - 1
LONGEST_NUMBER = 18  # digits that certainly fit int64
EARLIEST_TIME = 10**8  # no catalogue has as many rows, while epoch seconds since 1973 are larger
LARGEST_RATING = 10
FEWEST_LINES = 10  # fewer lines may look like ratings by chance
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CHUNK = 1 << 24  # bytes
CSV_BLOCK = 1 << 24  # bytes; a record, quoted line breaks included, must fit


def read_text(path: Path) -> bytes:
    """The whole file, decompressed if it ends in .gz, checked to be UTF-8 text, without a byte order mark."""
    content = b"".join(text_chunks(path))
    reject_empty(path, content)
    return content


def reject_empty(path: Path, content: bytes) -> None:
    if not content or content.isspace():
        raise DataError(f"{path} is empty; a log needs at least one interaction")


def text_chunks(path: Path) -> Iterator[bytes]:
    """The file piece by piece, decompressed if it ends in .gz, checked to be UTF-8 text, without a byte order mark."""
    check = _Utf8Check(path)
    try:
        with _opened(path) as handle:
            chunk = handle.read(CHUNK).removeprefix(BYTE_ORDER_MARK)
            while chunk:
                check(chunk)
                yield chunk
                chunk = handle.read(CHUNK)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged or truncated gzip file ({error}); fetch or write it again") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}; check the path and its rights") from error
    check(b"", final=True)


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


class _Utf8Check:
    """Also where bytes are in columns that nobody asked for: a wrong encoding should not surface later, elsewhere."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.position = 0

    def __call__(self, chunk: bytes, *, final: bool = False) -> None:
        pending = self.decoder.getstate()[0]  # the beginning of a character that the last chunk cut in two
        if pending or final or not chunk.isascii():
            try:
                self.decoder.decode(chunk, final)
            except UnicodeDecodeError as error:
                seen = (pending + chunk)[error.start]
                wide = self.position == 0 and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                raise DataError(
                    f"{self.path} is not UTF-8 text: byte 0x{seen:02x} at position "
                    f"{self.position - len(pending) + error.start}; "
                    f"convert it, for example with: iconv -f {'utf-16' if wide else 'latin1'} -t utf-8 "
                    f"(a compressed or binary file needs its proper suffix)"
                ) from error
        if b"\0" in chunk:
            raise DataError(
                f"{self.path} is not text: it holds a NUL byte at position {self.position + chunk.index(0)}; "
                f"save it as UTF-8 text, or give a binary file its proper suffix"
            )
        self.position += len(chunk)


class ChunkStream(io.RawIOBase):
    """Pieces of bytes as a file to read from once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


# ---------------------------------------------------------------- tables


def read_csv(path: Path, columns: Columns) -> pa.Table:
    return _read_delimited(path, columns, ",")


def read_tsv(path: Path, columns: Columns) -> pa.Table:
    return _read_delimited(path, columns, "\t")


def _read_delimited(path: Path, columns: Columns, delimiter: str) -> pa.Table:
    return parse_table(path, read_text(path), columns, delimiter)


def parse_table(path: Path, content: bytes, columns: Columns, delimiter: str) -> pa.Table:
    """The wanted columns as text; identifiers as integers where a whole column is made of them."""
    from pyarrow import csv as arrow_csv

    header = header_of(path, content, delimiter)
    names = columns.find(header, str(path), hint=header_hint(header))
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(content), **csv_options(names, delimiter, newlines_in_values=b'"' in content)
        )
    except pa.ArrowException as error:
        raise malformed(path, delimiter, len(header), error) from error
    if columns.ids == "text":
        return table
    for name in columns.identifiers(table.column_names):
        column = Column(table[name], name, str(path), line_of=partial(line_of_row, path, delimiter))
        table = table.set_column(table.column_names.index(name), name, integers_where_all(column))
    return table


def csv_options(names: list[str], delimiter: str, *, newlines_in_values: bool) -> dict[str, Any]:
    """How Arrow is to read the columns `names` of a delimited table: as text, nothing taken for null."""
    from pyarrow import csv as arrow_csv

    return {
        "read_options": arrow_csv.ReadOptions(block_size=CSV_BLOCK),
        "parse_options": arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines_in_values),
        "convert_options": arrow_csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,  # what 'NA' and 'null' mean is for the column to say
        ),
    }


def _records(content: bytes, delimiter: str) -> CsvReader:
    # The beginning of a longer file may end within a character, hence "replace".
    return csv.reader(io.TextIOWrapper(io.BytesIO(content), "utf-8", "replace", newline=""), delimiter=delimiter)


def header_of(path: Path, content: bytes, delimiter: str) -> list[str]:
    try:
        return next(record for record in _records(content, delimiter) if record)
    except csv.Error as error:
        raise DataError(f"{path} has no readable header line ({error}); is it a CSV or TSV file?") from error


def header_hint(header: list[str]) -> str:
    if any(re.fullmatch(r"\s*-?[0-9]+(\.[0-9]*)?\s*", name) for name in header):
        return "; the first line looks like data: a header line such as user_id,item_id is missing, add it"
    if len(header) == 1 and re.search(r"[,;|\t]", header[0]):
        return "; this is a single column: separate a .csv file by commas and a .tsv file by tabs"
    return ""


def malformed(path: Path, delimiter: str, expected: int, error: Exception) -> DataError:
    """The error for a file that Arrow refused; the slow pass that finds the line runs only here."""
    for start, record in _lines_of_records(path, delimiter):
        if record and len(record) != expected:
            return DataError(
                f"{path}, line {start}: {len(record)} fields, expected {expected} as in the header; "
                f"repair the line, or quote fields that hold the separator"
            )
    return DataError(f"{path} cannot be parsed ({str(error).splitlines()[0][:200]}); is a quote left open?")


def line_of_row(path: Path, delimiter: str, row: int, text: str) -> int | None:
    """The line on which a data row (from 1) begins, None unless `text` is a field of it.

    For messages: blank lines, and line breaks in fields, count as lines and not as rows. Reads the file again.
    """
    rows = -1  # the header comes first
    for start, record in _lines_of_records(path, delimiter):
        rows += bool(record)
        if rows == row:
            return start if text in record else None
    return None


def _lines_of_records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Every record with the line where it begins, as far as the file can be read: messages have to do with that."""
    with (
        suppress(csv.Error, OSError, EOFError, zlib.error, UnicodeDecodeError),
        io.TextIOWrapper(_opened(path), "utf-8-sig", newline="") as lines,
    ):
        records = csv.reader(lines, delimiter=delimiter)
        start = 1
        for record in records:
            yield start, record
            start = records.line_num + 1


# ---------------------------------------------------------------- LightGCN text


NAMED = {"user": "user_id", "item": "item_id", "rating": "rating", "time": "timestamp"}


class UserLines(NamedTuple):
    """Pairs in file order, and the largest user of any line, since a line may list no items."""

    users: Array  # int64 (E,)
    items: Array  # int64 (E,)
    largest_user: int


def read_lightgcn(path: Path, columns: Columns) -> pa.Table:
    if not columns.name_nothing:
        raise DataError(
            f"{path} is LightGCN text (`user item item ...` per line) and has no named columns; "
            f"leave the column options out, or use .csv, .tsv or .parquet"
        )
    lines = parse_lightgcn(path)
    return pa.table({columns.user: lines.users, columns.item: lines.items})


def parse_lightgcn(path: Path) -> UserLines:
    """`user item item ...` per line: row numbers from 0; lines without items and repeated users are fine."""
    content = read_text(path).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    data = np.frombuffer(content, dtype=np.uint8)
    is_digit = data - np.uint8(ord("0")) < 10  # wraps around below "0"
    is_break = data == ord("\n")
    foreign = ~(is_digit | is_break | (data == ord(" ")) | (data == ord("\t")))
    if foreign.any():
        raise _bad_token(path, content, int(foreign.argmax()))

    edges = np.flatnonzero(np.diff(is_digit, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    values = _numbers(data, starts, ends)
    line = np.searchsorted(np.flatnonzero(is_break), starts)
    is_user = np.diff(line, prepend=-1) > 0
    _reject_ratings(path, values, is_user)
    if values.max() > LARGEST_ROW:
        raise _bad_token(path, content, int(starts[values.argmax()]))
    if is_user.all():
        raise DataError(f"{path} holds no interactions: none of its users has an item; is it the right file?")
    owner = values[is_user][np.cumsum(is_user) - 1]
    return UserLines(owner[~is_user], values[~is_user], int(values[is_user].max()))


def _reject_ratings(path: Path, values: Array, is_user: Array) -> None:
    """`user item rating time` per line would pass for users with three items each."""
    starts = np.flatnonzero(is_user)
    width = np.diff(starts, append=len(values))
    if not (width == width[0]).all() or width[0] not in (3, 4):
        return
    lines = values.reshape(len(starts), width[0])
    last = lines[:, -1]
    if (last >= EARLIEST_TIME).all():
        columns = "user item rating time" if width[0] == 4 else "user item time"
    elif (
        width[0] == 3
        and len(lines) >= FEWEST_LINES
        and last.max() <= LARGEST_RATING < lines[:, 1].max()
        and len(np.unique(lines[:, 0])) < len(lines)
    ):
        columns = "user item rating"
    else:
        return
    shown = " ".join(map(str, lines[0]))
    raise DataError(
        f"{path} looks like `{columns}` per line (such as `{shown}`), while a .txt file holds `user item item ...`; "
        f"write it as .csv with the header {','.join(NAMED[column] for column in columns.split())}"
    )


def _numbers(data: Array, starts: Array, ends: Array) -> Array:
    """The decimal numbers in data[starts:ends], one digit position of all of them at a time."""
    lengths = ends - starts
    values = np.zeros(len(starts), dtype=np.int64)
    for position in range(min(int(lengths.max()), LONGEST_NUMBER)):
        longer = np.flatnonzero(lengths > position)
        values[longer] = values[longer] * 10 + (data[starts[longer] + position] - ord("0"))
    values[lengths > LONGEST_NUMBER] = np.iinfo(np.int64).max
    return values


def _bad_token(path: Path, content: bytes, position: int) -> DataError:
    line = content.count(b"\n", 0, position) + 1
    before = re.search(rb"\S*\Z", content[max(0, position - 40) : position])
    after = re.match(rb"\S*", content[position : position + 40])
    token = ((before[0] if before else b"") + (after[0] if after else b"")).decode("utf-8", "replace")
    if re.fullmatch(r"-[0-9]+", token):
        problem = f"identifier {token} is negative; identifiers here are row numbers from 0"
    elif re.fullmatch(r"[0-9]+", token):
        problem = f"identifier {token} is above {LARGEST_ROW}; identifiers here are row numbers, renumber them"
    else:
        problem = f"'{token}' is not an integer"
    return DataError(
        f"{path}, line {line}: {problem}; a .txt file holds `user item item ...` per line, "
        f"other tables need the suffix .csv, .tsv or .parquet"
    )
