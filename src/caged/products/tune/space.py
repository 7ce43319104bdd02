"""What a search may try: for each option a list of values or a range.

The options declare it (`caged.config.option(search=...)`); a TOML file replaces it for the methods that it names.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from caged.config import Range, Search, build, unknown_key
from caged.errors import ConfigError, unknown
from caged.models import METHODS, registered
from caged.runs.catalogue import method_options, training_options

Values = dict[str, Any]  # dotted name of an option -> its value
Space = dict[str, Search]
SECTIONS = ("method", "train")
SCALES = ("linear", "log")
# The cap on epochs is the same for every method, and validation is what a search decides on.
OWNED = ("train.epochs", "train.validation", "train.refit")


def declared_space(method: str) -> Space:
    """What the options of a method are worth trying at; a closed form has no training to search."""
    known = method_options(method)
    sections = {"method": known.options, **({"train": training_options().options} if known.trained else {})}
    return {
        f"{section}.{info.name}": info.search for section, infos in sections.items() for info in infos if info.search
    }


def read_spaces(path: Path) -> dict[str, Space]:
    """A table per method; in it `method.x = [1, 2]` or `train.y = { low = 1e-4, high = 1e-2, scale = "log" }`."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read --space {path} ({error}); give a TOML file, see caged tune space") from error
    return {method: _read_space(method, sections, path) for method, sections in content.items()}


def _read_space(method: str, sections: Any, path: Path) -> Space:
    if method not in METHODS:
        raise ConfigError(unknown(f"method in {path}", method, METHODS))
    space: Space = {}
    for section, options in _table(sections, f"[{method}] in {path}").items():
        if section not in SECTIONS:
            raise ConfigError(unknown(f"section of {method} in {path}", section, SECTIONS))
        for key, found in _table(options, f"{method}.{section} in {path}").items():
            name = f"{section}.{key}"
            space[name] = _search(name, found, path)
            _check(method, name, space[name], path)
    return space


def _table(found: Any, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ConfigError(f"{where} is {found!r}; write lines such as method.l2 = [1e-4, 1e-3] below [METHOD]")
    return found


def _search(name: str, found: Any, path: Path) -> Search:
    if isinstance(found, list) and found:
        return tuple(found)
    if isinstance(found, dict) and {"low", "high"} <= found.keys() <= {"low", "high", "scale"}:
        low, high, scale = found["low"], found["high"], found.get("scale", "linear")
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
        if numbers and scale in SCALES and low < high and (scale == "linear" or low > 0):
            return Range(low, high, scale)
    raise ConfigError(
        f"{name} in {path} is {found!r}; give a list of values, or a range {{ low = 1e-4, high = 1e-2, scale = "
        f"'log' }} with low < high and scale linear or log (log: low > 0)"
    )


def _check(method: str, name: str, search: Search, path: Path) -> None:
    """Every value, or both ends of a range, is one that the option takes."""
    section, _, key = name.partition(".")
    known = method_options(method) if section == "method" else training_options()
    if key not in [info.name for info in known.options]:
        raise ConfigError(unknown_key(name, [f"{section}.{info.name}" for info in known.options]))
    if name in OWNED:
        raise ConfigError(f"{name} in {path} is the same for every method in a search; leave it out and use --epochs")
    for value in (search.low, search.high) if isinstance(search, Range) else search:
        build(_config_of(method, section), {key: value}, section)


def _config_of(method: str, section: str) -> type[Any]:
    if section == "method":
        return registered(method).config
    from caged.training import TrainConfig

    return TrainConfig


def space_toml(method: str, space: Space) -> str:
    """As `--space` takes it.

    >>> print(space_toml("ease", {"method.l2": (10.0, 50.0)}), end="")
    [ease]
      method.l2 = [10.0, 50.0]
    """
    lines = [f"  {name} = {_toml(search)}" for name, search in space.items()]
    return "\n".join([f"[{method}]", *lines]) + "\n"


def _toml(search: Search) -> str:
    if isinstance(search, Range):
        return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in asdict(search).items()) + " }"
    return json.dumps(["none" if value is None else value for value in search])


def space_json(space: Space) -> dict[str, Any]:
    return {name: asdict(found) if isinstance(found, Range) else list(found) for name, found in space.items()}


def space_from_json(values: Mapping[str, Any]) -> Space:
    return {name: Range(**found) if isinstance(found, dict) else tuple(found) for name, found in values.items()}


def grid(space: Space) -> list[Values] | None:
    """Every setting there is; None where a range makes them endless.

    >>> grid({"method.a": (1, 2), "method.b": ("x",)})
    [{'method.a': 1, 'method.b': 'x'}, {'method.a': 2, 'method.b': 'x'}]
    >>> grid({})
    [{}]
    """
    lists = [search for search in space.values() if not isinstance(search, Range)]
    if len(lists) < len(space):
        return None
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*lists)]


def grid_size(space: Space) -> float:
    size = 1.0
    for search in space.values():
        size *= float("inf") if isinstance(search, Range) else len(search)
    return size


def within(space: Space, values: Values) -> bool:
    """Whether a setting is one that the space could give: defaults need not be."""
    return all(
        isinstance(value := values[name], int | float) and search.low <= value <= search.high
        if isinstance(search, Range)
        else values[name] in search
        for name, search in space.items()
    )
