"""`results/runs.txt`: every line is a run that can be started."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import pytest

from caged.experiments.spec import resolve

LINES = [
    line
    for line in (Path(__file__).parents[2] / "results" / "runs.txt").read_text(encoding="utf-8").splitlines()
    if line.startswith("--")
]


def parsed(line):
    parser = argparse.ArgumentParser()
    for option in ("data", "method", "variant", "out", "init", "device"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--protocol", default="honest")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--preset", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    return parser.parse_args(shlex.split(line))


@pytest.mark.parametrize("line", LINES)
def test_it_resolves(line):
    run = parsed(line)
    spec = resolve(
        run.data, run.method, protocol=run.protocol, presets=run.preset, overrides=run.set, seed=run.seed, device="cpu"
    )
    assert spec.method == run.method


def test_no_two_lines_write_the_same_folder_or_the_same_record():
    runs = [parsed(line) for line in LINES]
    assert len({run.out for run in runs}) == len(runs)
    assert len({(run.data, run.protocol, run.method, run.variant, run.seed) for run in runs}) == len(runs)


def test_a_run_that_starts_from_another_comes_after_it():
    seen = set()
    for run in map(parsed, LINES):
        assert run.init is None or run.init in seen
        seen.add(run.out)
