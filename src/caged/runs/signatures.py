"""How a public class presents itself: signature and docstring, made from the configurations behind it."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from dataclasses import Field, fields
from inspect import Parameter, Signature, signature
from typing import Any, Literal

from caged.config import describe, value_text
from caged.models import Registered
from caged.training import TrainConfig

MEANINGS = {"seed": "of everything random", "device": "auto, cpu or cuda"}  # of what is no option of a configuration


def signature_of(known: Registered, constructor: Callable[..., None]) -> Signature:
    """Of `constructor`, its arbitrary options replaced by those of the method and of training, by name."""
    given = signature(constructor, eval_str=True).parameters.values()
    options = {parameter.name: parameter for config in (TrainConfig, known.config) for parameter in _parameters(config)}
    own = [options.pop(field.name) for field in fields(known.config)]  # it hides one of training of the same name
    named = [parameter for parameter in given if parameter.name in MEANINGS]
    this = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    return Signature([this, *own, *options.values(), *named], return_annotation=None)


def docstring_of(known: Registered, presented: Signature) -> str:
    """What the method is, and a line for every parameter of `presented`."""
    meanings = {info.name: info.help for config in (TrainConfig, known.config) for info in describe(config)} | MEANINGS
    own = {field.name for field in fields(known.config)}

    def lines(chosen: Iterable[Parameter]) -> list[str]:
        return [f"    {one.name} ({value_text(one.default)}): {meanings[one.name]}" for one in chosen]

    options = [parameter for parameter in presented.parameters.values() if parameter.name != "self"]
    parts = {
        "Options of the method": lines(option for option in options if option.name in own),
        "Options of training": lines(option for option in options if option.name not in own),
    }
    lists = ["\n".join([f"{heading}:", *part]) for heading, part in parts.items() if part]
    return "\n\n".join([f"{known.name}: {known.title}.", *lists]) + "\n"


def _parameters(config: type[Any]) -> Iterable[Parameter]:
    hints = typing.get_type_hints(config)
    for field in fields(config):
        annotation = _narrowed(field, hints[field.name])
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, annotation=annotation, default=field.default)


def _narrowed(field: Field[Any], hint: Any) -> Any:
    """Text with choices is one of them; none stays allowed."""
    choices = field.metadata.get("choices")
    if not choices:
        return hint
    return Literal[(*choices, None)] if field.default is None else Literal[choices]
