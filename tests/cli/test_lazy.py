"""What a command imports, and that the lines of a group's help are those of its commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import caged.cli.data
import caged.cli.main
from caged.cli.lazy import LazyGroup
from tests.cli.invoke import train

# Runs `caged ARGUMENTS` for each of its own arguments, and tells after each on a line of stderr what is imported.
WATCHED = """
import json, sys
from caged.__main__ import main
for command in sys.argv[1:]:
    sys.argv = ["caged", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    imported = {name.partition(".")[0] for name, module in sys.modules.items() if module}
    sys.stderr.write("\\nimported " + json.dumps(sorted(imported)) + "\\n")
"""
SLOW_TO_IMPORT = {"torch", "scipy", "polars", "pandas"}


def imported_by(*commands: str, cwd: Path | None = None) -> dict[str, set[str]]:
    """What is imported after each command of a process of its own; the first that imports something is to blame."""
    arguments = [sys.executable, "-c", WATCHED, *commands]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    told = [line.removeprefix("imported ") for line in done.stderr.splitlines() if line.startswith("imported ")]
    return {command: set(json.loads(line)) for command, line in zip(commands, told, strict=True)}


def test_what_only_tells_imports_nothing_slow() -> None:
    tell = [
        "--help",
        "--version",
        "data --help",
        "data list",
        "methods",
        "methods show caged",
        "methods show ease --json",
    ]
    for command, imported in imported_by(*tell).items():
        assert not imported & SLOW_TO_IMPORT, command


def test_what_is_imported_is_seen() -> None:
    assert "typer" in imported_by("--version")["--version"]


@pytest.mark.parametrize("commands", [caged.cli.main.COMMANDS, caged.cli.data.COMMANDS], ids=["caged", "data"])
def test_the_lines_of_the_help_are_those_of_the_commands(commands):
    class Group(LazyGroup):
        table = commands

    for name, command in commands.items():
        loaded = Group.load(name)
        assert loaded.name == name
        paragraph = loaded.help.partition("\n\n")[0]
        assert " ".join(paragraph.split()) == command.help


def test_audits_and_comparisons_need_no_torch(log_csv: Path, finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user_id,item_id\n1,1\n1,2\n2,1\n2,3\n")
    (tmp_path / "test.csv").write_text("user_id,item_id\n1,3\n2,2\n")
    (tmp_path / "recs.csv").write_text("user_id,item_id,rank\n1,3,1\n2,2,1\n")
    audit = "audit recs.csv --train train.csv --test test.csv -k 1 --fail-if recall@1<0.5"
    commands = [
        f"{audit} -o first --html audit.html",
        f"{audit} -o second --json --against first",
        "compare first second --metrics recall@1 --html compared.html",
        f"compare {finished_run} other --json",
    ]
    train(log_csv, tmp_path / "other", method="mostpop")
    for command, imported in imported_by(*commands, cwd=tmp_path).items():
        assert "torch" not in imported, command
