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


@pytest.mark.parametrize("name", CASES)
def test_no_line_is_too_wide_and_no_word_and_no_number_is_broken(name: str) -> None:
    shown = sections(name)
    assert shown.keys() == {*(f"{width} columns" for width in WIDTHS), "in a pipe"}
    for width in WIDTHS:
        on_terminal = shown[f"{width} columns"]
        assert [line for line in on_terminal.splitlines() if is_too_wide(line, width)] == []
        assert broken_words(on_terminal, in_a_pipe=shown["in a pipe"]) == []


def is_too_wide(line: str, width: int) -> bool:
    alone = len(line.split()) == 1 or line.startswith("  ")  # an address or a command: nobody could copy it in pieces
    return cell_len(line) > width and not alone


def broken_words(on_terminal: str, in_a_pipe: str) -> list[str]:
    """Everything between two blanks on a terminal is there in the pipe too, where nothing is broken."""
    said_of_columns = re.compile(r"\(no room for: .*?see\s+all\)", re.DOTALL)
    whole = set(re.sub(r"[,:]", " ", in_a_pipe).split()) | set(in_a_pipe.split())
    words = said_of_columns.sub("", on_terminal).split()
    return [word for word in words if word.strip("-") and word.strip(",:") not in whole and word not in whole]


def test_what_is_too_wide_or_broken_is_seen() -> None:
    assert is_too_wide("recall@20 is 0.5", 10)
    assert not is_too_wide("recall@20 is 0.5", 16)
    assert broken_words("recall@ 20: 0.5 --", in_a_pipe="recall@20: 0.5") == ["recall@", "20:"]


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
def test_no_line_of_the_help_is_too_wide(width: int) -> None:
    for path in (KEPT / "help").iterdir():
        text = path.read_text(encoding="utf-8").partition(f"==== {width} columns\n")[2].partition("\n==== ")[0]
        assert text, path
        assert [line for line in text.splitlines() if len(line) > width] == [], path
