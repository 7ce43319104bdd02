"""Every `caged` command of the documents is one that the command line takes: its name, its options, its values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer.core
import typer.main

from caged.cli.main import USAGE_ERROR, app

CLONE = Path(__file__).parents[2]
# Not the change log: it names commands that are gone.
DOCUMENTS = [CLONE / "README.md", CLONE / "CONTRIBUTING.md", *sorted((CLONE / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(caged(?:\s[^`]*)?)`")
AT_THE_START = re.compile(r"^\s*(?:\$ |(?:- )?run: )?(caged .*)$")
ENDS_A_COMMAND = {"|", "||", "&&", ";", ">", ">>", "2>", "<", "&"}
# Errors about something left out, or about an N that stands for a number: by name, typer does not export them all.
SAID_IN_PART = {"MissingParameter", "NoArgsIsHelpError", "BadOptionUsage", "BadParameter"}


class Said(NamedTuple):
    words: list[str]
    whole: bool  # to be typed as it stands; else only some of it may be said: `caged train --refit`


def commands_in(text: str) -> Iterator[Said]:
    for _, _, block in BLOCK.findall(text):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            if found := AT_THE_START.match(line):
                yield said_in(found[1], whole=True)
    for found in INLINE.findall(BLOCK.sub("", text)):
        yield said_in(" ".join(found.split()), whole=False)


def said_in(command: str, *, whole: bool) -> Said:
    lexer = shlex.shlex(command, posix=False)  # keeps quotes: "|" is a word, | ends the command
    lexer.whitespace_split = True
    words = list(lexer)[1:]
    end = next((place for place, word in enumerate(words) if word in ENDS_A_COMMAND), len(words))
    kept = shlex.split(" ".join(words[:end]))
    return Said([word for word in kept if word != "..."], whole=whole and "..." not in kept)


def parse(words: list[str]) -> None:
    """As the command line does, up to where it would begin to work."""
    name, command, context = "caged", typer.main.get_command(app), None
    while True:
        context = command.make_context(name, list(words), parent=context)
        words = [*context._protected_args, *context.args]
        if not isinstance(command, typer.core.TyperGroup) or not words:
            return
        name, command, words = command.resolve_command(context, words)  # type: ignore[assignment]


def problem(said: Said) -> str | None:
    try:
        parse(said.words)
    except USAGE_ERROR as error:
        if said.whole or type(error).__name__ not in SAID_IN_PART:
            return f"caged {' '.join(said.words)}: {error.format_message()}"
    except (typer.Exit, SystemExit):  # --help and the like end here
        pass
    return None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_can_be_typed(path: Path) -> None:
    found = [problem(said) for said in commands_in(path.read_text(encoding="utf-8"))]
    assert [one for one in found if one] == []


def test_all_kinds_of_places_are_read() -> None:
    text = "Type `caged train --refit`:\n```sh\n$ caged data \\\n    list --json | head  # all\n```\n"
    assert list(commands_in(text)) == [
        Said(["data", "list", "--json"], whole=True),
        Said(["train", "--refit"], whole=False),
    ]
    counts = {path.name: len(list(commands_in(path.read_text(encoding="utf-8")))) for path in DOCUMENTS}
    assert counts["README.md"] > 20
    assert sum(counts.values()) > 100


@pytest.mark.parametrize(
    ("words", "whole", "said"),
    [
        ("trian", False, "No such command 'trian'"),
        ("train --refitt", False, "--refitt"),
        ("data imprt", False, "imprt"),
        ("train --method", True, "--method"),
        ("evaluate", True, "Missing argument"),
        ("demo --seed many", True, "many"),
        ("demo --sede 1", False, "--sede"),
        ("methods show", True, "Missing argument"),
    ],
)
def test_what_the_command_line_refuses_is_seen(words: str, whole: bool, said: str) -> None:
    assert said in str(problem(Said(words.split(), whole)))
