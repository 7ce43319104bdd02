"""Strict configuration: frozen dataclasses in, dotted overrides on top, one clear sentence for what does not fit.

A field is declared with `option(default, help, source=...)`; ranges and choices sit beside the default, and
`caged methods show` prints them. Unknown keys are errors with a suggestion, never ignored.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from caged.arguments import described
from caged.errors import ConfigError, suggestion

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Numbers that tuning may draw, ends included; whole ones where both ends are. `log`: alike on a log scale."""

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def __str__(self) -> str:
        """
        >>> str(Range(1e-4, 1e-2, "log")), str(Range(1, 4))
        ('0.0001 to 0.01 (log)', '1 to 4')
        """
        return f"{self.low:g} to {self.high:g}" + (" (log)" if self.scale == "log" else "")


Search = tuple[Any, ...] | Range  # a list of values, or all within a range


def option(
    default: Any,
    help: str,
    *,
    source: str = "our choice",
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    search: Search = (),
    operational: bool = False,
) -> Any:
    """A dataclass field with its meaning, where its default comes from, what is allowed, and what is worth trying.

    `search` are the values that tuning tries, a list or a `Range`; an option without any keeps its value. An
    `operational` option decides how fast something is computed or stored and leaves results as they are, up to
    rounding: runs that differ in it are runs of the same method.
    """
    about = {"help": help, "source": source, "search": search, "operational": operational}
    limits = {"minimum": minimum, "above": above, "maximum": maximum, "choices": choices}
    return dataclasses.field(default=default, metadata={**about, **limits})


class OptionInfo(NamedTuple):
    name: str
    type: str
    default: Any
    allowed: str
    help: str
    source: str
    search: Search

    def to_json(self) -> dict[str, Any]:
        searched = dataclasses.asdict(self.search) if isinstance(self.search, Range) else self.search
        return {**self._asdict(), "search": searched}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> OptionInfo:
        found = values["search"]
        return cls(**{**values, "search": Range(**found) if isinstance(found, dict) else tuple(found)})


def value_text(value: Any) -> str:
    """A value of an option as it is written after `--set`.

    >>> [value_text(value) for value in (None, True, 1e-05, (0.0, 2.0), "scan")]
    ['none', 'true', '1e-05', '0, 2', 'scan']
    """
    if isinstance(value, tuple | list):
        return ", ".join(value_text(part) for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def describe(config: type[Any]) -> list[OptionInfo]:
    """Every option of a configuration class, in declaration order."""
    hints = typing.get_type_hints(config)
    return [
        OptionInfo(
            field.name,
            _type_name(hints[field.name]),
            field.default,
            _allowed(field),
            field.metadata.get("help", ""),
            field.metadata.get("source", ""),
            field.metadata.get("search", ()),
        )
        for field in dataclasses.fields(config)
    ]


def operational(config: type[Any]) -> list[str]:
    """The names of the options that leave results as they are."""
    return [field.name for field in dataclasses.fields(config) if field.metadata.get("operational")]


def build(config: type[T], values: Mapping[str, Any], section: str) -> T:
    """An instance of `config` from untyped values (TOML, JSON or command-line strings), checked."""
    hints = typing.get_type_hints(config)
    fields = {field.name: field for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    checked = {}
    for name, value in values.items():
        if name not in fields:
            raise ConfigError(unknown_key(f"{section}.{name}", [f"{section}.{known}" for known in fields]))
        checked[name] = _convert(value, hints[name], f"{section}.{name}")
        _check_limits(checked[name], fields[name], f"{section}.{name}")
    return config(**checked)


def to_dict(config: Any) -> dict[str, Any]:
    """Plain values that JSON and `build` take back."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(config).items()
    }


def parse_override(text: str) -> tuple[str, str, str]:
    """Split `section.key=value`.

    >>> parse_override("method.layers=2")
    ('method', 'layers', '2')
    """
    path, equals, value = text.partition("=")
    section, dot, key = path.strip().partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(f"cannot read override '{text}'; write it as section.key=value, e.g. train.epochs=50")
    return section, key, value.strip()


def unknown_key(wrong: str, known: list[str]) -> str:
    names = ", ".join(known) if known else "none, this section has nothing to set"
    return f"unknown key '{wrong}'; known: {names}{suggestion(wrong, known)}"


def _convert(value: Any, hint: Any, name: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _convert_union(value, arguments, name)
    if origin is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        parts = parts if isinstance(parts, list | tuple) else [parts]
        return tuple(_convert(part, arguments[0], name) for part in parts)
    try:
        return _CONVERTERS[hint](value)
    except OverflowError as error:
        raise ConfigError(f"{name} is {described(value)}; no number of that size is allowed, change it") from error
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{name} is {described(value)}; it must be {_type_name(hint)}, please correct it") from error


def _convert_union(value: Any, arguments: tuple[Any, ...], name: str) -> Any:
    """The first member that takes the value; 'none' stands for None on the command line."""
    if type(None) in arguments and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None
    members = [member for member in arguments if member is not type(None)]
    for member in members[:-1]:
        try:
            return _convert(value, member, name)
        except ConfigError:
            continue
    return _convert(value, members[-1], name)


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {
        "true": True,
        "yes": True,
        "1": True,
        "on": True,
        "false": False,
        "no": False,
        "0": False,
        "off": False,
    }
    return words[str(value).lower()]


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError
    number = int(value)
    if not -(2**63) <= number < 2**63:  # nothing that counts here is as large, and torch takes no more
        raise OverflowError
    return number


def _to_float(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError
    return number


def _to_str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


_CONVERTERS: dict[Any, Any] = {bool: _to_bool, int: _to_int, float: _to_float, str: _to_str}
_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "text",
    type(None): "none",
}


def _type_name(hint: Any) -> str:
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return f"a list ({_type_name(arguments[0])}, ...)"
    if arguments:
        return " or ".join(_type_name(argument) for argument in arguments)
    return _NAMES.get(hint, str(hint))


def _allowed(field: dataclasses.Field[Any]) -> str:
    limits = field.metadata
    if limits.get("choices"):
        return " | ".join(limits["choices"])
    parts = [
        f"{sign} {limits[key]:g}"
        for key, sign in (("minimum", ">="), ("above", ">"), ("maximum", "<="))
        if limits.get(key) is not None
    ]
    return " and ".join(parts)


def _check_limits(value: Any, field: dataclasses.Field[Any], name: str) -> None:
    limits = field.metadata
    for part in value if isinstance(value, tuple) else (value,):
        if limits.get("choices") and part is not None and part not in limits["choices"]:
            near = suggestion(str(part), limits["choices"])
            raise ConfigError(f"{name} is '{part}'; allowed: {', '.join(limits['choices'])}{near}")
        if part is None or isinstance(part, str):
            continue
        below = limits.get("minimum") is not None and part < limits["minimum"]
        not_above = limits.get("above") is not None and part <= limits["above"]
        too_large = limits.get("maximum") is not None and part > limits["maximum"]
        if below or not_above or too_large:
            raise ConfigError(f"{name} is {part}; it must be {_allowed(field)}, please change it")
