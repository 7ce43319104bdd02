"""Marked parts of a document are made anew, all else is left alone."""

from __future__ import annotations

from tools.marked import arguments_of, filled

TEXT = "a\n<!-- sum: 1 2 -->\nold\n<!-- end -->\nb\n<!-- other: x -->\nkept\n<!-- end -->\n"


def test_only_parts_of_a_known_kind_are_made_anew() -> None:
    made = filled(TEXT, {"sum": lambda argument: str(sum(map(int, argument.split())))})
    assert made == TEXT.replace("old", "3")


def test_arguments() -> None:
    assert arguments_of(TEXT, "sum") == ["1 2"]
    assert arguments_of(TEXT, "none") == []
