"""The commands whose output is kept, and the small world that they run in."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer.main

import caged.cli.best as best_command
import caged.cli.demo as demo_command
import caged.products.tune.finals as tune_finals
import caged.products.tune.run as tune_run
import caged.products.tune.trial as tune_trial
from caged import progress
from caged.cli.lazy import LazyGroup
from caged.cli.main import app
from caged.data.known.datasets import DATASETS
from tests.cli.invoke import Outcome, caged
from tests.cli.terminal import on_terminal
from tests.data.known.tiny import TEST, TRAIN, tiny
from tests.products.best.answers import made
from tests.products.demo.demos import DEMO

KEPT = Path(__file__).parent
WIDTHS = (60, 80, 120)
CPU = ("--device", "cpu", "--threads", "1")
ADJECTIVES = ("Quiet", "Loud", "Small", "Great", "Old", "New", "Lost", "Found")
NOUNS = ("River", "Forest", "City", "Winter", "Letter")


class Case(NamedTuple):
    """One command line; what it writes below the world is removed before it runs again."""

    arguments: tuple[str, ...]
    writes: tuple[str, ...] = ()


CASES = {
    "best": Case(("best", "log.csv", "--minutes", "10")),
    "train": Case(("train", "--data", "log.csv", "--method", "mostpop", "--out", "runs/new", *CPU), ("runs/new",)),
    "tune": Case(
        ("tune", "--data", "log.csv", "--methods", "mostpop,ease", "--trials", "3", "--out", "tunes/new", *CPU),
        ("tunes/new",),
    ),
    "tune-show": Case(("tune", "show", "tunes/kept", "--latex", "tune.tex"), ("tune.tex",)),
    "tune-again": Case(
        (
            *("tune", "again", "tunes/kept", "--minimise", "gini@20"),
            *("--subject-to", "recall@20>=95% of ease", "--out", "tunes/again"),
        ),
        ("tunes/again",),
    ),
    "tune-preset": Case(("tune", "preset", "records/tunes/log.json", "-o", "tuned.toml"), ("tuned.toml",)),
    "plan": Case(("plan", "--users", "20M", "--items", "2M", "--interactions", "1B", "--k", "256", "--memory", "80")),
    "tune-space": Case(("tune", "space", "lightgcn")),
    "study-run": Case(("study", "run", "plan.toml", "--dry-run", "--device", "cpu")),
    "study-status": Case(("study", "status", "plan.toml", "--device", "cpu")),
    "evaluate": Case(("evaluate", "runs/itemknn", "-k", "5,10", "--device", "cpu")),
    "recommend": Case(("recommend", "runs/mostpop", "--users", "u01,u02", "-k", "3", "--device", "cpu")),
    "export-vectors": Case(("export", "vectors", "runs/lightgcn", "-o", "vectors", "--device", "cpu"), ("vectors",)),
    "export-artefact": Case(
        ("export", "artefact", "runs/lightgcn", "-o", "artefact", "--no-price", "--device", "cpu"), ("artefact",)
    ),
    "serve": Case(("serve", "runs/lightgcn")),  # refused: one that answers would not end
    "explore": Case(("explore", "runs/lightgcn", "runs/itemknn", "runs/mostpop")),
    "explain": Case(("explain", "runs/lightgcn", "--user", "u01", "-n", "5", "--device", "cpu")),
    "audit": Case(
        (
            *("audit", "recs.csv", "--train", "split/train.parquet", "--test", "split/test.parquet", "-k", "10"),
            *("--items", "items.csv", "--html", "page.html"),
            *("--fail-if", "tail_share@10<0.9", "--fail-if", "recall@10<0.01"),
        ),
        ("page.html",),
    ),
    "adjust": Case(
        (
            *("adjust", "recs.csv", "--train", "split/train.parquet", "--test", "split/test.parquet"),
            *("-k", "5", "--strength", "0.5"),
        )
    ),
    "compare": Case(("compare", "runs/mostpop", "runs/itemknn", "--html", "compare.html"), ("compare.html",)),
    "demo": Case(("demo", "--out", "demo", "--device", "cpu"), ("demo",)),
    "data-split": Case(("data", "split", "log.csv", "-o", "parts"), ("parts",)),
    "data-simulate": Case(
        (
            *("data", "simulate", "-o", "market", "--set", "user_count=60", "--set", "item_count=40"),
            *("--set", "rounds=6", "--set", "test_rounds=3", "--set", "slots=6", "--set", "rank=4"),
            *("--set", "shortlist=12"),
        ),
        ("market",),
    ),
    "data-import": Case(("data", "import", "log.csv", "-o", "imported"), ("imported",)),
    "data-list": Case(("data", "list")),
    "data-get": Case(("data", "get", "tiny", "--from", "downloaded", "--out", "datasets"), ("datasets",)),
    "data-info": Case(("data", "info", "split")),
    "methods": Case(("methods",)),
    "methods-list": Case(("methods", "list")),
    "methods-show": Case(("methods", "show", "caged")),
    "plot-iip": Case(("plot", "iip", "runs/caged", "-o", "iip.svg"), ("iip.svg",)),
    "study-tables": Case(("study", "tables", "study.toml")),
    "study-figures": Case(("study", "figures", "study.toml", "-o", "figures"), ("figures",)),
    "results-pack": Case(("results", "pack", "results", "-o", "packed.tar.gz"), ("packed.tar.gz",)),
    "results-unpack": Case(("results", "unpack", "kept.tar.gz", "--into", "unpacked"), ("unpacked",)),
    "results-table": Case(("results", "table", "results")),
    "bad-input": Case(("train", "--data", "log.csv", "--method", "lightgnc")),
}


# ---------------------------------------------------------------- the world


def build_world(folder: Path) -> None:
    """A log with titles, a split, lists, runs of four methods, and records of some; the same bytes everywhere."""
    pairs = _pairs()
    _write_csv(folder / "log.csv", "user_id,item_id", pairs)
    titles = [(f"i{item:02d}", f"The {ADJECTIVES[item % 8]} {NOUNS[item % 5]}") for item in range(40)]
    _write_csv(folder / "items.csv", "item_id,title", titles)
    _run(folder, "data", "split", "log.csv", "-o", "split")
    for name, content in {"train.txt": TRAIN, "test.txt": TEST}.items():
        (folder / "downloaded").mkdir(exist_ok=True)
        (folder / "downloaded" / name).write_bytes(content)
    named = pa.table({"item_id": [item for item, _ in titles], "title": [title for _, title in titles]})
    pq.write_table(named, folder / "split" / "items.parquet")  # as the folder of a market has it
    for method, options in _METHODS.items():
        recorded = () if method == "caged" else ("--record", "results")
        _run(folder, "train", "--data", "split", "--method", method, "--out", f"runs/{method}", *options, *recorded)
    _add_seeds(folder / "results")
    _run(folder, "recommend", "runs/mostpop", "--all-users", "-k", "25", "-o", "recs.csv", "--device", "cpu")
    _run(folder, "results", "pack", "results", "-o", "kept.tar.gz")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    searched = ("--methods", "ease,itemknn", "--trials", "6", "--out", "tunes/kept", "--record", "records")
    with small_demo():
        _run(folder, "tune", "--data", "log.csv", *searched, "--test-defaults", *CPU)


PLAN = """
title = "what takes no training"

