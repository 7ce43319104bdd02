"""Import of a log of any size into the canonical folder (see `caged.data.readers.canonical`), within bounded memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from caged._version import __version__
from caged.data.readers.canonical import FORMAT, INTERACTIONS, ITEMS, MANIFEST, OWN_COLUMNS, USERS
from caged.data.readers.columns import Columns
from caged.data.sorted_rows import Fingerprint, Numbering, SortedRows, sort_log
from caged.errors import DataError
from caged.files import new_folder, refuse_filled_folder, write_json
from caged.progress import ProgressReport, unreported

ROW_GROUP = 1 << 20


def import_log(
    logs: Iterable[str | Path],
    out: str | Path,
    *,
    columns: Columns | None = None,
    progress: ProgressReport = unreported,
) -> dict[str, Any]:
    """Import one or several files (names may hold wildcards) as one log into the new folder `out`.

    Read back, the result equals what `read_log` makes of the same rows in one file. Returns the manifest.
    """
    columns = columns or Columns()
    _check_kept(columns)
    refuse_filled_folder(Path(out))
    with new_folder(Path(out)) as folder:
        work = folder / "work"
        work.mkdir()
        rows = sort_log(logs, columns, work, progress)
        written = _write_pairs(rows, folder / INTERACTIONS, progress)
        shutil.rmtree(work)
        _write_ids(folder / USERS, "user", rows.users)
        _write_ids(folder / ITEMS, "item", rows.items)
        manifest = {
            "format": FORMAT,
            "caged": __version__,
            **written,
            "users": len(rows.users.ids),
            "items": len(rows.items.ids),
            "id_types": {"user_id": str(rows.users.ids.values.type), "item_id": str(rows.items.ids.values.type)},
            "merged_duplicates": rows.rows - written["interactions"],
            "notes": rows.notes,
            "sources": rows.sources,
        }
        write_json(folder / MANIFEST, manifest)
    return manifest


def _check_kept(columns: Columns) -> None:
    for name in columns.keep:
        if name in OWN_COLUMNS:
            raise DataError(f"column '{name}' cannot be kept under that name, which means something else in the result")


def _write_pairs(rows: SortedRows, path: Path, progress: ProgressReport) -> dict[str, Any]:
    """Write the pairs; their number, columns and fingerprint."""
    fingerprint = Fingerprint(rows.users.ids, rows.items.ids)
    count = 0
    with parquet.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for pairs in rows.tables(progress):
            writer.write_table(pairs, row_group_size=ROW_GROUP)
            fingerprint.update(pairs["user"].to_numpy(), pairs["item"].to_numpy())
            count += pairs.num_rows
    return {"interactions": count, "columns": rows.schema.names, "fingerprint": fingerprint.hexdigest()}


def _write_ids(path: Path, kind: str, numbering: Numbering) -> None:
    rows = np.arange(len(numbering.ids), dtype=np.int32)
    parquet.write_table(pa.table({kind: rows, f"{kind}_id": numbering.ids.values}), path, compression="zstd")
