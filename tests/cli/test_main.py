"""The help of every command, and what all commands have in common."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

import caged as library
from caged.cli.lazy import LazyGroup
from caged.cli.main import app
from tests.cli.invoke import caged


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, listed in getattr(command, "commands", {}).items():
        child = command.load(name) if isinstance(command, LazyGroup) else listed
        yield from commands(child, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


# ---------------------------------------------------------------- help


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_teaches_every_option(path: tuple[str, ...]) -> None:
    outcome = caged(*path, "--help")
    assert outcome.code == 0
    assert outcome.err == ""
    for parameter in COMMANDS[path].params:
        if parameter.param_type_name == "option":
            assert max(parameter.opts, key=len) in outcome.out
            assert getattr(parameter, "help", None), f"{parameter.name} says nothing"
    for name in getattr(COMMANDS[path], "commands", {}):
        assert name in outcome.out


def test_the_commands_are_there() -> None:
    wanted = {"train", "evaluate", "recommend", "methods", "methods show", "results pack", "results unpack"}
    assert wanted <= {" ".join(path) for path in COMMANDS}


def test_version() -> None:
    assert caged("--version") == (0, f"caged {library.__version__}\n", "")


def test_no_command_shows_the_help() -> None:
    outcome = caged()
    assert outcome.code == 2
    assert "Usage: caged" in outcome.out + outcome.err
    assert "error:" not in outcome.err


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "caged", "methods", "show", "lightgcn"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(timeout=60)
