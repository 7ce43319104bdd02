"""Files of datasets, written for a test."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def put(folder: Path, **files: str | bytes | pa.Table) -> Path:
    """Write files; `__` in a keyword stands for the dot of the name."""
    folder.mkdir(parents=True, exist_ok=True)
    for keyword, content in files.items():
        path = folder / keyword.replace("__", ".")
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            raw = content.encode("latin-1") if isinstance(content, str) else content
            path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return folder


def pairs(table: pa.Table) -> set[tuple[int, int]]:
    return set(zip(table["user_id"].to_pylist(), table["item_id"].to_pylist(), strict=True))


def coat_tables() -> dict[str, pa.Table]:
    train = pa.table({"user": [0, 0, 1], "item": [0, 1, 1], "rating": [5, 1, 2]})
    test = pa.table({"user": [0, 0, 1, 1], "item": [1, 2, 1, 0], "rating": [1, 3, 2, 4]})
    return {"train__parquet": train, "test__parquet": test}
