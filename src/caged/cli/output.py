"""Printing: tables on a terminal, plain text in a pipe, JSON for machines; results on stdout, the rest on stderr."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from caged.files import json_ready
from caged.page.fitted_table import fitted_lines, wrapped
from caged.page.text_table import plain_lines

INTERRUPTED = 130  # exit code after Ctrl-C
# What a terminal obeys instead of showing it, what turns text around, and halves of characters that nothing can encode.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BUT_LINES = re.compile(_UNSEEN.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
# Of what goes to stderr; rich leaves colours out where NO_COLOR is set or nobody watches.
_STYLES = {"error:": "bold red", "warning:": "yellow", "gate FAILED:": "bold red", "gate passed:": "green"}

live_lines: list[Callable[[], None]] = []  # how to wipe the progress that stands on the screen

stdout = Console(highlight=False, emoji=False)
stderr = Console(stderr=True, highlight=False, emoji=False)


def _set_verbosity(verbose: bool) -> bool:
    if verbose:
        logging.getLogger("caged").setLevel(logging.DEBUG)
    return verbose


Verbose = Annotated[
    bool,
    typer.Option(
        "-v", "--verbose", help="Show more on stderr, with the traceback of an error.", callback=_set_verbosity
    ),
]
Ids = Annotated[
    str,
    typer.Option(help="auto (integers if every id is an integer) or text (every id is a name, even NaN or 1.2e+12)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


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
    for line in _on_screen(stdout, text):
        sys.stdout.write(line + "\n")


def print_source(text: str) -> None:
    """LaTeX or Markdown on stdout, line by line as it is, also on a terminal."""
    sys.stdout.write(shown(text, lines=True))


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    keys: int = 1,
    spare: Sequence[str] = (),
) -> None:
    """A table, figures aligned to the right; `keys` and `spare` are those of `TextTable`.

    A terminal gets the layout that fits its width. In a pipe every row is one line, however wide.
    """
    headers, rows = [shown(header) for header in headers], [[shown(cell) for cell in row] for row in rows]
    heading = [] if title is None else [shown(title)]
    if not stdout.is_terminal:
        before = ["", *heading] if heading else []
        sys.stdout.write("\n".join([*before, *plain_lines(headers, rows)]) + "\n")
        return
    _print_line("")
    for text in heading:
        for line in wrapped(text, stdout.width):
            _print_line(line, "bold")
    for drawn in fitted_lines(headers, rows, stdout.width, keys=keys, spare=spare):
        _print_line(drawn.text, "bold" if drawn.heading else None)


def _print_line(text: str, style: str | None = None) -> None:
    stdout.print(Text(text, style or ""), soft_wrap=True)


def print_sentences(sentences: Iterable[str]) -> None:
    """Paragraphs: broken at the width of a terminal, a line each in a pipe."""
    for sentence in sentences:
        print_text(f"\n{sentence}")


def _on_screen(console: Console, text: str) -> list[str]:
    """Lines as they are in a pipe; on a terminal broken between words. Indented ones, such as commands, stay whole."""
    lines = shown(text, lines=True).split("\n")
    if not console.is_terminal:
        return lines
    return [part for line in lines for part in ([line] if line.startswith(" ") else wrapped(line, console.width))]


def command_line() -> str:
    """What was typed, for whoever wants to have the result again."""
    return shlex.join(["caged", *sys.argv[1:]])


def say(message: str) -> None:
    """A line about what is going on, on stderr; on a terminal the word that it begins with has its colour."""
    start, style = next((one for one in _STYLES.items() if message.startswith(one[0])), ("", ""))
    for wipe in live_lines:
        wipe()
    first, *others = _on_screen(stderr, message)
    with outliving_terminal():
        for text in (Text.assemble((start, style), first[len(start) :]), *map(Text, others)):
            stderr.print(text, soft_wrap=True)


@contextmanager
def outliving_terminal() -> Iterator[None]:
    """For what is written to stderr: whoever closes a terminal reads no more, but what is under way ends properly."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # also for what is not flushed yet


class SafeFormatter(logging.Formatter):
    """Of what is logged."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record), lines=True)
