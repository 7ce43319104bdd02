"""`caged demo`."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from caged.cli.output import AsJson, Verbose, command_line, print_json, print_sentences, print_table, say
from caged.cli.progress import progress_line
from caged.data.market import MarketConfig
from caged.data.source import ITEM_TABLE
from caged.errors import RunError
from caged.files import make_writable_folder, refuse_filled_folder, write_json, write_text
from caged.models import display_name
from caged.page.html import require_templates
from caged.products.audit import AuditResult, audit_html
from caged.products.demo import METHODS, Demo, comparison, demo_html, run_demo, sentences
from caged.runs.artefact import DATA_FILE
from caged.runs.environment import resolve_device, set_threads
from caged.runs.recommender import Recommender
from caged.runs.versions import versions

PAGE, NUMBERS, MODELS = "report.html", "demo.json", "models"
EXPLORED = ("lightgcn", "softmax")  # what is common, and a remedy


def demo(
    out: Annotated[
        Path,
        typer.Option(help=f"Folder for {PAGE}, {NUMBERS}, a page and a model per method; a second run replaces them."),
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the market and of training.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[int, typer.Option(help="CPU threads; more do not help on a market this small.")] = 1,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Simulate a shop with a feedback loop, and judge what methods learn from it against the truth.

    Needs no data and no GPU; takes about two minutes. Trains on the log of the built-in market, measures the lists
    by the shop's later clicks and by what people truly like, prints the comparison and writes a page that explains it.

    Examples:

      caged demo

      caged demo --seed 2 --out demo-2 --json
    """
    MarketConfig(seed=seed)
    resolve_device(device)
    set_threads(threads)
    require_templates()
    _prepare(out)
    audits: dict[str, AuditResult] = {}

    def keep(method: str, model: Recommender, titles: dict[str, str]) -> None:
        _save(_model_folder(out, method), model, titles)

    with progress_line(quiet=as_json) as line:
        shown = run_demo(seed=seed, device=device, say=say, audited=audits.__setitem__, trained=keep, progress=line)
    command = command_line()
    numbers = {**asdict(shown), "sentences": sentences(shown), "command": command, "versions": versions()}
    write_json(out / NUMBERS, numbers)
    pages = {method: f"audit-{_file_name(method)}.html" for method in audits}
    for method, audit in audits.items():
        links = [("Back to the demo", PAGE), *((f"Audit of {display_name(name)}", pages[name]) for name in pages)]
        others = [link for link in links if link[1] != pages[method]]
        write_text(out / pages[method], audit_html(replace(audit, command=command), links=others))
    write_text(out / PAGE, demo_html(shown, command, pages))
    _report(shown, numbers, as_json=as_json)
    say(f"numbers: {out / NUMBERS}")
    say(f"page: {out / PAGE}")
    folders = (str(_model_folder(out, method)) for method in EXPLORED)
    say(f"open its people and lists in the browser:\n  {shlex.join(['caged', 'explore', *folders])}")


def _file_name(method: str) -> str:
    return method.replace(" ", "-")


def _model_folder(out: Path, method: str) -> Path:
    return out / MODELS / _file_name(method)


def _save(folder: Path, model: Recommender, titles: dict[str, str]) -> None:
    """In the place of the model of an earlier demo, whole or not."""
    if (folder / DATA_FILE).is_file():
        shutil.rmtree(folder)
    model.save(folder)
    pq.write_table(pa.table({"item_id": list(titles), "title": list(titles.values())}), folder / ITEM_TABLE)


def _prepare(folder: Path) -> None:
    """Make sure that everything can be written in the end, before anything is trained."""
    make_writable_folder(folder)
    for name in (PAGE, NUMBERS):
        if (folder / name).is_dir():
            raise RunError(f"{folder / name} is a folder, but the demo writes a file there; choose another --out")
    for model in (_model_folder(folder, method) for method in METHODS):
        if not (model / DATA_FILE).is_file():
            refuse_filled_folder(model)


def _report(shown: Demo, numbers: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(numbers)
        return
    print_sentences(sentences(shown))
    table = comparison(shown)
    print_table([column.name for column in table.columns], table.rows, title=table.caption)
