"""Whether `caged plan` is right about the memory of a whole `caged train` on CPU, its final test included.

    python -m benchmarks.plan_train --out benchmarks/results/train_memory_cpu2.json

`benchmarks.plan` measures training by itself. Here a log is generated and imported as a `.cgraph` for each shape, and a
process of its own trains on it for an epoch of few steps, tests everybody with a test item, and writes its run folder.
Measured is the most that was resident, as run.json has it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.circumstances import circumstances
from benchmarks.import_log import generate
from caged.files import make_parent, write_json
from caged.runs.planning.inventory import inventory
from caged.runs.planning.workload import Workload

# (users, items, rows, columns, length of the lists)
Shape = tuple[int, int, int, int, int]
# The constants of the final test were fitted to other shapes, of about 50,000, 150,000 and 300,000 users; the form of
# the model was chosen with the first six of these in hand, the last two were measured after that.
SHAPES: list[Shape] = [
    (80_000, 60_000, 4_000_000, 32, 100),
    (400_000, 10_000, 3_500_000, 64, 100),
    (400_000, 10_000, 3_500_000, 24, 100),
    (250_000, 30_000, 6_000_000, 64, 50),
    (600_000, 40_000, 4_000_000, 32, 20),
    (100_000, 100_000, 8_000_000, 48, 100),
    (150_000, 80_000, 3_000_000, 128, 100),
    (300_000, 20_000, 10_000_000, 32, 100),
]
BATCH, LAYERS, VALIDATED = 100_000, 2, 2000
GIB = 2**30


def caged(*arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "caged", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"caged {arguments[0]} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


def measured(shape: Shape, folder: Path) -> dict[str, Any]:
    """What run.json says of a training on this shape."""
    users, items, rows, columns, length = shape
    log, graph, run = folder / "log", folder / "log.cgraph", folder / "run"
    log.mkdir()
    generate(log, rows, users, items, csv=False)
    caged("data", "import", log / "*.parquet", "-o", graph, "--split", "random")
    settings = {
        "train.epochs": 1,
        "train.batch_size": BATCH,
        "train.validation_users": VALIDATED,
        "method.embedding_size": columns,
        "method.layers": LAYERS,
        "eval.list_length": length,
    }
    overrides = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
    caged("train", "--data", graph, "--method", "lightgcn", "--device", "cpu", "--no-report", "--out", run, *overrides)
    return dict(json.loads((run / "run.json").read_text(encoding="utf-8")))


def workload(shape: Shape, users: int, items: int, interactions: int, tested: int) -> Workload:
    return Workload(
        users,
        items,
        interactions,
        embedding_size=shape[3],
        layers=LAYERS,
        device="cpu",
        batch_size=BATCH,
        validation_users=VALIDATED,
        tested_users=tested,
        list_length=shape[4],
    )


def compared(line: dict[str, Any]) -> dict[str, Any]:
    counts = (line[key] for key in ("users", "items", "interactions", "tested_users"))
    needed = inventory(workload(tuple(line["shape"]), *counts))
    return {
        **line,
        "predicted_bytes": needed.peak,
        "peak_phase": needed.peak_phase,
        "memory_ratio": needed.peak / line["memory_bytes"],
    }


def line_of(shape: Shape, folder: Path) -> dict[str, Any]:
    run = measured(shape, folder)
    metrics = json.loads((folder / "run" / "metrics.json").read_text(encoding="utf-8"))
    return compared(
        {
            "shape": list(shape),
            "users": run["dataset"]["users"],
            "items": run["dataset"]["items"],
            "interactions": run["dataset"]["interactions"]["train"],
            "tested_users": max(metrics["users"].values()),
            "memory_bytes": round(run["memory"]["process_gib"] * GIB),
        }
    )


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(
        f"{line['users']:>9,} users {line['items']:>8,} items {line['interactions']:>11,} pairs k{line['shape'][3]} "
        f"lists of {line['shape'][4]:>3} memory {line['predicted_bytes'] / GIB:5.2f} GiB for "
        f"{line['memory_bytes'] / GIB:5.2f} ({line['memory_ratio']:.2f}), most in {line['peak_phase']}\n"
    )
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_train", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="also write everything to this file")
    chosen = parser.parse_args(arguments)
    lines: list[dict[str, Any]] = []
    for shape in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(line_of(shape, Path(folder)))
        say(lines[-1])
        if chosen.out is not None:
            make_parent(chosen.out)
            write_json(chosen.out, {"lines": lines, **circumstances("benchmarks.plan_train")})


if __name__ == "__main__":
    main()
