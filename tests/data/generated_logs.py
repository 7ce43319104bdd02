"""Logs and lists whose meaning is known: drawn first, then written as the world writes them, well or badly."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

NO_IDS = ["NaN", "nan", "None", "null", "NULL", "NA", "<NA>", "", "  ", "1.23e+12", "4E+05", "1.5e9"]
STYLES = {
    "integers": str,
    "padded": lambda number: f"{number:03d}",
    "words": lambda number: f"u{number}",
    "unicode": lambda number: f"caf\u00e9 {number} \U0001f40d",
    "quoted": lambda number: f'a,"{number}"\tb',
}
START = datetime(2024, 3, 1, tzinfo=UTC)


class Row(NamedTuple):
    user: str
    item: str
    rating: int
    tick: int  # milliseconds after `START`


@dataclass(frozen=True)
class Case:
    """A file, how it is to be read, and what it means; `pairs` is None where it has to be refused."""

    suffix: str
    content: bytes
    ids: str
    pairs: dict[tuple[Any, Any], int | None] | None  # with the latest rating, where there is one


def drawn_case(seed: int) -> Case:
    random = Random(seed)
    suffix = random.choice([".csv", ".csv.gz", ".tsv", ".inter", ".parquet", ".txt"])
    if suffix == ".txt":
        return _lightgcn_case(random)
    styles = [random.choice(list(STYLES)) for _ in range(2)]
    rows = _rows(random, styles)
    ids = random.choice(["auto", "auto", "text"])
    odd = random.random() < 0.2
    if odd:
        place = random.randrange(len(rows))
        rows[place] = rows[place]._replace(**{random.choice(["user", "item"]): random.choice(NO_IDS)})
    times = random.choice(["none", "numbers", "moments"])
    content = _parquet(random, rows, times) if suffix == ".parquet" else _table(random, rows, times, suffix)
    return Case(suffix, content, ids, _meaning(rows, times, ids, typed=suffix == ".parquet"))


def _rows(random: Random, styles: list[str]) -> list[Row]:
    user, item = (STYLES[style] for style in styles)
    users, items = random.randint(1, 6), random.randint(1, 8)
    return [
        Row(
            user(random.randrange(users)),
            item(random.randrange(items)),
            random.randint(1, 5),
            random.choice([0, 1, 2, 999, 1000, 5000, 5001]),
        )
        for _ in range(random.randint(1, 30))
    ]


def _meaning(rows: list[Row], times: str, ids: str, *, typed: bool) -> dict[tuple[Any, Any], int | None] | None:
    """By the rules of docs/data.md, one row after the other."""
    columns = [[row.user for row in rows], [row.item for row in rows]]
    if ids == "auto" and any(value in NO_IDS for column in columns for value in column):
        return None
    if any(len(set(column)) < 2 for column in columns):
        return None
    numbers = [ids == "auto" and not typed and all(map(_is_integer, column)) for column in columns]
    latest: dict[tuple[Any, Any], tuple[int, int]] = {}
    for row in rows:
        pair = tuple(int(v) if number else v for v, number in zip((row.user, row.item), numbers, strict=True))
        tick = 0 if times == "none" else row.tick
        if pair not in latest or tick >= latest[pair][0]:
            latest[pair] = (tick, row.rating)
    return {pair: rating for pair, (_, rating) in latest.items()}  # type: ignore[misc]


def _is_integer(text: str) -> bool:
    return text.isascii() and text.isdigit() and str(int(text)) == text


def _time(row: Row, times: str) -> str:
    if times == "numbers":
        return str(1_700_000_000_000 + row.tick)
    return (START + timedelta(milliseconds=row.tick)).strftime("%Y-%m-%d %H:%M:%S.%f")


def _table(random: Random, rows: list[Row], times: str, suffix: str) -> bytes:
    delimiter = {".tsv": "\t", ".inter": "\t"}.get(suffix, ",")
    names = ["user_id", "item_id", "rating", *(["timestamp"] if times != "none" else []), "further"]
    order = random.sample(range(len(names)), len(names))
    types = {"user_id": "token", "item_id": "token", "further": "token"}
    header = [f"{name}:{types.get(name, 'float')}" if suffix == ".inter" else name for name in names]
    text = io.StringIO()
    quoting = random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]) if suffix != ".inter" else csv.QUOTE_MINIMAL
    write = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=random.choice(["\n", "\r\n"]))
    text.write(delimiter.join(header[place] for place in order) + "\n")
    for row in rows:
        cells = [row.user, row.item, str(row.rating), *([_time(row, times)] if times != "none" else []), "x\ny"]
        write.writerow(cells[place] for place in order)
        if random.random() < 0.05:
            text.write("\n")
    encoded = text.getvalue().encode(random.choice(["utf-8", "utf-8-sig"]) if suffix != ".inter" else "utf-8")
    return gzip.compress(encoded, mtime=0) if suffix.endswith(".gz") else encoded


def _parquet(random: Random, rows: list[Row], times: str) -> bytes:
    columns: dict[str, Any] = {
        "item_id": pa.array([row.item for row in rows]),
        "user_id": pa.array([row.user for row in rows]).dictionary_encode(),
        "rating": [row.rating for row in rows],
    }
    if times == "numbers":
        columns["timestamp"] = [1_700_000_000_000 + row.tick for row in rows]
    elif times == "moments":
        kind = pa.timestamp(random.choice(["ms", "us", "ns"]), tz=random.choice([None, "UTC", "Europe/Paris"]))
        moments = [START + timedelta(milliseconds=row.tick) for row in rows]
        columns["timestamp"] = pa.array([m if kind.tz else m.replace(tzinfo=None) for m in moments], type=kind)
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _lightgcn_case(random: Random) -> Case:
    """Lists of items, or ratings that only look like them."""
    users = random.randint(1, 8)
    if random.random() < 0.3:
        lines = [
            f"{random.randrange(users)} {random.randrange(50)} {random.randint(1, 5)} {881_250_949 + number}"
            for number in range(random.randint(1, 20))
        ]
        return Case(".txt", "\n".join(lines).encode(), "auto", None)
    ids = random.choice(["auto", "text"])
    lists = {user: random.sample(range(30), random.randint(0, 6)) for user in range(users)}
    text = random.choice(["\n", "\r\n"]).join(" ".join(map(str, [user, *items])) for user, items in lists.items())
    pairs = {(user, item) for user, items in lists.items() for item in items}
    if len({user for user, _ in pairs}) < 2 or len({item for _, item in pairs}) < 2:
        return Case(".txt", text.encode(), ids, None)
    named = {(str(u), str(i)) if ids == "text" else (u, i): None for u, i in pairs}
    return Case(".txt", text.encode(), ids, named)  # type: ignore[arg-type]


# ---------------------------------------------------------------- lists


@dataclass(frozen=True)
class AuditCase:
    """Files of an audit by name, how ids are read, and its recall; None where it has to be refused."""

    files: dict[str, bytes]
    k: int
    ids: str
    recall: float | None


def drawn_audit(seed: int) -> AuditCase:
    random = Random(seed)
    user, item = (STYLES[random.choice(list(STYLES))] for _ in range(2))
    users, items, k = random.randint(2, 6), random.randint(4, 9), random.randint(1, 4)
    train = {(u, i) for u in range(users) for i in random.sample(range(items), 2)}
    test = {(u, i) for u in range(users) for i in range(items) if (u, i) not in train and random.random() < 0.3}
    lists = {u: random.sample(range(items), random.randint(1, items)) for u in range(users) if random.random() < 0.8}
    rows = [(user(u), item(i), rank) for u, listed in lists.items() for rank, i in enumerate(listed, start=1)]
    random.shuffle(rows)
    ids, odd = random.choice(["auto", "text"]), random.random() < 0.2
    if odd and rows:  # one row becomes another user's
        place = random.randrange(len(rows))
        rows[place] = (random.choice(NO_IDS), *rows[place][1:])
    ranked: dict[str, list[str]] = {}
    for name, listed, _ in sorted(rows, key=lambda row: row[2]):
        ranked.setdefault(name, []).append(listed)
    wanted: dict[str, set[str]] = {}
    for u, i in test:
        wanted.setdefault(user(u), set()).add(item(i))
    shares = [len(relevant.intersection(ranked.get(name, [])[:k])) / len(relevant) for name, relevant in wanted.items()]
    refused = not rows or not test or (odd and ids == "auto")
    files = {
        "train.csv": _pairs([(user(u), item(i)) for u, i in sorted(train)]),
        "test.csv": _pairs([(user(u), item(i)) for u, i in sorted(test)]),
        "recs.csv": _csv(["user_id", "item_id", "rank"], rows),
    }
    return AuditCase(files, k, ids, None if refused else sum(shares) / len(shares))


def _pairs(pairs: list[tuple[str, str]]) -> bytes:
    return _csv(["user_id", "item_id"], pairs)


def _csv(header: list[str], rows: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()
