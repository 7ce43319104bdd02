"""Tables that Arrow reads as they are: Feather and JSON lines."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from caged.data.readers.columns import Columns
from caged.errors import DataError

_CHANGED = re.compile(r"Column\((.*)\) changed from (\w+) to (\w+)")  # what Arrow says of other JSON


def read_feather(path: Path, columns: Columns) -> pa.Table:
    """Feather, which is a file of Arrow's IPC format."""
    from pyarrow import feather

    try:
        table = feather.read_table(path, memory_map=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, "Feather file", error) from error
    return table.select(columns.find(table.column_names, str(path)))


def read_json_lines(path: Path, columns: Columns) -> pa.Table:
    """One JSON object per line, plain or gzipped."""
    from pyarrow import json

    try:
        with pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None) as stream:
            table = json.read_json(stream)
    except (pa.ArrowException, OSError, ValueError) as error:
        changed = _CHANGED.search(str(error))
        if changed is not None:
            raise _other_json(path, *changed.groups()) from error
        raise _unreadable(path, "file of JSON lines, one object per line", error) from error
    return table.select(columns.find(table.column_names, str(path)))


def _other_json(path: Path, column: str, before: str, after: str) -> DataError:
    """For JSON that is sound, but no table: an array of objects, or values that other rows have as another type."""
    lines = "to_json(..., orient='records', lines=True)"
    if not column:
        return DataError(f"{path} holds JSON that is not one object per line, which is needed: {lines}")
    name = column.strip("/").split("/")[0]
    pairs = "; give ids and scores columns of their own" if "[]" in column else ""
    return DataError(
        f"{path}: column '{name}' holds {after}s where {before}s are expected; one object per line with one type per "
        f"column is needed: {lines}{pairs}"
    )


def _unreadable(path: Path, kind: str, error: Exception) -> DataError:
    return DataError(
        f"{path} is not a readable {kind} ({str(error).splitlines()[0][:200] if str(error) else 'damaged'}); "
        f"it may be damaged or truncated, fetch or write it again"
    )
