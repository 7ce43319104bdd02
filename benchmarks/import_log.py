"""How long `caged data import` takes for a large log, how much memory, and how fast training opens the result.

    python -m benchmarks.import_log --rows 100M --out benchmarks/results/import_100m_cpu2.json

A log is generated chunk by chunk as Parquet parts (or CSV) in a temporary folder, then imported by its own process,
whose peak memory is what the system reports (ru_maxrss). A second process opens the graph and builds what training
propagates over. Nothing of it stays on disk. `--into log` measures the import into Parquet instead.
"""

from __future__ import annotations

import argparse
import json
import os
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

from caged.arguments import counted
from caged.files import make_parent, write_json
from caged.seeding import numpy_generator

CHUNK = 1_000_000
CHUNKS_PER_PART = 10
# Runs in the process that is measured; prints the manifest.
IMPORT = "import sys; from caged.cli.main import main; sys.argv[0] = 'caged'; main()"
# Opens the graph and builds the pattern, prints how long both took.
OPEN = """
import json, sys, time
begun = time.perf_counter()
from caged.data import load
from caged.graph import BipartiteGraph
imported = time.perf_counter()
source = load(sys.argv[1])
opened = time.perf_counter()
graph = BipartiteGraph.from_interactions(source.parts["train"])
built = time.perf_counter()
print(json.dumps({"imports": imported - begun, "open": opened - imported, "graph": built - opened}))
"""


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


def generate(folder: Path, rows: int, users: int, items: int, *, csv: bool) -> int:
    """Write the parts of the log; how many bytes they take."""
    schema = chunk_of_log(0, 1, users, items).schema
    starts = list(range(0, rows, CHUNK))
    written = 0
    for part in range(0, len(starts), CHUNKS_PER_PART):
        path = folder / f"part-{part // CHUNKS_PER_PART:05d}.{'csv' if csv else 'parquet'}"
        writer: Any = (
            pa.csv.CSVWriter(path, schema) if csv else pa.parquet.ParquetWriter(path, schema, compression="zstd")
        )
        with writer:
            for index, start in enumerate(starts[part : part + CHUNKS_PER_PART], part):
                writer.write_table(chunk_of_log(index, min(CHUNK, rows - start), users, items))
        written += path.stat().st_size
    return written


def run(program: str, arguments: list[str]) -> tuple[Any, float, int]:
    """What the program printed as JSON, its seconds and its peak memory in bytes."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    printed, errors = process.stdout.read(), process.stderr.read()  # neither fills its pipe
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if status != 0:
        raise SystemExit(errors)
    return json.loads(printed), seconds, usage.ru_maxrss * 1024  # Linux counts in KiB


def measure(log: Path, out: Path, options: list[str]) -> dict[str, Any]:
    manifest, seconds, peak = run(IMPORT, ["data", "import", str(log / "part-*"), "-o", str(out), "--json", *options])
    kept = ("interactions", "users", "items", "merged_duplicates", "fingerprint", "fingerprints", "split")
    result = {
        "seconds": round(seconds, 1),
        "seconds_by_phase": manifest.get("seconds"),
        "peak_memory_bytes": peak,
        "result_bytes": sum(file.stat().st_size for file in out.rglob("*") if file.is_file()),
        **{key: manifest[key] for key in kept if key in manifest},
    }
    if out.suffix == ".cgraph":
        opened, _, peak = run(OPEN, [str(out)])
        result["opened"] = {"seconds": {name: round(value, 3) for name, value in opened.items()}}
        result["opened"]["peak_memory_bytes"] = peak
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: counted("--rows", text), default=1_000_000)
    parser.add_argument(
        "--users", type=lambda text: counted("--users", text), help="default: a fiftieth of the rows; 20M at 1B"
    )
    parser.add_argument("--items", type=lambda text: counted("--items", text), help="default: a tenth of the users")
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--into", choices=("graph", "log"), default="graph")
    parser.add_argument("--folder", type=Path, help="where the temporary files go; about 60 bytes per row")
    parser.add_argument("--out", type=Path, help="also write the result to this file")
    parser.add_argument("options", nargs="*", help="further options of caged data import, behind --")
    chosen = parser.parse_args()
    users = chosen.users or max(2, chosen.rows // 50)
    items = chosen.items or max(2, users // 10)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        log = Path(folder) / "log"
        log.mkdir()
        log_bytes = generate(log, chosen.rows, users, items, csv=chosen.format == "csv")
        result = {
            "rows": chosen.rows,
            "format": chosen.format,
            "into": chosen.into,
            "log_bytes": log_bytes,
            "asked_for": {"users": users, "items": items, "options": chosen.options},
            **measure(log, Path(folder) / ("it.cgraph" if chosen.into == "graph" else "imported"), chosen.options),
        }
    print(
        f"{result['rows']:,} rows ({chosen.format}): {result['seconds']} s, "
        f"{result['peak_memory_bytes'] / 2**30:.2f} GiB at most, {result['merged_duplicates']:,} duplicates merged\n"
        f"by phase: {result['seconds_by_phase']}\nopened: {result.get('opened')}"
    )
    if chosen.out:
        from benchmarks.circumstances import circumstances  # not at the top: a child inherits the peak of its parent

        make_parent(chosen.out)
        write_json(chosen.out, {**result, **circumstances("benchmarks.import_log", packages=("polars",))})


if __name__ == "__main__":
    main()
