"""Checks of arguments: the proper type comes out, or one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caged import arguments
from caged.errors import ConfigError


@pytest.mark.parametrize("value", [7, np.int32(7), np.uint8(7)])
def test_whole_numbers(value: Any) -> None:
    found = [arguments.whole_number("k", value, least=1, most=9), arguments.checked_seed(value)]
    assert [*found, arguments.at_least_one("k", value)] == [7, 7, 7]
    assert all(type(number) is int for number in found)


@pytest.mark.parametrize("value", [None, True, "7", 7.0, 7.5, np.float32(7), [7], np.array([7, 8]), object()])
def test_what_is_no_whole_number(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"k is .*; it must be a whole number from 1 to 9"):
        arguments.whole_number("k", value, least=1, most=9)
    with pytest.raises(ConfigError, match=r"seed is .*; it must be a whole number between 0 and 2"):
        arguments.checked_seed(value)


@pytest.mark.parametrize("value", [0, 10, 10**12, -(10**40)])
def test_numbers_out_of_range(value: int) -> None:
    with pytest.raises(ConfigError, match=r"k is .*; allowed are 1\.\.9"):
        arguments.whole_number("k", value, least=1, most=9)


def test_places() -> None:
    assert arguments.place("folder", "runs/a") == arguments.place("folder", Path("runs/a")) == Path("runs/a")
    for value in (None, 5, b"x", "a\0b", "a\ud800", ["a"]):
        with pytest.raises(ConfigError, match=r"folder is .*; it must be a path"):
            arguments.place("folder", value)


def test_a_value_is_named_shortly_and_printably() -> None:
    assert arguments.described("\ud800\x1b") == r"'\ud800\x1b'"
    assert len(arguments.described("x" * 1000)) == 60
    assert arguments.described(np.zeros(1000)) == "a ndarray"
