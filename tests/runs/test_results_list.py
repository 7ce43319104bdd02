"""`results/runs.txt`: every line is a run that can be started, and every record is a run of that list."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

import pytest

from caged.runs.spec import resolve

RESULTS = Path(__file__).parents[2] / "results"
LINES = [line for line in (RESULTS / "runs.txt").read_text(encoding="utf-8").splitlines() if line.startswith("--")]
RECORDS = sorted(RESULTS.glob("*/*/*/seed*.json"))


def parsed(line):
    parser = argparse.ArgumentParser()
    for option in ("data", "method", "variant", "out", "init", "device", "threads"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--protocol", default="honest")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--preset", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    return parser.parse_args(shlex.split(line))


def resolved(run):
    return resolve(
        run.data, run.method, protocol=run.protocol, presets=run.preset, overrides=run.set, seed=run.seed, device="cpu"
    )


def place(run):
    """Of its record, below `results`."""
    variant = f"-{run.variant}" if run.variant else ""
    return Path(run.data) / run.protocol / f"{run.method}{variant}" / f"seed{run.seed}.json"


@pytest.mark.parametrize("line", LINES)
def test_it_resolves(line):
    run = parsed(line)
    assert resolved(run).method == run.method


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_a_record_is_of_the_run_that_the_list_says(record):
    runs = [run for run in map(parsed, LINES) if RESULTS / place(run) == record]
    assert len(runs) == 1
    recorded = json.loads(record.read_text(encoding="utf-8"))["spec"]["config"]
    expected = json.loads(json.dumps(resolved(runs[0]).to_json()["config"]))
    for part, values in recorded.items():
        assert {name: expected[part][name] for name in values} == values


@pytest.mark.parametrize("line", LINES)
def test_it_has_a_record(line):
    assert (RESULTS / place(parsed(line))).is_file()


def test_no_two_lines_write_the_same_folder_or_the_same_record():
    runs = [parsed(line) for line in LINES]
    assert len({run.out for run in runs}) == len(runs)
    assert len({(run.data, run.protocol, run.method, run.variant, run.seed) for run in runs}) == len(runs)


def test_a_run_that_starts_from_another_comes_after_it():
    seen = set()
    for run in map(parsed, LINES):
        assert run.init is None or run.init in seen
        seen.add(run.out)
