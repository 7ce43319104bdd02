"""Printing: tables on a terminal, plain text in a pipe, JSON for machines; results on stdout, the rest on stderr."""

from __future__ import annotations

import json
import logging
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console

from caged.files import json_ready
from caged.page.numbers import UNDEFINED
from caged.page.text_table import plain_lines

INTERRUPTED = 130  # exit code after Ctrl-C
# What a terminal obeys instead of showing it, what turns text around, and halves of characters that nothing can encode.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BUT_LINES = re.compile(_UNSEEN.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


def _set_verbosity(verbose: bool) -> bool:
    if verbose:
        logging.getLogger("caged").setLevel(logging.DEBUG)
    return verbose


Verbose = Annotated[
    bool,
    typer.Option("-v", "--verbose", help="More on stderr, and tracebacks of errors.", callback=_set_verbosity),
]
Ids = Annotated[
    str, typer.Option(help="auto (integers where all ids are) or text (every id is a name, also NaN or 1.2e+12).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout instead of a table.")]


def is_verbose() -> bool:
    return logging.getLogger("caged").level == logging.DEBUG


def shown(text: str, *, lines: bool = False) -> str:
    r"""Text that is safe on a terminal: identifiers are whatever a log holds. `lines` keeps the ends of lines.

    >>> print(shown("a\x1b[2Jb\n"))
    a\x1b[2Jb\x0a
    """
    unseen = _BUT_LINES if lines else _UNSEEN
    return unseen.sub(lambda found: f"\\x{ord(found[0]):02x}" if found[0] < "\u0100" else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"


def print_json(value: Any) -> None:
    text = json.dumps(json_ready(value), indent=2, ensure_ascii=False)
    # Left over are those that JSON itself lets through, all of them inside of text.
    sys.stdout.write(_BUT_LINES.sub(lambda found: _escaped(found[0]), text) + "\n")


def print_text(text: str) -> None:
    """Lines on stdout that are no table."""
    sys.stdout.write(shown(text, lines=True) + "\n")


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None) -> None:
    """A table; the first column is text, the others are aligned to the right where they hold numbers."""
    headers, rows = [shown(header) for header in headers], [[shown(cell) for cell in row] for row in rows]
    title = None if title is None else shown(title)
    numeric = [all(_looks_numeric(row[column]) for row in rows) for column in range(len(headers))]
    if not stdout.is_terminal:
        heading = [f"\n{title}"] if title else []
        sys.stdout.write("\n".join([*heading, *plain_lines(headers, rows, numeric)]) + "\n")
        return
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for header, right in zip(headers, numeric, strict=True):
        table.add_column(header, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    stdout.print(table)


def print_sentences(sentences: Iterable[str]) -> None:
    """Paragraphs below a table: broken at the width of a terminal, a line each in a pipe."""
    for sentence in sentences:
        stdout.print(f"\n{shown(sentence)}", markup=False, soft_wrap=not stdout.is_terminal)


def command_line() -> str:
    """What was typed, for whoever wants to have the result again."""
    return shlex.join(["caged", *sys.argv[1:]])


def say(message: str) -> None:
    """A line about what is going on, on stderr."""
    stderr.print(shown(message, lines=True), markup=False, soft_wrap=True)


class SafeFormatter(logging.Formatter):
    """Of what is logged."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record), lines=True)


def _looks_numeric(cell: str) -> bool:
    return cell == UNDEFINED or cell.replace(",", "").lstrip("+-").replace(".", "", 1).isdigit()
