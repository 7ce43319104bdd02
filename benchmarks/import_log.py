"""How long `caged data import` takes for a large log, and how much memory.

    python -m benchmarks.import_log --rows 100_000_000 --json benchmarks/results/import_100m_cpu2.json

A log is generated chunk by chunk as Parquet (or CSV) in a temporary folder, then imported by a process of its own,
whose peak memory is what the system reports (ru_maxrss). Nothing of it stays on disk.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from caged.files import make_parent, write_json
from caged.seeding import numpy_generator

CHUNK = 1_000_000
# Runs in the process that is measured; prints the manifest.
IMPORT = "import sys; from caged.cli.main import main; sys.argv[0] = 'caged'; main()"


def chunk_of_log(index: int, rows: int, users: int, items: int) -> pa.Table:
    """Popular items and busy users (a power law each), identifiers with gaps, times in no order, some duplicates."""
    generator = numpy_generator(index, "import_log")
    user = (users * generator.random(rows) ** 1.5).astype(np.int64)
    item = (items * generator.random(rows) ** 3).astype(np.int64)
    return pa.table(
        {
            "user_id": 1000 + 7 * ((user * 7919) % users),  # scattered, so that rows and identifiers differ
            "item_id": 1 + 3 * ((item * 104729) % items),
            "rating": generator.integers(1, 11, rows) / 2.0,
            "timestamp": 1_500_000_000 + generator.integers(0, 10**8, rows),
        }
    )


def generate(path: Path, rows: int, users: int, items: int) -> None:
    schema = chunk_of_log(0, 1, users, items).schema
    csv = path.suffix == ".csv"
    writer: Any = pa.csv.CSVWriter(path, schema) if csv else pa.parquet.ParquetWriter(path, schema, compression="zstd")
    with writer:
        for index, start in enumerate(range(0, rows, CHUNK)):
            writer.write_table(chunk_of_log(index, min(CHUNK, rows - start), users, items))


def measure(log: Path, out: Path) -> dict[str, Any]:
    start = time.perf_counter()
    arguments = ["data", "import", str(log), "-o", str(out), "--json"]
    done = subprocess.run([sys.executable, "-c", IMPORT, *arguments], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    # Of finished children the largest, and there was but one; Linux counts in KiB.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    manifest = json.loads(done.stdout)
    return {
        "seconds": round(seconds, 1),
        "peak_memory_bytes": peak,
        "result_bytes": sum(file.stat().st_size for file in out.iterdir()),
        **{key: manifest[key] for key in ("interactions", "users", "items", "merged_duplicates", "fingerprint")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, help="default: a hundredth of the rows")
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--folder", type=Path, help="where the temporary files go; about 60 bytes per row")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    options = parser.parse_args()
    users = options.users or max(2, options.rows // 100)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        log = Path(folder) / f"log.{options.format}"
        generate(log, options.rows, users, options.items)
        result = {
            "rows": options.rows,
            "format": options.format,
            "log_bytes": log.stat().st_size,
            "asked_for": {"users": users, "items": options.items},
            **measure(log, Path(folder) / "imported"),
        }
    print(
        f"{result['rows']:,} rows ({options.format}): {result['seconds']} s, "
        f"{result['peak_memory_bytes'] / 2**30:.2f} GiB at most, {result['interactions']:,} pairs, "
        f"{result['merged_duplicates']:,} duplicates merged"
    )
    if options.json:
        from benchmarks.circumstances import circumstances  # not at the top: a child inherits the peak of its parent

        make_parent(options.json)
        write_json(options.json, {**result, **circumstances("benchmarks.import_log", packages=("polars",))})


if __name__ == "__main__":
    main()
