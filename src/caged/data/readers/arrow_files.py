"""Tables that Arrow reads as they are: Feather and JSON lines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from caged.data.readers.columns import Columns
from caged.errors import DataError


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
        raise _unreadable(path, "file of JSON lines, one object per line", error) from error
    return table.select(columns.find(table.column_names, str(path)))


def _unreadable(path: Path, kind: str, error: Exception) -> DataError:
    return DataError(
        f"{path} is not a readable {kind} ({str(error).splitlines()[0][:200] if str(error) else 'damaged'}); "
        f"it may be damaged or truncated, fetch or write it again"
    )
