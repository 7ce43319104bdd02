"""The folder that `caged data import` writes, and how it is read.

interactions.parquet   user, item (row numbers), sorted and distinct; rating, timestamp (integers, or moments where
                       some have fractions of a second) and kept columns where given
users.parquet          user, user_id: the external identifier of every row
items.parquet          item, item_id
manifest.json          counts, fingerprint and sources
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.readers.columns import Column, Columns, kept_values
from caged.data.times import Times, TimeUnit
from caged.errors import DataError, RunError, unknown
from caged.files import read_json

FORMAT = 1
INTERACTIONS, USERS, ITEMS, MANIFEST = "interactions.parquet", "users.parquet", "items.parquet", "manifest.json"
OWN_COLUMNS = ("user", "item", "rating", "timestamp")


def is_canonical(folder: Path) -> bool:
    return (folder / INTERACTIONS).is_file() and (folder / MANIFEST).is_file()


def read_canonical(folder: Path, *, columns: Columns | None = None) -> Interactions:
    """The interactions in a folder that `caged data import` wrote; with `columns`, only these of the kept columns."""
    if columns is not None and columns != Columns(
        keep=columns.keep, keep_if_there=columns.keep_if_there, ids=columns.ids
    ):
        raise DataError(
            f"{folder} was written by caged data import, which named its columns; leave the column options out here"
        )
    manifest = read_manifest(folder)
    present = manifest["columns"]
    kept = [name for name in present if name not in OWN_COLUMNS] if columns is None else list(columns.keep)
    if columns is not None and columns.keep_if_there:
        kept = [name for name in kept if name in present]
    for name in kept:
        if name not in present:
            raise DataError(f"{unknown(f'column in {folder}', name, present)}; import the log again with --keep {name}")
    wanted = list(dict.fromkeys([*(name for name in OWN_COLUMNS if name in present), *kept]))
    table = _read(folder / INTERACTIONS, wanted)
    if table.num_rows != manifest["interactions"]:
        raise DataError(
            f"{folder / INTERACTIONS} has {table.num_rows:,} rows, {MANIFEST} says {manifest['interactions']:,}; "
            f"import the log again"
        )

    def values(name: str, kind: str) -> Any:
        return table[name].to_numpy().astype(kind) if name in present else None

    times = _times(table["timestamp"]) if "timestamp" in present else None
    log = Interactions(
        user_ids=_ids(folder / USERS, "user_id"),
        item_ids=_ids(folder / ITEMS, "item_id"),
        users=values("user", "int64"),
        items=values("item", "int64"),
        rating=values("rating", "float64"),
        timestamp=None if times is None else times.values,
        timestamp_unit="s" if times is None else times.unit,
        columns={name: kept_values(Column(table[name], name, str(folder))) for name in kept},
        merged=manifest["merged_duplicates"],
        notes=tuple(manifest.get("notes", ())),  # older folders have none
    )
    return log.with_text_ids() if columns is not None and columns.ids == "text" else log


def _times(stored: pa.ChunkedArray) -> Times:
    """In the unit in which they were written: whole seconds are integers."""
    unit: TimeUnit = stored.type.unit if pa.types.is_timestamp(stored.type) else "s"
    return Times(stored.cast(pa.int64()).to_numpy(), unit)


def read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_json(folder / MANIFEST)
    except RunError as error:
        raise DataError(str(error)) from error
    needed = ("interactions", "merged_duplicates", "columns")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or any(key not in manifest for key in needed):
        raise DataError(
            f"{folder / MANIFEST} is not a manifest of format {FORMAT}; import the log again with caged data import"
        )
    return manifest


def _read(path: Path, names: list[str]) -> pa.Table:
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            return file.read(columns=names).select(names)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({str(error).splitlines()[0][:200]}); import the log again") from error


def _ids(path: Path, name: str) -> IdMap:
    values = _read(path, [name])[name].combine_chunks()
    target = pa.int64() if pa.types.is_integer(values.type) else pa.large_string()
    values = values.cast(target)
    if not np.all(pc.less(values[:-1], values[1:]).to_numpy(zero_copy_only=False)):
        raise DataError(f"{path} is not sorted by {name} or repeats one; import the log again")
    return IdMap(values)
