"""What reaches a terminal and what reaches a pipe."""

from __future__ import annotations

import io
from unittest import mock

import pytest
from rich.console import Console

from caged.cli import output
from tests.cli.invoke import caged
from tests.cli.terminal import terminal


def said(message: str, **environment: str) -> str:
    """What `say` writes to a terminal with colours."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=60, color_system="standard", _environ=environment)
    with mock.patch.object(output, "stderr", console):
        output.say(message)
    return file.getvalue()


@pytest.mark.parametrize(
    ("message", "colour"),
    [("error: no", "\x1b[1;31merror:\x1b[0m no\n"), ("gate FAILED: a<b", "\x1b[1;31mgate FAILED:\x1b[0m a<b\n")],
)
def test_errors_and_failed_gates_are_coloured(message: str, colour: str) -> None:
    assert said(message) == colour


def test_no_color_is_respected() -> None:
    assert "\x1b[31m" not in said("error: no", NO_COLOR="1")
    assert ";31m" not in said("error: no", NO_COLOR="1")


def test_a_pipe_gets_no_colours_and_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    message = "error: " + "word " * 40
    output.say(message.strip())
    assert capsys.readouterr().err == message.strip() + "\n"


def test_a_terminal_gets_lines_broken_between_words_and_whole_commands(capsys: pytest.CaptureFixture[str]) -> None:
    command = "  caged train --resume " + "x" * 60
    with terminal(40):
        output.say("stopped; continue with what stands on the next line:\n" + command)
    assert capsys.readouterr().err.splitlines() == ["stopped; continue with what stands on", "the next line:", command]


def test_a_title_that_looks_like_an_emoji_code_stays_text(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal(40):
        output.print_table(["title"], [[":smile: [bold]"]])
    assert ":smile: [bold]" in capsys.readouterr().out


def test_the_width_changes_nothing_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = caged("methods", "show", "caged").out
    monkeypatch.setenv("COLUMNS", "40")
    assert caged("methods", "show", "caged").out == wide
