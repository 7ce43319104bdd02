"""Tables that a command writes to a file that the user names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from caged.errors import ConfigError
from caged.files import replacing

SUFFIXES = (".parquet", ".csv")


def check_table_file(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"output file {path} must end in .parquet or .csv")


def write_table(table: pa.Table, path: Path) -> None:
    with replacing(path) as temporary, temporary.open("wb") as handle:
        if path.suffix == ".parquet":
            pq.write_table(table, handle, compression="zstd")
        else:
            pa_csv.write_csv(table, handle)