[datasets.split]

[rows.bestsellers]
method = "mostpop"

[rows.neighbours]
method = "itemknn"

[rows.linear]
method = "ease"

[sections.main]
about = "Neighbours, a linear model and bestsellers."

[[sections.main.grids]]
datasets = ["split"]
protocols = ["honest"]
rows = ["bestsellers", "neighbours", "linear"]
"""
STUDY = """
title = "Small study"
results = "results"

[datasets.shop]
data = "split"
device = "cpu"

[rows.lightgcn]
method = "lightgcn"
set = ["train.epochs=2", "train.batch_size=128", "method.embedding_size=4"]

[rows.itemknn]
method = "itemknn"

[rows.ips]
method = "ips"

[sections.main]
about = "What there is, and a gap."

[[sections.main.grids]]
datasets = ["shop"]
protocols = ["honest"]
rows = ["lightgcn", "itemknn", "ips"]
seeds = [1, 2, 3, 4, 5]
"""
_TINY = ("--set", "train.epochs=2", "--set", "train.batch_size=128", "--set", "method.embedding_size=4")
_METHODS = {
    "mostpop": CPU,
    "itemknn": CPU,
    "lightgcn": (*CPU, *_TINY),
    "caged": (*CPU, *_TINY, "--save-weights", "--set", "method.eps=0.2", "--set", "method.without=update_condition"),
}


def _pairs() -> list[tuple[str, str]]:
    generator = np.random.default_rng(7)
    popularity = 1.0 / np.arange(1, 41) ** 0.8
    shares = popularity / popularity.sum()
    chosen = [generator.choice(40, size=generator.integers(8, 16), replace=False, p=shares) for _ in range(60)]
    return [(f"u{user:02d}", f"i{item:02d}") for user, items in enumerate(chosen) for item in items]


def _write_csv(path: Path, header: str, rows: Sequence[tuple[str, str]]) -> None:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")


def _run(folder: Path, *arguments: str) -> None:
    outcome = caged(*arguments, cwd=folder)
    assert outcome.code == 0, outcome.err


def _add_seeds(results: Path) -> None:
    """More seeds and a second dataset, made up: enough for a table with stars, quickly."""
    for first in sorted(results.rglob("seed1.json")):
        record = json.loads(first.read_text(encoding="utf-8"))
        for dataset, shift in (("split", 0.0), ("other", 0.05)):
            for seed in range(1, 6):
                moved = _shifted(record, dataset, seed, shift)
                place = results / dataset / "honest" / first.parent.name / f"seed{seed}.json"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(json.dumps(moved), encoding="utf-8")


def _shifted(record: dict[str, Any], dataset: str, seed: int, shift: float) -> dict[str, Any]:
    kept = {key: value for key, value in record.items() if key != "per_user"}  # nobody made up the file beside it
    made_up = {"mostpop": 0.1, "itemknn": 0.2, "lightgcn": 0.3}[record["spec"]["method"]]
    metrics = dict.fromkeys(record["metrics"], made_up + shift + seed / 1000)
    fingerprints = {part: f"{dataset}-{part}" for part in ("train", "valid", "test")}
    about = {**record["dataset"], "name": dataset, "fingerprints": fingerprints}
    return {**kept, "spec": {**record["spec"], "seed": seed}, "dataset": about, "metrics": metrics}


# ---------------------------------------------------------------- what is kept


@contextlib.contextmanager
def small_demo() -> Iterator[None]:
    """Made-up results in place of two minutes of training, trials that take no time on a machine that is nobody's, and
    a dataset that nobody has to download."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(demo_command, "run_demo", return_value=DEMO))
        stack.enter_context(mock.patch.object(best_command, "find_best", return_value=made(Path("best"))))
        stack.enter_context(mock.patch.object(tune_trial, "perf_counter", return_value=0.0))
        stack.enter_context(mock.patch.object(tune_finals, "seconds_of", return_value=0.0))
        machine = {"device": "cpu", "cpu": "A Processor"}
        stack.enter_context(mock.patch.object(tune_run, "hardware", return_value=machine))
        for name in ("LIVE_AFTER", "PLAIN_AFTER"):  # on a busy machine progress would be seen, elsewhere not
            stack.enter_context(mock.patch.object(progress, name, 3600.0))
        stack.enter_context(mock.patch.dict(DATASETS, {"tiny": tiny(None)}))
        stack.enter_context(mock.patch.dict("os.environ", {"CAGED_DATA": "datasets"}))
        yield


