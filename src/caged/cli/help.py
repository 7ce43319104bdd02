"""How help looks: plain text that reflows at any width, whole words, every default, examples that can be copied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from caged.page.fitted_table import wrapped
from caged.page.text_table import GAP, padded

WIDEST = 100  # longer lines are hard to read
NARROWEST_TEXT = 24  # beside the names of options; narrower, the text goes below its name
EXAMPLE = "  caged "  # the start of a line that can be typed; a longer one goes on after a backslash
_WORD = r"(?:'[^']*'|[^\s'])+"
_WORDS = re.compile(rf"--?[\w-]+ (?!-){_WORD}|{_WORD}")  # an option stays with its value
_DEFAULT = re.compile(r"\[default: [^\]]{1,20}\]")
_STICKY = "\0"  # a blank at which no line is broken

_Context: Any = TyperGroup.context_class
_Formatter: Any = _Context.formatter_class


class HelpFormatter(_Formatter):  # type: ignore[misc]  # typer brings its own or takes it from click
    """Breaks lines between words only, not at hyphens."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        super().__init__(indent_increment=indent_increment, width=width, max_width=WIDEST)

    def write_text(self, text: str) -> None:
        indent = " " * self.current_indent
        room = self.width - self.current_indent
        for paragraph in text.split("\n\n"):
            for line in _paragraph_lines(paragraph, room):
                self.write(f"{indent}{line}".rstrip() + "\n")
            self.write("\n")
        self.buffer.pop()  # no blank line after the last

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = GAP) -> None:
        """Names and what is said about them, side by side; below each other where that is too narrow."""
        named = [(name.replace("<list[str]>", "<str>"), text) for name, text in rows]  # one value each time
        longest = max((len(name) for name, _ in named if len(name) <= col_max), default=0)
        first = min(longest, col_max) + col_spacing
        room = self.width - self.current_indent - first
        indent = " " * self.current_indent
        for name, text in named:
            beside = len(name) + col_spacing <= first and room >= NARROWEST_TEXT
            behind = first if room >= NARROWEST_TEXT else 4
            lines = _text_lines(text, self.width - self.current_indent - behind)
            if beside:
                self.write(f"{indent}{padded(name, first, right=False)}{lines[0]}".rstrip() + "\n")
                lines = lines[1:]
            else:
                self.write(f"{indent}{name}\n")
            for line in lines:
                self.write(f"{indent}{' ' * behind}{line}".rstrip() + "\n")


class HelpContext(_Context):  # type: ignore[misc]
    formatter_class = HelpFormatter


class HelpGroup(TyperGroup):
    """A group whose help has the whole line of every command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        said = {name: (command.help or "").partition("\n\n")[0] for name, command in self.commands.items()}
        rows = [(name, " ".join(text.split())) for name, text in said.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def group(help: str | None = None, **options: Any) -> typer.Typer:
    """A group whose commands stand in one file; without `help`, the docstring of its callback is its help."""
    said: dict[str, Any] = {} if help is None else {"help": help}
    return typer.Typer(cls=HelpGroup, rich_markup_mode=None, **said, **options)


def with_plain_help(command: Any) -> Any:
    """The command, and all below it, with this help."""
    command.context_class, command.rich_markup_mode = HelpContext, None
    for child in getattr(command, "commands", {}).values():
        with_plain_help(child)
    return command


def _text_lines(text: str, room: int) -> list[str]:
    """Broken between words, not within a short default."""
    whole = _DEFAULT.sub(lambda found: found[0].replace(" ", _STICKY), text)
    return [line.replace(_STICKY, " ") for line in wrapped(whole, room)]


def _paragraph_lines(paragraph: str, room: int) -> Iterator[str]:
    for line in paragraph.split("\n") if paragraph.startswith(" ") else [paragraph]:
        if line.startswith(EXAMPLE):
            yield from _example_lines(line, room)
        else:
            yield from wrapped(line, room)


def _example_lines(example: str, room: int) -> Iterator[str]:
    r"""A command as a shell takes it, in several lines if need be.

    >>> list(_example_lines("  caged audit recs.csv --fail-if 'recall@20 drops 1%'", 44))
    ['  caged audit recs.csv \\', "      --fail-if 'recall@20 drops 1%'"]
    """
    line, indent = " ", "     "
    for word in _WORDS.findall(example):
        if len(line) + 1 + len(word) + 2 > room and line.strip():
            yield f"{line} \\"
            line = indent
        line += f" {word}"
    yield line
