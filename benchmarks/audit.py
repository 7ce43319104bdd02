"""How long an audit of many lists takes, and how much memory; and the same metrics written with pandas.

    python -m benchmarks.audit --rows 10_000_000 --rounds 3 --json benchmarks/results/audit_10m_cpu2.json
    python -m benchmarks.audit --rows 100_000_000 --no-pandas --order shuffled --items 200_000 \\
        --json benchmarks/results/audit_100m_cpu2.json

Lists of 20 items, a training log of four interactions per user and a test part of one are generated in a temporary
folder. Each side reads the files and computes every metric at k = 20 in processes of its own, whose peak memory is what
the system reports (ru_maxrss); the sides take turns. Seconds do not count the start of Python. Values must agree.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from caged.data.ids import Array
from caged.files import make_parent, write_json
from caged.page.text_table import markdown_table
from caged.seeding import numpy_generator

K = 20
TRAIN_PER_USER = 4
CHUNK = 50_000  # users
ORDERS = ("by_user", "shuffled")
TOLERANCE = 1e-9


def distinct_items(generator: np.random.Generator, users: int, places: int, items: int) -> Array:
    """(users, places) distinct items per row, one out of each stratum of a power law, in random order."""
    bounds = np.floor(items * (np.arange(places + 1) / places) ** 3).astype(np.int64)
    bounds = np.maximum.accumulate(np.maximum(bounds, np.arange(places + 1)))  # no stratum is empty
    drawn = bounds[:-1] + (generator.random((users, places)) * np.diff(bounds)).astype(np.int64)
    return np.take_along_axis(drawn, generator.random((users, places)).argsort(axis=1), axis=1)


def as_text(numbers: Array, letter: str) -> pa.Array:
    """Identifiers such as u0001007."""
    return pc.binary_join_element_wise(letter, pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 8, "0"), "")


def generate(folder: Path, users: int, items: int, order: str, ids: str) -> None:
    """recs.parquet, train.parquet, test.parquet; identifiers have gaps, users are in no order."""
    writers: dict[str, Any] = {}
    row_of = numpy_generator(0, "users").permutation(users)
    for index, start in enumerate(range(0, users, CHUNK)):
        generator = numpy_generator(index, "audit")
        user = 1000 + 7 * row_of[start : start + CHUNK].astype(np.int64)
        if order == "by_user":
            user = 1000 + 7 * np.arange(start, min(start + CHUNK, users))
        had = 3 * distinct_items(generator, len(user), TRAIN_PER_USER + 1, items) + 1
        shown = 3 * distinct_items(generator, len(user), K, items) + 1
        rank = np.tile(np.arange(1, K + 1, dtype=np.int32), len(user))
        rows = {"user_id": np.repeat(user, K), "item_id": shown.ravel()}
        if order == "by_user":
            rows["rank"] = rank
        rows["score"] = generator.random(len(rank)) - rank if order == "shuffled" else 1.0 / rank
        if order == "shuffled":
            mixed = generator.permutation(len(rank))
            rows = {name: values[mixed] for name, values in rows.items()}
        tables = {
            "recs": rows,
            "train": {"user_id": np.repeat(user, TRAIN_PER_USER), "item_id": had[:, :-1].ravel()},
            "test": {"user_id": user, "item_id": had[:, -1]},
        }
        for name, columns in tables.items():
            named = {
                f"{kind}_id": as_text(columns[f"{kind}_id"], kind[0]) for kind in ("user", "item") if ids == "text"
            }
            table = pa.table(columns | named)
            if name not in writers:
                writers[name] = pa.parquet.ParquetWriter(folder / f"{name}.parquet", table.schema, compression="zstd")
            writers[name].write_table(table)
    for writer in writers.values():
        writer.close()


def measured(side: str, folder: Path) -> dict[str, Any]:
    """Run one side in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.audit", "--side", side, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def run_side(side: str, folder: Path) -> None:
    """In the child: read, compute, print seconds, peak memory and values."""
    files = {name: folder / f"{name}.parquet" for name in ("recs", "train", "test")}
    if side == "caged":
        from caged.products.audit import audit_lists

        start = time.perf_counter()
        result = audit_lists(files["recs"], train=files["train"], test=files["test"], ks=(K,))
        values, counts = result.metrics, result.counts
    else:
        from benchmarks.audit_pandas import PandasAudit

        start = time.perf_counter()
        values, counts = PandasAudit(files["recs"], files["train"], files["test"], K).run(), {}
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB
    print(json.dumps({"seconds": seconds, "peak_memory_bytes": peak, "metrics": values, "counts": counts}))


