"""Files as the world writes them, and as it damages them: strategies that draw the bytes of a log file."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from scipy import sparse

Draw = st.DrawFn

LONG = 200_000  # characters of a very long field: longer than what Python's csv module accepts
NUMBERS = st.integers(0, 5).map(str)
WORDS = st.sampled_from(["a", "b", "caf\u00e9", "\U0001f40d", "\u202e", "x y", "-0", "007", "1e3", "ALL"])
NO_IDS = st.sampled_from(["NA", "null", "NaN", "None", "<NA>", "1.23e+12", "4E+05"])
MOMENTS_OF_TEXT = st.sampled_from(
    ["2024-03-01", "2024-03-01 12:00:00.5", "2024-03-01T12:00:00.000001", "1969-12-31 23:59:59.999999999", "1600-01-01"]
)
TIMES_IN_TWO_UNITS = st.sampled_from(["1700000000", "1700000000001", "5"])
ODD = st.one_of(
    st.sampled_from(["", " ", "-4", "nan", "inf", "1.5", "2020-01-01", "2020-01-01T00:00:00Z", "true", '"', "'", "\\"]),
    st.sampled_from([str(2**63 - 1), str(2**63), str(2**64), "9" * 400, "-" + "9" * 30, "0x10", "1,5", "\u0661"]),
    st.sampled_from(
        ["\0", "\ufeff", "\x1a", "\x85", "\u2028", "\x0b", 'a"b', '"a"', "a\tb", "a\nb", "a\r\nb", ";", "|"]
    ),
    st.just("z" * LONG),
    st.text(max_size=8),
    NO_IDS,
)
HEADERS = ("user_id", "item_id", "rating", "timestamp")


def mostly(usual: st.SearchStrategy[Any], rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 9).flatmap(lambda die: rare if die == 9 else usual)


def lists_of(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists of a few or of many elements; left alone, hypothesis prefers the short ones."""
    return st.sampled_from([0, 2, 15, 30]).flatmap(lambda least: st.lists(elements, min_size=least, max_size=least + 8))


@st.composite
def delimited(draw: Draw, delimiter: str, *, typed: bool = False) -> bytes:
    """A table: usually a proper one, now and then with something odd in header, cells, rows, quotes or encoding."""
    width = draw(st.integers(2, 4))
    names = list(HEADERS[:width])
    if draw(st.integers(0, 9)) == 0:
        names = draw(st.lists(st.one_of(st.sampled_from(HEADERS), ODD), max_size=5))
    types = ("token", "token", "float", "float", "word")
    header = [f"{name}:{types[place]}" for place, name in enumerate(names)] if typed else names
    identifiers = draw(st.sampled_from([NUMBERS, WORDS, st.one_of(NUMBERS, WORDS)]))
    cell = identifiers if draw(st.booleans()) else mostly(identifiers, ODD)
    times = draw(st.sampled_from([NUMBERS, NUMBERS, MOMENTS_OF_TEXT, TIMES_IN_TWO_UNITS]))
    row = st.tuples(cell, cell, NUMBERS, times).map(lambda values: list(values[:width]))
    rows = draw(lists_of(row))
    if draw(st.integers(0, 7)) == 0:
        rows.append(draw(st.lists(cell, max_size=6)))  # ragged
    quoting = draw(st.sampled_from(["none", "needed", "all"]))
    other = draw(mostly(st.just(delimiter), st.sampled_from([",", ";", "|", "\t", " ", "::", "\x01"])))
    line_end = draw(mostly(st.just("\n"), st.sampled_from(["\r\n", "\r", "\n\n", "\n\r", "\u2028", ""])))
    lines = [other.join(quoted(value, quoting, other) for value in line) for line in [header, *rows]]
    return encoded(draw, line_end.join([*lines, *draw(st.sampled_from([[], [""], ["", ""], ["\x1a"]]))]))


def quoted(value: str, quoting: str, delimiter: str) -> str:
    needed = any(mark in value for mark in (delimiter, '"', "\n", "\r"))
    if quoting == "all" or (quoting == "needed" and needed):
        return '"' + value.replace('"', '""') + '"'
    return value


def encoded(draw: Draw, text: str) -> bytes:
    encoding = draw(mostly(st.sampled_from(["utf-8", "utf-8-sig"]), st.sampled_from(["utf-16", "utf-32", "latin-1"])))
    return text.encode(encoding, "replace")


@st.composite
def lightgcn(draw: Draw) -> bytes:
    token = NUMBERS if draw(st.integers(0, 3)) else mostly(NUMBERS, ODD)
    lines = draw(lists_of(st.lists(token, max_size=6)))
    gap = draw(mostly(st.just(" "), st.sampled_from(["\t", "  ", ",", "\u00a0"])))
    return encoded(draw, draw(st.sampled_from(["\n", "\r\n", "\r"])).join(gap.join(line) for line in lines))


