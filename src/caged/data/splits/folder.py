"""A split as a folder that `--data` takes: a Parquet file for each of its parts, and manifest.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq

from caged.data.readers.columns import Columns
from caged.data.splits.kinds import JSON, Split
from caged.errors import DataError
from caged.files import new_folder, write_json

FORMAT = 1  # of manifest.json
WRITTEN_ANYWAY = (Columns.user, Columns.item, Columns.rating, Columns.timestamp)


def manifest_of(parts: Split) -> dict[str, JSON]:
    """How the split was made and what came out: all that is needed to make, recognise and judge it again."""
    return {
        "format": FORMAT,
        "kind": parts.kind,
        "parameters": dict(parts.parameters),
        "notes": dict(parts.notes),
        "users": parts.train.user_count,
        "items": parts.train.item_count,
        "interactions": {name: len(part) for name, part in parts.parts.items()},
        "item_gini": dict(parts.item_gini),
        "fingerprints": {name: part.fingerprint for name, part in parts.parts.items()},
        "split_fingerprint": parts.fingerprint,
    }


def check_kept(names: tuple[str, ...]) -> None:
    """Kept columns must not take the names under which the folder holds ids, ratings and timestamps."""
    for name in names:
        if name in WRITTEN_ANYWAY:
            raise DataError(f"column '{name}' cannot be kept beside the one of this name that is written anyway")


def write_split(parts: Split, folder: Path, *, origin: Mapping[str, JSON] | None = None) -> dict[str, JSON]:
    """Write all parts, in external ids and with every column they carry, and the manifest: all files or no folder.

    `origin` says where the log came from. Read again, the folder gives the same parts and the same fingerprints.
    """
    check_kept(tuple(name for part in parts.parts.values() for name in part.columns))
    manifest = {**manifest_of(parts), "origin": dict(origin or {})}
    with new_folder(folder) as temporary:
        for name, part in parts.parts.items():
            pq.write_table(part.to_arrow(), temporary / f"{name}.parquet", compression="zstd")
        write_json(temporary / "manifest.json", manifest)
    return manifest
