"""`caged results`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caged.cli.help import group
from caged.cli.output import AsJson, Verbose, command_line, print_json, print_sentences, print_source, print_table, say
from caged.errors import ConfigError
from caged.files import check_file, write_text
from caged.products.results import (
    ResultsTable,
    caption,
    read_results,
    results_latex,
    results_markdown,
    results_tables,
    results_text,
)
from caged.runs import results

app = group("Print recorded results as a paper's table, or move them to another machine.", no_args_is_help=True)


@app.command()
def table(
    folder: Annotated[Path, typer.Argument(help="Folder that --record wrote to.")],
    datasets: Annotated[
        str | None, typer.Option(help="Datasets, e.g. ml-1m,gowalla; you may use wildcards [default: all].")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Rows, by folder name, e.g. lightgcn,caged-code,ips*; the first is the baseline "
            "[default: all, lightgcn first]."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Columns, e.g. recall@20,gini@20 [default: Recall and NDCG at 20, all and niche items]."),
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="honest or paper [default: one table each].")] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add 95% intervals over seeds (needs three seeds).")
    ] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (booktabs).")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    label: Annotated[
        str, typer.Option(help="LaTeX label; with several tables, each adds its protocol.")
    ] = "tab:results",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write to this file instead.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print recorded results as a paper's table: datasets side by side, one row per method.

    Bold marks the best value of a column, underline the second best. A star marks a significant difference from the
    first row over seeds (Welch's t, Holm's correction; both need five seeds). Protocols never share a table.

    Examples:

      caged results table results --datasets ml-1m-caged,epinions-caged --methods lightgcn,ips,ease --protocol honest

      caged results table results --protocol honest --latex -o table.tex
    """
    if sum((latex, markdown, as_json)) > 1:
        raise ConfigError("--latex, --markdown and --json exclude each other; choose one")
    if out is not None:
        if not (latex or markdown):
            raise ConfigError("--out needs to know what to write; add --latex or --markdown")
        check_file("--out", out, folder.rglob("*.json"))  # its records
    found = read_results(folder, datasets=_listed(datasets), methods=_listed(methods), protocol=protocol)
    tables = results_tables(found, _listed(metrics))
    command = command_line()
    if as_json:
        print_json({"tables": [one.to_json() for one in tables], "command": command})
        return
    if latex:
        labels = [label if len(tables) == 1 else f"{label}-{one.protocol}" for one in tables]
        parts = [
            results_latex(one, command, label=named, intervals=intervals)
            for one, named in zip(tables, labels, strict=True)
        ]
    elif markdown:
        parts = [results_markdown(one, command, intervals=intervals) for one in tables]
    else:
        for one in tables:
            _print(one, intervals=intervals)
        return
    text = "\n".join(parts)
    if out is None:
        print_source(text)
    else:
        write_text(out, text)
        say(f"table: {out}")


def _print(shown: ResultsTable, *, intervals: bool) -> None:
    for part in results_text(shown, intervals=intervals):
        print_table(part.headers, part.rows, title=part.title)
    print_sentences([caption(shown, intervals=intervals, marks=("¹", "²"))])
    for note in shown.notes:
        say(f"note: {note}")


def _listed(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="Folder that --record wrote to.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Archive to write.")] = Path("results.tar.gz"),
) -> None:
    """Pack all records under a folder into one archive."""
    check_file("--out", out, folder.rglob("*.json"))
    say(f"{results.pack(folder, out)} records packed into {out}")


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(help="Archive made by caged results pack.")],
    into: Annotated[Path, typer.Option(help="Folder to unpack into.")] = Path("results"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace records that differ.")] = False,
) -> None:
    """Unpack the records of an archive into a folder; writes nothing if any record is bad."""
    say(f"{results.unpack(archive, into, overwrite=overwrite)} records unpacked into {into}")