@st.composite
def columns(draw: Draw, rows: int) -> pa.Array:
    """A Parquet column of one of many types, now and then with nulls."""

    def values(of: st.SearchStrategy[Any]) -> list[Any]:
        missing = draw(st.integers(0, 9)) == 0
        return draw(st.lists(st.one_of(of, st.none()) if missing else of, min_size=rows, max_size=rows))

    kind = draw(mostly(st.sampled_from(["int64", "string", "int8"]), st.sampled_from(sorted(RARE_TYPES))))
    if kind in ("int64", "int8"):
        return pa.array(values(st.integers(0, 5)), type=kind)
    if kind == "string":
        return pa.array(values(st.one_of(WORDS, NUMBERS)), type=pa.string())
    arrow_type, of = RARE_TYPES[kind]
    return pa.array(values(of), type=arrow_type)


MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
RARE_TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "uint64": (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    "negative": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), st.one_of(st.integers(0, 4).map(float), st.floats())),
    "half": (pa.float16(), st.sampled_from([np.float16(1), np.float16(0.5), np.float16("nan")])),
    "bool": (pa.bool_(), st.booleans()),
    "odd text": (pa.string(), ODD.filter(lambda text: len(text) < LONG)),
    "large text": (pa.large_string(), WORDS),
    "binary": (pa.binary(), st.binary(max_size=4)),
    "fixed": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 3), max_size=2)),
    "struct": (pa.struct([("a", pa.int64())]), st.fixed_dictionaries({"a": st.integers(0, 3)})),
    "decimal": (pa.decimal128(10, 2), st.integers(-500, 500).map(lambda cents: decimal.Decimal(cents) / 100)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "moment": (pa.timestamp("us"), MOMENTS),
    "zoned": (pa.timestamp("ms", tz="Europe/Paris"), MOMENTS),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), WORDS),
    "duration": (pa.duration("s"), st.integers(0, 9)),
    "null": (pa.null(), st.none()),
}


@st.composite
def parquets(draw: Draw) -> bytes:
    rows = draw(st.sampled_from([0, 1, 5, 15, 30]))
    names = list(HEADERS[: draw(st.integers(2, 4))])
    if draw(st.integers(0, 9)) == 0:
        names = draw(st.lists(st.one_of(st.sampled_from(HEADERS), WORDS), max_size=4))
    table = pa.table([draw(columns(rows)) for _ in names], names=names)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=draw(st.sampled_from(["none", "zstd", "snappy"])))
    return sink.getvalue()


@st.composite
def matrices(draw: Draw) -> bytes:
    users, items = (draw(mostly(st.integers(4, 8), st.integers(0, 3))) for _ in range(2))
    count = draw(st.sampled_from([0, 1, 8, 30, 30])) if users and items else 0
    value = draw(st.sampled_from([st.just(1.0), st.integers(0, 5).map(float), mostly(st.just(1.0), st.floats())]))
    data = draw(st.lists(value, min_size=count, max_size=count))
    rows = draw(st.lists(st.integers(0, max(users - 1, 0)), min_size=count, max_size=count))
    cells = draw(st.lists(st.integers(0, max(items - 1, 0)), min_size=count, max_size=count))
    kind = draw(st.sampled_from(["f8", "f4", "i4", "?", "c16"]))
    with np.errstate(all="ignore"):
        values = np.nan_to_num(np.array(data)).astype(kind) if kind == "i4" else np.array(data).astype(kind)
        matrix = sparse.coo_array((values, (rows, cells)), shape=(users, items))
    sink = io.BytesIO()
    sparse.save_npz(sink, matrix.asformat(draw(st.sampled_from(["coo", "csr", "csc"]))))
    return sink.getvalue()


@st.composite
def damaged(draw: Draw, whole: st.SearchStrategy[bytes], *, compressed: bool = False) -> bytes:
    """The file itself in most cases; else cut, overwritten, doubled, emptied, or random bytes in its place."""
    content = draw(whole)
    if compressed:
        content = gzip.compress(content, mtime=0)
    harm = draw(st.sampled_from(["none"] * 6 + ["cut", "overwritten", "inserted", "doubled", "empty", "random"]))
    place = draw(st.integers(0, max(len(content) - 1, 0)))
    if harm == "cut":
        return content[:place]
    if harm == "overwritten":
        bytes_there = draw(st.binary(min_size=1, max_size=8))
        return content[:place] + bytes_there + content[place + len(bytes_there) :]
    if harm == "inserted":
        return content[:place] + draw(st.binary(min_size=1, max_size=8)) + content[place:]
    if harm == "random":
        return draw(st.binary(max_size=300))
    return {"none": content, "doubled": content * 2, "empty": b""}[harm]


FORMATS: dict[str, st.SearchStrategy[bytes]] = {
    ".csv": damaged(delimited(",")),
    ".csv.gz": damaged(delimited(","), compressed=True),
    ".tsv": damaged(delimited("\t")),
    ".tsv.gz": damaged(delimited("\t"), compressed=True),
    ".txt": damaged(lightgcn()),
    ".txt.gz": damaged(lightgcn(), compressed=True),
    ".inter": damaged(delimited("\t", typed=True)),
    ".inter.gz": damaged(delimited("\t", typed=True), compressed=True),
    ".parquet": damaged(parquets()),
    ".npz": damaged(matrices()),
}
