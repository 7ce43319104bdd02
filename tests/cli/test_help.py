"""Help at any width: whole words, all defaults, examples that a shell takes."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.invoke import caged
from tests.cli.terminal import on_terminal


def test_defaults_in_brackets_are_shown() -> None:
    text = on_terminal(80, "train", "--help").out
    assert "Name of the user column [default: user_id]." in text
    assert "[default: honest]" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_an_option_is_never_cut_short(width: int) -> None:
    text = on_terminal(width, "train", "--help").out
    assert "--timestamp-column" in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_paragraphs_reflow() -> None:
    lines = on_terminal(60, "train", "--help").out.splitlines()
    assert "  end. After Ctrl-C or a crash, --resume continues the" in lines


def test_a_long_example_can_be_pasted_into_a_shell() -> None:
    text = on_terminal(60, "audit", "--help").out
    example = text.partition("caged audit new.csv")[2].partition("\n\n")[0]
    assert shlex.split(example.replace("\\\n", "")) == [
        *("--train", "train.csv", "--test", "test.csv", "--against", "audits/old", "--fail-if", "recall@20 drops 1%"),
    ]


def test_a_group_has_the_whole_line_of_every_command() -> None:
    text = " ".join(caged("--help").out.split())
    assert "Simulate a shop with a feedback loop, and judge what methods learn from it against the truth." in text