def largest_difference(ours: dict[str, float], theirs: dict[str, float]) -> float:
    """Over all keys; both must have the same, and be undefined at the same ones."""
    if set(ours) != set(theirs):
        raise SystemExit(f"different keys: {sorted(set(ours) ^ set(theirs))}")
    worst = 0.0
    for key, value in ours.items():
        if math.isnan(value) != math.isnan(theirs[key]):
            raise SystemExit(f"{key}: {value} and {theirs[key]}")
        worst = max(worst, 0.0 if math.isnan(value) else abs(value - theirs[key]) / max(1.0, abs(value)))
    if worst > TOLERANCE:
        raise SystemExit(f"values differ by {worst}")
    return worst


def compare(options: argparse.Namespace, order: str) -> dict[str, Any]:
    users = max(2, options.rows // K)
    sides = ["caged"] if options.no_pandas else ["caged", "pandas"]
    with tempfile.TemporaryDirectory(dir=options.temporary) as name:
        folder = Path(name)
        generate(folder, users, options.items, order, options.ids)
        rounds = [{side: measured(side, folder) for side in sides} for _ in range(options.rounds)]
        size = (folder / "recs.parquet").stat().st_size
    first = rounds[0]
    result: dict[str, Any] = {
        "rows": users * K,
        "users": users,
        "items": options.items,
        "order": order,
        "ids": options.ids,
        "train_interactions": users * TRAIN_PER_USER,
        "test_interactions": users,
        "lists_bytes": size,
        "keys": len(first["caged"]["metrics"]),
        "counts": first["caged"]["counts"],
    }
    for side in sides:
        result[side] = {
            "seconds": round(statistics.median(turn[side]["seconds"] for turn in rounds), 2),
            "peak_memory_bytes": max(turn[side]["peak_memory_bytes"] for turn in rounds),
        }
    if not options.no_pandas:
        result["ratio"] = round(result["pandas"]["seconds"] / result["caged"]["seconds"], 2)
        result["largest_difference"] = largest_difference(first["caged"]["metrics"], first["pandas"]["metrics"])
    return result


def print_table(results: list[dict[str, Any]]) -> None:
    headers = ["rows", "order", "side", "seconds", "peak memory", "times as fast as pandas"]
    rows = [
        [
            f"{result['rows']:,}",
            result["order"],
            side,
            f"{result[side]['seconds']:.1f}",
            f"{result[side]['peak_memory_bytes'] / 2**30:.2f} GiB",
            f"{result['ratio']:.2f}" if side == "caged" and "ratio" in result else "",
        ]
        for result in results
        for side in ("caged", "pandas")
        if side in result
    ]
    print(markdown_table(headers, rows, right=[True, False, False, True, True, True]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the lists, 20 per user")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--order", choices=ORDERS, help="of the rows; default: one after the other")
    parser.add_argument("--ids", choices=("integers", "text"), default="integers", help="type of the identifiers")
    parser.add_argument("--no-pandas", action="store_true", help="leave the other side out")
    parser.add_argument("--temporary", type=Path, help="where the temporary files go; about 20 bytes per row")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    parser.add_argument("--side", choices=("caged", "pandas"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        run_side(options.side, options.folder)
        return
    load_before = os.getloadavg()
    results = [compare(options, order) for order in ([options.order] if options.order else ORDERS)]
    print_table(results)
    if options.json:
        from benchmarks.circumstances import circumstances  # not at the top: torch has no place in a measured process

        record = {
            "results": results,
            "load_average_before": load_before,
            "threads": os.environ.get("OMP_NUM_THREADS"),
            **circumstances("benchmarks.audit", packages=("pandas",)),
        }
        make_parent(options.json)
        write_json(options.json, record)


if __name__ == "__main__":
    main()
