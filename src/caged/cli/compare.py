"""`caged compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from caged.cli.output import AsJson, Verbose, command_line, print_json, print_sentences, print_table, say
from caged.errors import ConfigError
from caged.files import check_file, write_text
from caged.page.html import require_templates
from caged.products.compare import (
    closing,
    compare,
    comparison_html,
    comparison_latex,
    comparison_markdown,
    comparison_tables,
)


def compare_command(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs and audits, or --record files; the first is the baseline."),
    ],
    baseline: Annotated[
        str | None, typer.Option(help="Method or folder to compare the others with [default: the first].")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Metrics to show, e.g. recall@20,ndcg@20/niche [default: the usual eight].")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page that opens offline.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the tables as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Also write the tables as LaTeX (booktabs).")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compare runs and audits on the same test part, with differences, intervals and tests.

    Runs with the same method and settings count as seeds of one method. With one run per method the tests are over
    users; with five or more they are over seeds; with two to four there is no test. Holm's correction covers every
    p-value shown.

    Examples:

      caged compare runs/lightgcn runs/ips runs/mostpop

      caged compare runs/lightgcn-* runs/caged-* --baseline lightgcn --html compare.html

      caged compare runs/lightgcn audits/ours --metrics recall@20,tail_share@20 --latex table.tex

      caged compare results/ml-1m/honest/lightgcn/*.json results/ml-1m/honest/ips/*.json
    """
    files = {"--html": html, "--markdown": markdown, "--latex": latex}
    _check_places(files, folders)
    if html is not None:
        require_templates()
    found = compare(folders, baseline=baseline, metrics=None if metrics is None else metrics.split(","))
    for warning in found.warnings:
        say(f"warning: {warning}")
    command = command_line()
    if html is not None:
        write_text(html, comparison_html(found, command))
    if markdown is not None:
        write_text(markdown, comparison_markdown(found, command))
    if latex is not None:
        write_text(latex, comparison_latex(found, command))
    if as_json:
        print_json({**found.to_json(), "command": command})
    else:
        for table in comparison_tables(found):
            print_table(table.headers, table.rows, title=table.title, keys=table.keys, spare=table.spare)
        print_sentences(closing(found))
    for option, path in files.items():
        if path is not None:
            say(f"{option[2:]}: {path}")


def _check_places(files: dict[str, Path | None], inputs: Sequence[Path]) -> None:
    """Before anything is read: every file can be written, and none of them overwrites another or what is compared."""
    given = {option: path for option, path in files.items() if path is not None}
    for option, path in given.items():
        check_file(option, path, inputs)
    if len({path.resolve() for path in given.values()}) < len(given):
        raise ConfigError(f"{' and '.join(given)} name the same file; give each its own")
