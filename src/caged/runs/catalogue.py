"""What methods and training can be set to, known without importing them, and so without torch.

`catalogue.json` is written from the configurations by `python -m tools.stubs`. A method that was registered at run time
is not in it: its configuration is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from caged.config import OptionInfo, describe, operational
from caged.models import METHODS, Registered, registered

FILE = "catalogue.json"


class Described(NamedTuple):
    """A configuration: its options in declaration order, and which of them leave results as they are."""

    options: list[OptionInfo]
    operational: list[str]
    trained: bool = True  # by the loop; False for a closed form

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> Described:
        options = [OptionInfo.from_json(info) for info in values["options"]]
        return cls(options, values["operational"], values["trained"])


def describe_method(known: Registered) -> Described:
    """From its classes, which are imported."""
    return Described(describe(known.config), operational(known.config), bool(known.method(known.config()).stages()))


def method_options(name: str) -> Described:
    known = registered(name)
    return describe_method(known) if known.public is None else Described.stored(_catalogue()["methods"][name])


def training_options() -> Described:
    """Of the loop, the same for every method."""
    return Described.stored(_catalogue()["train"])


def operational_settings(method: str) -> set[str]:
    """Dotted names of the values in which two runs of `method` may differ and still be runs of the same method."""
    own = method_options(method).operational if method in METHODS else []  # a run may outlive the registration
    return {*(f"method.{name}" for name in own), *(f"train.{name}" for name in training_options().operational)}


def default_settings(method: str) -> dict[str, Any]:
    """Dotted, of today: with what a run was made that is older than an option."""
    own = method_options(method).options if method in METHODS else []
    sections = {"method": own, "train": training_options().options}
    return {f"{section}.{one.name}": one.default for section, options in sections.items() for one in options}


@cache
def _catalogue() -> dict[str, Any]:
    values: dict[str, Any] = json.loads((resources.files("caged.runs") / FILE).read_text(encoding="utf-8"))
    return values
