"""What every command prints is what somebody looked at: tests/golden, written by `python -m tools.golden`."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.golden.cases import CASES, HELP, KEPT, WIDTHS, build_world, help_text, kept_text

CLONE = Path(__file__).parents[2]
HOW = "look at the difference; if it is meant, run python -m tools.golden"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    build_world(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_output_is_the_kept_one(name: str, world: Path) -> None:
    kept = (KEPT / f"{name}.txt").read_text(encoding="utf-8")
    assert kept_text(CASES[name], world) == kept, HOW


def test_every_command_is_kept() -> None:
    groups = {path[:-1] for path in HELP} - {("methods",), ("tune",)}  # print their help; these two are commands too
    assert {"-".join(path) for path in HELP if path not in groups} == CASES.keys() - {"bad-input"}
    assert {path.stem for path in KEPT.glob("*.txt")} == CASES.keys()


# ---------------------------------------------------------------- what holds of all of them


def sections(name: str) -> dict[str, str]:
    """By width, or `in a pipe`: what is on stdout and stderr."""
    text = (KEPT / f"{name}.txt").read_text(encoding="utf-8")
    parts = re.split(r"^==== (.+?): exit code \d, stdout$", text, flags=re.MULTILINE)[1:]
    return {
        where: re.sub(r"^---- .*$", "", content, flags=re.MULTILINE)
        for where, content in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for line in sections(name)[f"{width} columns"].splitlines():
        words = line.split()
        alone = len(words) == 1 or line.startswith("  ")  # an address or a command, which nobody could copy in pieces
        assert cell_len(line) <= width or alone, line


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_no_word_and_no_number_is_broken(name: str, width: int) -> None:
    """Everything between two blanks on a terminal is there in the pipe too, where nothing is broken."""
    shown = sections(name)
    said_of_columns = re.compile(r"\(no room for: .*?see\s+all\)", re.DOTALL)
    on_terminal = said_of_columns.sub("", shown[f"{width} columns"]).split()
    whole = set(re.sub(r"[,:]", " ", shown["in a pipe"]).split())
    for word in on_terminal:
        assert word.strip("-") == "" or word.strip(",:") in whole or word in shown["in a pipe"].split(), word


# ---------------------------------------------------------------- help


@pytest.mark.parametrize("command", HELP, ids=lambda path: "-".join(("caged", *path)))
def test_the_help_is_the_kept_one(command: tuple[str, ...]) -> None:
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", (CLONE / "constraints.txt").read_text(), flags=re.MULTILINE))
    if version("typer") != pinned["typer"]:
        pytest.skip(f"typer {version('typer')} words its part of the help in its own way; kept is {pinned['typer']}")
    kept = (KEPT / "help" / f"{'-'.join(('caged', *command))}.txt").read_text(encoding="utf-8")
    assert help_text(command) == kept, HOW


def test_no_help_is_kept_of_a_command_that_is_gone() -> None:
    assert {path.stem for path in (KEPT / "help").iterdir()} == {"-".join(("caged", *path)) for path in HELP}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", sorted((KEPT / "help").iterdir()), ids=lambda path: path.stem)
def test_no_line_of_the_help_is_too_wide(path: Path, width: int) -> None:
    text = path.read_text(encoding="utf-8").partition(f"==== {width} columns\n")[2].partition("\n==== ")[0]
    assert all(len(line) <= width for line in text.splitlines()), path
