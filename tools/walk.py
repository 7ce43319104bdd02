"""Three walks through the house: which files one `train`, one `audit` and one `compare` pass, and what is done twice.

    python -m tools.walk                                  print a table
    python -m tools.walk --source OTHER/src               the same for another version of the package
    python -m tools.walk --write docs/architecture.md     put it between the markers of a document

A file is passed where a function in it runs for the command; importing it is not enough. Read twice is a file of the
log, of a run or of an audit. Computed twice is a costly function (`tools.tracer.COSTLY`) called again with the same
arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from caged.files import write_text
from caged.page.text_table import markdown_table
from caged.runs.lock import LOCK

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"(<!-- walk -->\n).*?(<!-- end of walk -->)", re.DOTALL)
USERS, ITEMS, PER_USER = 60, 40, 12
SHORT = ("--device", "cpu", "--threads", "1", "--set", "train.epochs=2")
RUNS = ("mostpop", "lightgcn", "ips")
WALKS = {
    "train": ("train", "--data", "log.csv", "--method", "lightgcn", "--out", "walked", *SHORT),
    "audit": ("audit", "lightgcn/recommendations.parquet", "--train", "split", "-o", "audited"),
    "compare": ("compare", *RUNS),
}


class Walk(NamedTuple):
    name: str
    passed: list[str]  # files below the package
    reads: dict[str, int]
    again: dict[str, int]  # calls beyond the first with the same arguments

    @property
    def read_twice(self) -> dict[str, int]:
        """But for locks: who holds a folder is asked before any work is done, and again when it is taken."""
        return {file: times for file, times in self.reads.items() if times > 1 and Path(file).name != LOCK}


def walked(source: Path) -> list[Walk]:
    """The walks through the package below `source`, on a small log made for it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_log(folder / "log.csv")
        for method in RUNS:
            _caged(source, folder, "train", "--data", "log.csv", "--method", method, "--out", method, *SHORT)
        _caged(source, folder, "data", "split", "log.csv", "-o", "split")
        return [_walk(source, folder, name) for name in WALKS]


def write_log(path: Path) -> None:
    """Small, with popular items, so that there is something to be biased by."""
    generator = np.random.default_rng(1)
    weights = 1 / np.arange(1, ITEMS + 1)
    rows = [
        f"{user},{item}\n"
        for user in range(USERS)
        for item in generator.choice(ITEMS, PER_USER, replace=False, p=weights / weights.sum())
    ]
    path.write_text("user_id,item_id\n" + "".join(rows), encoding="utf-8")


def _walk(source: Path, folder: Path, name: str) -> Walk:
    _call(source, folder, str(ROOT / "tools" / "tracer.py"), str(folder), *WALKS[name])
    found = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    return Walk(name, **found)


def _caged(source: Path, folder: Path, *arguments: str) -> None:
    _call(source, folder, "-m", "caged", *arguments)


def _call(source: Path, folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr}")


def table(walks: list[Walk]) -> str:
    headers = ["walk", "files passed", "files read twice", "computed twice"]
    rows = [
        [f"`caged {walk.name}`", str(len(walk.passed)), _counts(walk.read_twice), _counts(walk.again)] for walk in walks
    ]
    return markdown_table(headers, rows, right=[False, True, False, False])


def updated(text: str, walks: list[Walk]) -> str:
    """The document with the table between its markers."""
    return MARKED.sub(lambda part: f"{part[1]}{table(walks)}\n{part[2]}", text)


def _counts(times: dict[str, int]) -> str:
    return ", ".join(f"`{name}` ({count})" for name, count in times.items()) or "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="folder that holds the package caged")
    parser.add_argument("--write", type=Path, metavar="DOCUMENT", help="document with the markers")
    parser.add_argument("--files", action="store_true", help="also list the files that are passed")
    options = parser.parse_args()
    walks = walked(options.source)
    if options.write is not None:
        write_text(options.write, updated(options.write.read_text(encoding="utf-8"), walks))
        return
    print(table(walks))
    for walk in walks if options.files else []:
        print(f"\n{walk.name}:", *walk.passed, sep="\n  ")


if __name__ == "__main__":
    main()
