"""`caged study tables` and `caged study figures`: what is recorded of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caged.cli.output import (
    AsJson,
    Verbose,
    command_line,
    print_json,
    print_sentences,
    print_source,
    print_table,
    print_text,
    say,
)
from caged.errors import ConfigError
from caged.files import check_file, make_writable_folder, write_text
from caged.page.figure_file import KINDS, check_figure, write_figure
from caged.page.html import require_templates
from caged.products.reproduction import (
    caption,
    latex_text,
    markdown_text,
    study_figures,
    study_tables,
    tables_html,
    text_tables,
)
from caged.products.study import Plan, at_hand, chosen, read_plan, recorded

PlanFile = Annotated[Path, typer.Argument(help="Plan of the study, a TOML file.")]
Only = Annotated[
    str | None,
    typer.Option(help="Datasets, protocols, sections and rows of the plan, e.g. epinions,main [default: everything]."),
]

Record = Annotated[Path | None, typer.Option(help="Folder with the records [default: where the plan has them].")]


def tables(
    plan: PlanFile,
    only: Only = None,
    record: Record = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (booktabs, graphicx).")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file instead.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write to this file instead.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print the tables of a study: a row per method, the printed value and both protocols side by side.

    There is one table per section and dataset. Bold (¹ on a terminal) marks the best value; a star marks a row that is
    better than LightGCN, after Holm's correction. What has not been run is a gap. The last line says how many GPU
    minutes the records of the table took.

    Examples:

      caged study tables studies/paper.toml --only main,epinions

      caged study tables studies/paper.toml --only main --latex -o main.tex

      caged study tables studies/paper.toml --html tables.html
    """
    if sum((markdown, latex, as_json, html is not None)) > 1:
        raise ConfigError("--markdown, --latex, --html and --json exclude each other; choose one")
    if out is not None:
        if not (markdown or latex):
            raise ConfigError("--out needs to know what to write; add --markdown or --latex")
        check_file("--out", out, [plan])
    if html is not None:
        require_templates()
        check_file("--html", html, [plan])
    read = read_plan(plan)
    words = listed(only)
    runs = chosen(read, words)
    records = recorded(read.runs, _records_of(read, record), at_hand())
    sections, protocols = ([word for word in words if word in kind] for kind in (read.sections, read.protocols))
    found = study_tables(read, records, runs, only=sections, protocols=protocols)
    command = command_line()
    if as_json:
        print_json({"tables": [table.to_json() for table in found], "command": command})
    elif html is not None:
        write_text(html, tables_html(read, found, command))
        say(f"page: {html}")
    elif markdown or latex:
        text = "\n".join(markdown_text(table) if markdown else latex_text(table, command) for table in found)
        if out is None:
            print_source(text)
        else:
            write_text(out, text)
            say(f"tables: {out}")
    else:
        for table in found:
            for part in text_tables(table):
                print_table(part.headers, part.rows, title=part.title)
            print_sentences([" ".join(caption(table, best="with ¹"))])


def figures(
    plan: PlanFile,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write the figures to.")] = Path("figures"),
    only: Only = None,
    record: Record = None,
    kind: Annotated[str, typer.Option("--format", help="svg, png or pdf.")] = "svg",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Draw the figures of a study: curves over a setting, trade-off, learning curves, densities.

    A figure is drawn from what is recorded; if nothing is, the command says which one and why. It names the
    rows whose records hold no learning curve, too.

    Examples:

      caged study figures studies/paper.toml -o figures

      caged study figures studies/paper.toml --only epinions,lambda --format pdf
    """
    if f".{kind}" not in KINDS:
        raise ConfigError(f"--format is '{kind}'; allowed: {', '.join(one[1:] for one in KINDS)}")
    read = read_plan(plan)
    runs = chosen(read, listed(only))
    drawn = study_figures(read, recorded(read.runs, _records_of(read, record), at_hand()), runs)
    shown = {one.name: one.svg for one in drawn if one.svg is not None}
    missing = {one.name: one.reason for one in drawn if one.svg is None}
    left_out = {one.name: one.left_out for one in drawn if one.left_out}
    if shown:
        folder = make_writable_folder(out)
        check_figure(folder / f"figure.{kind}")
        for name, text in shown.items():
            write_figure(folder / f"{name}.{kind}", text)
    if as_json:
        print_json({"figures": [out / f"{name}.{kind}" for name in shown], "missing": missing, "left_out": left_out})
        return
    for name in shown:
        print_text(str(out / f"{name}.{kind}"))
    for name, reason in missing.items():
        say(f"note: no {name}: {reason}")
    for name, rows in left_out.items():
        say(f"note: {name} leaves out {rows}")


def _records_of(plan: Plan, record: Path | None) -> Path:
    """The folder with them. That of the plan comes with the first run; one that the user names has to be there."""
    folder = plan.results if record is None else record
    option = "results of the plan" if record is None else "--record"
    if folder.is_dir() or (record is None and not folder.exists()):
        return folder
    what = "is not a folder" if folder.exists() else "does not exist"
    raise ConfigError(f"{option} {folder} {what}; give the folder that caged study run wrote its records to")


def listed(only: str | None) -> list[str]:
    """The words of --only."""
    if only is None:
        return []
    words = [word.strip() for word in only.split(",") if word.strip()]
    if not words:
        raise ConfigError("--only names nothing; give words of the plan, such as epinions,honest,main, or leave it out")
    return words
