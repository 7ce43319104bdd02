"""A chosen setting as a preset file, and the command that trains it."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

from caged.config import parse_override
from caged.files import write_text
from caged.models import registered
from caged.products.tune.settings import Settings
from caged.runs.spec import ExperimentSpec
from caged.training import TrainConfig

FOLDER = "presets"


def preset_path(folder: Path, method: str) -> Path:
    return folder / FOLDER / f"{method}.toml"


def write_preset(folder: Path, settings: Settings, spec: ExperimentSpec) -> Path:
    """Everything that differs from the defaults of training and of the method: `--preset` needs no other beside it."""
    path = preset_path(folder, spec.method)
    path.parent.mkdir(exist_ok=True)
    sections = {"train": _changed(spec.train, TrainConfig()), f"methods.{spec.method}": _own(spec)}
    blocks = [
        "\n".join([f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in values.items())])
        for name, values in sections.items()
        if values
    ]
    head = f"# {train_command(folder, settings, spec)}\n# Chosen on the validation part of {settings.source}."
    write_text(path, "\n\n".join([head, *blocks]) + "\n")
    return path


def train_command(folder: Path, settings: Settings, spec: ExperimentSpec) -> str:
    """What to type to have the chosen model again; data and evaluation are no part of a preset."""
    words = ["caged", "train", "--data", settings.source, "--method", spec.method]
    words += ["--preset", str(preset_path(folder, spec.method))]
    for text in settings.fixed:
        if parse_override(text)[0] in ("data", "eval"):
            words += ["--set", text]
    words += ["--seed", str(spec.seed)]
    words += [] if settings.device == "auto" else ["--device", settings.device]
    words += [] if settings.threads is None else ["--threads", str(settings.threads)]
    return shlex.join([*words, "--out", f"runs/{spec.method}-tuned"])


def _own(spec: ExperimentSpec) -> dict[str, Any]:
    return _changed(spec.config, registered(spec.method).config())


def _changed(config: Any, default: Any) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    return {name: value for name, value in values.items() if value != getattr(default, name)}


def _toml(value: Any) -> str:
    """What JSON writes is TOML, too; TOML has no null, and options take the word.

    >>> [_toml(value) for value in (None, True, 1e-05, (1, 2), "scan")]
    ['"none"', 'true', '1e-05', '[1, 2]', '"scan"']
    """
    return json.dumps("none" if value is None else value)
