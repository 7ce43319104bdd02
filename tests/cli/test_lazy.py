"""What a command imports, and that the lines of a group's help are those of its commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

import caged.cli.data
import caged.cli.main
from caged.cli.lazy import LazyGroup

# Imports whatever `caged ARGUMENTS` imports, and tells on the last line of stderr.
WATCHED = """
import json, sys
from caged.__main__ import main
try:
    main()
finally:
    sys.stderr.write("\\n" + json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
SLOW_TO_IMPORT = {"torch", "scipy", "polars", "pandas"}


def imported_by(arguments: Sequence[str]) -> set[str]:
    command = [sys.executable, "-c", WATCHED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["data", "--help"], ["data", "list"]], ids=" ".join)
def test_what_only_tells_imports_nothing_slow(arguments: list[str]) -> None:
    assert not imported_by(arguments) & SLOW_TO_IMPORT


@pytest.mark.parametrize("commands", [caged.cli.main.COMMANDS, caged.cli.data.COMMANDS], ids=["caged", "data"])
def test_the_lines_of_the_help_are_those_of_the_commands(commands):
    class Group(LazyGroup):
        table = commands

    for name, command in commands.items():
        loaded = Group.load(name)
        assert loaded.name == name
        paragraph = loaded.help.partition("\n\n")[0]
        assert " ".join(paragraph.split()) == command.help
