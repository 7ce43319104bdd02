"""Small logs and the graph folders made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from caged.data.cgraph.reading import OpenedGraph, open_graph
from caged.data.cgraph.writing import import_graph

ROWS = 600


def a_log(rows: int = ROWS, *, text_ids: bool = False, seed: int = 5) -> pa.Table:
    """Some users with one pair and some with many, items of all sorts, repeats, equal times."""
    generator = np.random.default_rng(seed)
    users = (40 * generator.random(rows) ** 2).astype(np.int64) * 3 + 7
    items = (25 * generator.random(rows) ** 2).astype(np.int64) * 2
    return pa.table(
        {
            "user_id": [f"u{user}" for user in users] if text_ids else users,
            "item_id": [f"i{item}" for item in items] if text_ids else items,
            "rating": generator.integers(1, 6, rows).astype(np.float64),
            "timestamp": generator.integers(0, 90, rows),
        }
    )


def written(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path)
    return path


def a_graph(folder: Path, **options: Any) -> Path:
    """`folder`/it.cgraph, of a log beside it."""
    import_graph([written(a_log(), folder / "log.parquet")], folder / "it.cgraph", **options)
    return folder / "it.cgraph"


def opened(folder: Path, **options: Any) -> OpenedGraph:
    return open_graph(a_graph(folder, **options))