def kept_text(case: Case, world: Path) -> str:
    """The file of a case: the output at every width, then in a pipe."""
    title = f"$ caged {' '.join(case.arguments)}"
    parts = [title]
    for width in WIDTHS:
        parts.append(_described(f"{width} columns", _called(partial(on_terminal, width), case, world)))
    parts.append(_described("in a pipe", _called(caged, case, world)))
    return "\n".join(parts) + "\n"


def _called(call: Callable[..., Outcome], case: Case, world: Path) -> Outcome:
    try:
        with small_demo():
            return call(*case.arguments, cwd=world)
    finally:
        for name in case.writes:
            _remove(world / name)


def _described(where: str, outcome: Outcome) -> str:
    out, err = ("\n".join(line.rstrip() for line in text.splitlines()) for text in (outcome.out, outcome.err))
    return "\n".join([f"==== {where}: exit code {outcome.code}, stdout", out, f"---- {where}: stderr", err])


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ---------------------------------------------------------------- help


def all_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of every command and group, from the top."""
    yield path
    for name, listed in getattr(command, "commands", {}).items():
        child = command.load(name) if isinstance(command, LazyGroup) else listed
        yield from all_commands(child, (*path, name))


# Of every command and every group of commands.
HELP = list(all_commands(typer.main.get_command(app)))


def help_text(command: tuple[str, ...]) -> str:
    """The help of a command at every width."""
    parts = [f"$ caged {' '.join((*command, '--help'))}"]
    for width in WIDTHS:
        shown = on_terminal(width, *command, "--help").out
        parts.append("\n".join([f"==== {width} columns", *(line.rstrip() for line in shown.splitlines())]))
    return "\n".join(parts) + "\n"
