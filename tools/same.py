"""Two source trees side by side: how many bytes differ in what they write?

    git worktree add /tmp/before SOME_COMMIT
    python -m tools.same /tmp/before/src src --data ml-100k

Trains four methods (fixed seed, one thread), audits the lists of one of them in three forms, compares twice, once with
each tree and in folders of the same name, then compares every file to the byte. Times and what names the version of
the program are left out of JSON; nothing else is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import typer

from caged.cli.main import run

FIXED = ("--seed", "1", "--threads", "1", "--device", "cpu", "--no-report")
SHORT = ("--set", "method.embedding_size=16", "--set", "train.epochs=4")
RUNS: dict[str, tuple[str, ...]] = {
    "lightgcn": ("--method", "lightgcn", *SHORT),
    "caged": ("--method", "caged", *SHORT),
    "macr": ("--method", "macr", *SHORT),
    "galore": ("--method", "galore", *SHORT, "--init", "lightgcn"),
}
# Where the time goes and which program ran; they differ between two runs of one program, too.
TIMES = {"seconds", "started", "ended", "update_seconds", "versions", "memory"}
PARTS = ("train", "valid", "test")


def main() -> None:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(same)
    run(app, "python -m tools.same")


def same(
    before: Annotated[Path, typer.Argument(help="Folder that holds the package caged: src of the tree before.")],
    after: Annotated[Path, typer.Argument(help="The same of the tree after.")],
    data: Annotated[str, typer.Option(help="Dataset name or log file.")] = "ml-100k",
) -> None:
    """Print a line per file, and the number of bytes that differ between the two trees."""
    total = 0
    with tempfile.TemporaryDirectory() as temporary:
        folders = []
        for name, source in (("before", before), ("after", after)):
            work = Path(temporary, "work")  # the same for both: paths reach titles and run.json
            work.mkdir()
            produce(source.resolve(), work, data)
            folders.append(work.rename(Path(temporary, name)))
        names = sorted({str(file.relative_to(folder)) for folder in folders for file in written(folder)})
        for name in names:
            sizes, differing = compared(*(folder / name for folder in folders))
            total += differing
            typer.echo(f"{differing:>8}  of {sizes:>10,}  {name}")
    typer.echo(f"{total:>8}  differing bytes in {len(names)} files")
    raise typer.Exit(min(total, 1))


# ---------------------------------------------------------------- what is run


def produce(source: Path, folder: Path, data: str) -> None:
    """Everything that is compared, made by the package below `source`."""
    call = _caller(source, folder)
    for name, options in RUNS.items():
        call("train", "--data", data, "--out", name, *options, *FIXED)
    call("data", "split", data, "-o", "split", "--seed", "1")
    for name, given in lists_in_three_forms(folder).items():
        call(
            "audit",
            f"{name}.parquet",
            *(part for kind in PARTS for part in (f"--{kind}", given[kind])),
            *("-k", "5,20", "--json", "-o", f"audit-{name}"),
            into=f"audit-{name}.json",
        )
    call("compare", *RUNS, "--json", into="compare-runs.json")
    call("compare", "audit-by-user", "audit-shuffled", "--json", into="compare-audits.json")


def _caller(source: Path, folder: Path) -> Callable[..., None]:
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}

    def call(*arguments: str, into: str | None = None) -> None:
        command = [sys.executable, "-m", "caged", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            typer.echo(done.stderr, err=True)
            raise SystemExit(f"caged {' '.join(arguments)} failed below {source}")
        if into is not None:
            (folder / into).write_text(done.stdout)

    return call


def lists_in_three_forms(folder: Path) -> dict[str, dict[str, str]]:
    """The lists of the first run by user, shuffled, and with ids as text; each with the parts it is audited against."""
    lists = pq.read_table(folder / "lightgcn" / "recommendations.parquet")
    order = np.random.default_rng(1).permutation(lists.num_rows)
    forms = {"by-user": lists, "shuffled": lists.take(pa.array(order)), "text-ids": as_text(lists)}
    for name, table in forms.items():
        pq.write_table(table, folder / f"{name}.parquet")
    for kind in PARTS:
        part = pq.read_table(folder / "split" / f"{kind}.parquet")
        pa.csv.write_csv(as_text(part.select(["user_id", "item_id"])), folder / f"text-{kind}.csv")
    numbers = {kind: f"split/{kind}.parquet" for kind in PARTS}
    return {"by-user": numbers, "shuffled": numbers, "text-ids": {kind: f"text-{kind}.csv" for kind in PARTS}}


def as_text(table: pa.Table) -> pa.Table:
    for name, letter in (("user_id", "u"), ("item_id", "i")):
        named = pc.binary_join_element_wise(letter, table[name].cast(pa.string()), "")
        table = table.set_column(table.column_names.index(name), name, named)
    return table


# ---------------------------------------------------------------- what is compared


def written(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def compared(one: Path, other: Path) -> tuple[int, int]:
    """(bytes of the first, bytes that differ); a file that only one tree wrote differs as a whole."""
    contents = [comparable(file) if file.exists() else b"" for file in (one, other)]
    shared = min(map(len, contents))
    first, second = (np.frombuffer(content[:shared], np.uint8) for content in contents)
    return len(contents[0]), int(np.count_nonzero(first != second)) + max(map(len, contents)) - shared


def comparable(file: Path) -> bytes:
    """The content, JSON without times."""
    content = file.read_bytes()
    if file.suffix == ".json":
        return json.dumps(_timeless(json.loads(content)), indent=1).encode()
    if file.suffix == ".jsonl":
        return b"\n".join(json.dumps(_timeless(json.loads(line))).encode() for line in content.splitlines())
    return content


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(inner) for key, inner in value.items() if key not in TIMES}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
