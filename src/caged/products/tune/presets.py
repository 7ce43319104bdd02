"""Chosen settings as preset files, and the commands that train them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from caged.config import parse_override
from caged.files import write_text
from caged.models import registered
from caged.products.tune.settings import Settings, applies
from caged.runs.presets import TUNED
from caged.runs.spec import EvalConfig, ExperimentSpec
from caged.training import TrainConfig

FOLDER = "presets"


def preset_path(folder: Path, method: str) -> Path:
    return folder / FOLDER / f"{method}.toml"


def write_preset(folder: Path, settings: Settings, spec: ExperimentSpec) -> Path:
    """Everything that differs from the defaults of training and of the method: `--preset` needs no other beside it."""
    path = preset_path(folder, spec.method)
    path.parent.mkdir(exist_ok=True)
    chosen = chosen_options(spec)
    head = [train_command(folder, settings, spec), f"Chosen on the validation part of {settings.source}."]
    tables = {"train": chosen["train"], f"methods.{spec.method}": chosen["method"]}
    write_text(path, toml_text(head, origin(settings.source, [spec.method]) | tables))
    return path


def origin(data: str, methods: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The section of a preset that says for which methods it was tuned, and on which data."""
    return {TUNED: {"data": data, "methods": list(methods)}}


def chosen_options(spec: ExperimentSpec) -> dict[str, dict[str, Any]]:
    """What differs from the defaults; a closed form has no training."""
    known = registered(spec.method)
    trained = bool(known.method(spec.config).stages())
    return {
        "method": _changed(spec.config, known.config()),
        "train": _changed(spec.train, TrainConfig()) if trained else {},
    }


def toml_text(comments: Sequence[str], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables without values are left out."""
    blocks = ["\n".join(f"# {comment}" for comment in comments)]
    for name, values in tables.items():
        if values:
            blocks.append("\n".join([f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]))
    return "\n\n".join(blocks) + "\n"


def train_command(folder: Path, settings: Settings, spec: ExperimentSpec) -> str:
    """What to type to have the chosen model again; data and evaluation are no part of a preset."""
    own = [text for text in settings.fixed if parse_override(text)[0] in ("data", "eval")]
    return _command(settings, spec, [str(preset_path(folder, spec.method))], own, "tuned")


def default_command(settings: Settings, spec: ExperimentSpec) -> str:
    """The same for the defaults, within the cap on epochs."""
    own = [text for text in settings.fixed if applies(text, spec.method)]
    capped = [f"train.epochs={spec.train.epochs}"] if chosen_options(spec)["train"] else []
    return _command(settings, spec, settings.presets, [*own, *capped], "default")


def _command(
    settings: Settings, spec: ExperimentSpec, presets: Sequence[str], overrides: Sequence[str], name: str
) -> str:
    words = ["caged", "train", "--data", settings.source, "--method", spec.method]
    words += [word for preset in presets for word in ("--preset", preset)]
    words += [word for text in overrides if _name(text) != "eval.k" for word in ("--set", text)]
    words += [] if spec.eval.k == EvalConfig().k else ["--set", f"eval.k={','.join(map(str, spec.eval.k))}"]
    words += ["--seed", str(spec.seed)]
    words += [] if settings.device == "auto" else ["--device", settings.device]
    words += [] if settings.threads is None else ["--threads", str(settings.threads)]
    return shlex.join([*words, "--out", f"runs/{spec.method}-{name}"])


def _name(text: str) -> str:
    return ".".join(parse_override(text)[:2])


def _changed(config: Any, default: Any) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    return {name: value for name, value in values.items() if value != getattr(default, name)}


def _toml(value: Any) -> str:
    """What JSON writes is TOML, too; TOML has no null, and options take the word.

    >>> [_toml(value) for value in (None, True, 1e-05, (1, 2), "scan")]
    ['"none"', 'true', '1e-05', '[1, 2]', '"scan"']
    """
    return json.dumps("none" if value is None else value)
