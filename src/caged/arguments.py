"""Checks of what somebody passes to a public function: the value in its proper type, or one sentence about it."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from caged.errors import ConfigError, unknown

T = TypeVar("T")

LARGEST_SEED = 2**63 - 1
THOUSANDS = {"K": 10**3, "M": 10**6, "B": 10**9}
LARGEST_COUNT, LONGEST_COUNT = 10**15, 40
# A comma parts thousands; 1,5 is a fraction to some people and would be 15 to a machine.
_COUNT = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][0-9]{1,2})?)([kKmMbB]?)")


def described(value: Any) -> str:
    """A value as a sentence names it: itself where it is short, else its type.

    >>> described("5"), described(1.5), described({"a": 1})
    ("'5'", '1.5', 'a dict')
    """
    if value is None or isinstance(value, str | bytes | int | float | complex):
        text = ascii(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"a {type(value).__name__}"


def whole_number(name: str, value: Any, *, least: int, most: int, advice: str = ": choose another") -> int:
    """An integer of Python or numpy; a float or text that looks like one is none."""
    given = _integer(value)
    if given is None:
        raise ConfigError(f"{name} is {described(value)}; it must be a whole number from {least} to {most}")
    if not least <= given <= most:
        raise ConfigError(f"{name} is {described(given)}; allowed are {least}..{most}{advice}")
    return given


def counted(name: str, text: str) -> int:
    """A whole number as people write large ones: 2000, 2_000, 2,000, 20M, 1.5B.

    >>> counted("users", "20M"), counted("users", "1.5k"), counted("users", "2_000")
    (20000000, 1500, 2000)
    """
    found = _COUNT.fullmatch(text.strip())
    value = Fraction(0)
    if found is not None and len(text) <= LONGEST_COUNT:
        value = Fraction(found[1].replace(",", "").replace("_", "")) * THOUSANDS.get(found[2].upper(), 1)
    if value < 1 or value.denominator != 1:
        raise ConfigError(f"{name} is {described(text)}; write a whole number, such as 2000, 20M or 1.5B")
    if value > LARGEST_COUNT:
        raise ConfigError(f"{name} is {described(text)}; allowed are at most 10^15")
    return int(value)


def at_least_one(name: str, value: Any) -> int:
    given = _integer(value)
    if given is None or given < 1:
        raise ConfigError(f"{name} is {described(value)}; it must be a whole number, 1 or more")
    return given


def finite_number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ConfigError(f"{name} is {described(value)}; it must be a finite number")
    return float(value)


def checked_seed(value: Any) -> int:
    given = _integer(value)
    if given is None or not 0 <= given <= LARGEST_SEED:
        raise ConfigError(
            f"seed is {described(value)}; it must be a whole number between 0 and 2^63 - 1, choose another"
        )
    return given


def _integer(value: Any) -> int | None:
    """Of Python or numpy; True is none."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{name} is {described(value)}; allowed: {', '.join(allowed)}")
    if value not in allowed:
        raise ConfigError(unknown(name, ascii(value)[1:-1], allowed))
    return value


def yes_or_no(name: str, value: Any) -> bool:
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):  # numpy's, too
        raise ConfigError(f"{name} is {described(value)}; it must be True or False")
    return bool(value)


def instance(name: str, value: Any, kind: type[T], advice: str = "") -> T:
    if not isinstance(value, kind):
        raise ConfigError(f"{name} is {described(value)}; give {kind.__name__}{f', {advice}' if advice else ''}")
    return value


def instances(name: str, values: Any, kind: type[T]) -> list[T]:
    """At least one of them."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ConfigError(f"{name} is {described(values)}; give a list of {kind.__name__}")
    found = [instance(f"one of {name}", value, kind) for value in values]
    if not found:
        raise ConfigError(f"{name} is empty; give at least one {kind.__name__}")
    return found


def place(name: str, value: Any) -> Path:
    """A path that the system can be asked for; whether anything is there is another question."""
    try:
        path = Path(value)
        legal = b"\0" not in os.fsencode(path)
    except (TypeError, UnicodeEncodeError):
        legal = False
    if not legal:
        raise ConfigError(f"{name} is {described(value)}; it must be a path: text or a pathlib.Path")
    return path
