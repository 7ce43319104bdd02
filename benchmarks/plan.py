"""Whether `caged plan` is right: memory and seconds per epoch of some shapes, predicted and measured.

    python -m benchmarks.plan --device cuda                                       the check
    python -m benchmarks.plan --device cpu --calibrate --out benchmarks/results/plan_calibration_cpu2.json
    python -m benchmarks.plan --device cuda --calibrate --measured benchmarks/results/plan_calibration_h200.json

Every shape is trained on in a process of its own, on a log that is generated there (`benchmarks.device_log`). Memory is
the most that torch took from the GPU, or the most that was resident on CPU; what the log leaves behind counts, as the
graph is made of it. An epoch is measured as a whole on CUDA; on CPU it is its sampling and as many times the fastest of
some steps as it has steps. `--calibrate` measures other shapes than the check, fits the rates of this device to them
and writes them into rates.json; with `--measured` it takes the shapes of a record, for a new form of the model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from caged.files import make_parent, write_json
from caged.runs.planning.inventory import inventory
from caged.runs.planning.pace import Measured, Rates, fitted, rates_of, seconds_per_epoch, write_rates
from caged.runs.planning.workload import Workload

VALIDATED_USERS = 200  # whom validation ranks for
# (users, items, interactions, columns, layers, method)
Shape = tuple[int, int, int, int, int, str]
CHECKED: dict[str, list[Shape]] = {
    "cuda": [
        (100_000, 50_000, 5_000_000, 64, 2, "lightgcn"),
        (400_000, 80_000, 20_000_000, 64, 3, "lightgcn"),
        (1_000_000, 100_000, 50_000_000, 64, 2, "lightgcn"),
        (2_000_000, 200_000, 100_000_000, 64, 2, "lightgcn"),
        (500_000, 100_000, 30_000_000, 128, 2, "lightgcn"),
        (1_000_000, 100_000, 50_000_000, 64, 2, "softmax"),
    ],
    # Large enough that freed arrays go back to the system: below 4 million numbers the C library keeps them.
    "cpu": [
        (200_000, 50_000, 8_000_000, 32, 2, "lightgcn"),
        (600_000, 200_000, 6_000_000, 64, 1, "lightgcn"),
        (300_000, 100_000, 10_000_000, 64, 2, "lightgcn"),
        (400_000, 50_000, 6_000_000, 64, 2, "lightgcn"),
        (150_000, 50_000, 12_000_000, 32, 3, "lightgcn"),
        (500_000, 100_000, 8_000_000, 48, 2, "lightgcn"),
        (120_000, 50_000, 4_000_000, 64, 3, "softmax"),
        (150_000, 60_000, 2_000_000, 128, 2, "lightgcn"),
    ],
}
CALIBRATED: dict[str, list[Shape]] = {
    "cuda": [
        (50_000, 20_000, 2_000_000, 64, 3, "lightgcn"),
        (300_000, 100_000, 10_000_000, 64, 3, "lightgcn"),
        (300_000, 100_000, 10_000_000, 64, 1, "lightgcn"),
        (300_000, 100_000, 40_000_000, 64, 2, "lightgcn"),
        (1_500_000, 300_000, 30_000_000, 64, 2, "lightgcn"),
        (1_500_000, 300_000, 80_000_000, 64, 2, "lightgcn"),
        (600_000, 60_000, 20_000_000, 128, 3, "lightgcn"),
        (600_000, 60_000, 20_000_000, 128, 3, "softmax"),
        (1_500_000, 300_000, 60_000_000, 64, 2, "softmax"),
    ],
    "cpu": [
        (20_000, 10_000, 400_000, 64, 3, "lightgcn"),
        (100_000, 50_000, 500_000, 64, 2, "lightgcn"),
        (200_000, 50_000, 2_000_000, 64, 1, "lightgcn"),
        (40_000, 10_000, 2_500_000, 64, 2, "lightgcn"),
        (40_000, 20_000, 800_000, 128, 3, "lightgcn"),
        (120_000, 40_000, 3_000_000, 32, 2, "lightgcn"),
        (250_000, 80_000, 9_000_000, 64, 2, "lightgcn"),
        (500_000, 150_000, 4_000_000, 64, 2, "lightgcn"),
        (700_000, 60_000, 5_000_000, 32, 3, "lightgcn"),
        (40_000, 10_000, 1_000_000, 64, 2, "softmax"),
        (200_000, 60_000, 3_000_000, 64, 2, "softmax"),
        (100_000, 60_000, 3_000_000, 192, 2, "lightgcn"),
    ],
}


def workload(shape: Shape, device: str) -> Workload:
    users, items, interactions, columns, layers, method = shape
    return Workload(users, items, interactions, columns, layers, method, device, validation_users=VALIDATED_USERS)


# ---------------------------------------------------------------- in the process that compares


def in_own_process(shape: Shape, device: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.plan", "--device", device, "--measure", json.dumps(shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{shape} could not be measured: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return dict(json.loads(done.stdout))


def measured(found: dict[str, Any], device: str) -> Measured:
    users, items, _, *rest = found["shape"]
    work = workload((users, items, found["interactions"], *rest), device)
    return Measured(work, found["seconds"], found["drawing_s"])


def compared(found: dict[str, Any], device: str, rates: Rates) -> dict[str, Any]:
    work = measured(found, device).work
    needed = inventory(work)
    return {
        **found,
        "predicted_bytes": needed.peak,
        "predicted_bytes_in_tensors": needed.in_tensors,
        "predicted_seconds": seconds_per_epoch(work, rates),
        "peak_phase": needed.peak_phase,
        "memory_ratio": needed.peak / found["memory_bytes"],
        "tensors_ratio": (needed.in_tensors or needed.peak) / max(found["peaks_by_phase"].values()),
        "time_ratio": seconds_per_epoch(work, rates) / found["seconds"],
    }


def say(line: dict[str, Any]) -> None:
    users, items, interactions, columns, layers, method = line["shape"]
    sys.stdout.write(
        f"{users:>9,} users {items:>8,} items {interactions:>11,} pairs k{columns} L{layers} {method:<9} "
        f"memory {line['predicted_bytes'] / 2**30:6.2f} GiB for {line['memory_bytes'] / 2**30:6.2f} "
        f"({line['memory_ratio']:.2f}) "
        f"epoch {line['predicted_seconds']:8.2f} s for {line['seconds']:8.2f} ({line['time_ratio']:.2f})\n"
    )
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--calibrate", action="store_true", help="fit the rates of this device, and write them")
    parser.add_argument("--out", type=Path, help="also write everything to this file")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--measured", type=Path, help="fit the rates to the shapes of this record (with --calibrate)")
    chosen = parser.parse_args(arguments)
    if chosen.measured and not chosen.calibrate:
        parser.error("--measured goes with --calibrate")
    if chosen.measure:
        from benchmarks.plan_shape import measure

        sys.stdout.write(json.dumps(measure(json.loads(chosen.measure), chosen.device)) + "\n")
        return
    if chosen.calibrate:
        calibrate(chosen.device, chosen.out, chosen.measured)
    else:
        check(chosen.device, chosen.out)


def check(device: str, out: Path | None) -> None:
    """The record is written after every shape: one that fails takes no other along."""
    rates = rates_of(device)
    lines: list[dict[str, Any]] = []
    for shape in CHECKED[device]:
        lines.append(compared(in_own_process(shape, device), device, rates))
        say(lines[-1])
        write(out, device, lines, rates, calibrated=False)
    say_worst(lines)


def calibrate(device: str, out: Path | None, record: Path | None = None) -> None:
    """Fits the rates to what is measured now, or to what is in a record."""
    found = read_lines(record, device) if record else [in_own_process(shape, device) for shape in CALIBRATED[device]]
    source = (record or out or Path("an unrecorded calibration")).as_posix()
    rates = fitted([measured(one, device) for one in found], found[0]["hardware"], source)
    write_rates(device, rates)
    lines = [compared(one, device, rates) for one in found]
    for line in lines:
        say(line)
    write(out, device, lines, rates, calibrated=True)
    say_worst(lines)


def read_lines(record: Path, device: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads(record.read_text(encoding="utf-8"))["lines"]
    on = lines[0]["hardware"]["device"]
    if on != device:
        raise SystemExit(f"{record} was measured on {on}, not on {device}; give --device {on} or another record")
    return lines


def worst(lines: list[dict[str, Any]]) -> dict[str, float]:
    return {name: max(abs(line[name] - 1) for line in lines) for name in ("memory_ratio", "time_ratio")}


def say_worst(lines: list[dict[str, Any]]) -> None:
    off = worst(lines)
    sys.stdout.write(f"at most {off['memory_ratio']:.0%} off in memory and {off['time_ratio']:.0%} in time\n")


def write(out: Path | None, device: str, lines: list[dict[str, Any]], rates: Rates, *, calibrated: bool) -> None:
    if out is None:
        return
    import torch

    from benchmarks.circumstances import circumstances

    make_parent(out)
    content = {"lines": lines, "worst": worst(lines), "rates": asdict(rates), "calibrated": calibrated}
    write_json(out, {**content, **circumstances("benchmarks.plan", torch.device(device))})


if __name__ == "__main__":
    main()
