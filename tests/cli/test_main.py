"""The help of every command, and what all commands have in common."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import caged as library
from caged.cli.lazy import LazyGroup
from caged.cli.main import app
from tests.cli.invoke import caged

FULL = Path("/dev/full")


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
    assert process.returncode == 141  # as of any program that SIGPIPE ended; 1 is a gate that failed


ENDS = """
import sys, typer
from caged.cli.main import run
from caged.errors import ConfigError

app = typer.Typer()

@app.command()
def end(code: int, lines: int):
    for line in range(lines):
        sys.stdout.write(f"{line}\\n")
    if code == 2:
        raise ConfigError("no good")
    raise typer.Exit(code)

run(app, "end")
"""
FEW, MANY = "1", "100000"  # lines that stay in a buffer until the end, and such as do not


def end(code: str, lines: str, *, stdout: Any, stderr: Any = subprocess.PIPE) -> tuple[int, str]:
    """The exit code of a command that prints and would leave with `code`, and what it said."""
    command = [sys.executable, "-c", ENDS, code, lines]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.run(command, stdout=stdout, stderr=stderr, text=True, check=False, env=buffered)
    return process.returncode, process.stderr or ""


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize(("code", "lines"), [("0", FEW), ("0", MANY), ("1", FEW)])
def test_output_that_does_not_fit_is_one_sentence_and_no_failed_gate(code: str, lines: str) -> None:
    with FULL.open("w") as full:
        found, said = end(code, lines, stdout=full)
        assert found == 2
        assert said.startswith("error: could not write the output: No space left on device; ")
        assert said.count("\n") == 1
        assert end(code, lines, stdout=full, stderr=full)[0] == 2


@pytest.mark.parametrize(
    ("code", "lines", "expected"), [("0", FEW, 141), ("1", FEW, 1), ("0", MANY, 141), ("1", MANY, 141)]
)
def test_without_a_reader_the_exit_code_is_that_of_the_gates_or_of_the_pipe(
    code: str, lines: str, expected: int, broken_pipe: int
) -> None:
    assert end(code, lines, stdout=broken_pipe) == (expected, "")


def test_an_error_that_nobody_can_read_is_no_failed_gate(broken_pipe: int) -> None:
    assert end("2", FEW, stdout=broken_pipe) == (2, "error: no good\n")
    assert end("2", FEW, stdout=broken_pipe, stderr=broken_pipe)[0] == 141


@pytest.fixture
def broken_pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)
