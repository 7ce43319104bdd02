"""Presets: the TOML files beside this one, and files of the same form that a user names by path.

Whether a preset fits the options of the methods is checked where an experiment is resolved (`runs/spec.py`).
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from caged.errors import ConfigError, unknown

_FOLDER = resources.files(__name__)
TUNED = "tuned"  # the section that says where values were chosen; it sets nothing


def preset_names() -> list[str]:
    return sorted(item.name.removesuffix(".toml") for item in _FOLDER.iterdir() if item.name.endswith(".toml"))


def preset_values(name: str) -> dict[str, Any]:
    """What is written in the built-in preset `name`, or in the TOML file of that path."""
    try:
        return tomllib.loads(_text(name))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"preset '{name}' is not valid TOML ({error}); correct the file") from error


def own_options(name: str, method: str) -> dict[str, Any]:
    """What a built-in preset sets for this method alone, beside its training."""
    own = preset_values(name).get("methods", {}).get(method, {})
    return {key: value for key, value in own.items() if not isinstance(value, dict)}


def tuned_on(name: str, method: str) -> str | None:
    """The data on whose validation part `caged tune` chose the preset's values for `method`; None: it chose none.

    What it chose may be the default, so a preset that sets nothing for a method may still have been tuned for it.
    """
    origin = preset_values(name).get(TUNED, {})
    return origin.get("data") if method in origin.get("methods", ()) else None


def _text(name: str) -> str:
    if name.endswith(".toml"):
        try:
            return Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read preset file {name} ({error}); give a readable TOML file") from error
    if name not in preset_names():
        raise ConfigError(unknown("preset", name, preset_names()))
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
