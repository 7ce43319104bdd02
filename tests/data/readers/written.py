"""Logs written for a test, and what was read of them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from caged.data import Interactions


def written(folder: Path, content: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def rows(log: Interactions) -> list[dict[str, Any]]:
    return log.to_arrow().to_pylist()


def pairs(log: Interactions) -> list[tuple[Any, Any]]:
    return [(row["user_id"], row["item_id"]) for row in rows(log)]
