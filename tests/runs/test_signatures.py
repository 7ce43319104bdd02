"""The public classes show what they take."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Literal

import pytest

import caged
from caged.config import describe
from caged.models import METHODS
from caged.training import TrainConfig


@pytest.mark.parametrize("name", METHODS)
def test_a_signature_names_every_option_of_method_and_training(name: str) -> None:
    known = METHODS[name]
    parameters = inspect.signature(getattr(caged, str(known.public))).parameters
    own = [field.name for field in fields(known.config)]
    training = [field.name for field in fields(TrainConfig) if field.name not in own]
    assert list(parameters) == [*own, *training, "seed", "device"]
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    defaults = {field.name: field.default for config in (TrainConfig, known.config) for field in fields(config)}
    common = inspect.signature(caged.Recommender).parameters
    for parameter in parameters.values():
        expected = common[parameter.name].default if parameter.name in common else defaults[parameter.name]
        assert parameter.default == expected


def test_types_are_those_of_the_configuration_and_its_choices() -> None:
    parameters = inspect.signature(caged.EASE).parameters
    assert parameters["ridge"].annotation is float
    assert parameters["patience"].annotation == int | None
    assert parameters["precision"].annotation == Literal["float64", "float32"]  # its own, not that of training
    assert parameters["seed"].annotation is int
    assert inspect.signature(caged.LightGCN).parameters["known"].annotation == Literal["keep", "mask", None]


@pytest.mark.parametrize("name", METHODS)
def test_the_help_has_a_line_per_option(name: str) -> None:
    known = METHODS[name]
    public = getattr(caged, str(known.public))
    first, *lines = str(inspect.getdoc(public)).splitlines()
    assert first == f"{name}: {known.title}."
    shown = [line.split()[0] for line in lines if line.startswith("    ")]
    assert shown == list(inspect.signature(public).parameters)
    for info in describe(known.config):
        assert any(info.name in line and line.endswith(info.help) for line in lines)


def test_a_subclass_may_have_a_signature_of_its_own() -> None:
    class Mine(caged.LightGCN):
        def __init__(self, size: int) -> None:
            super().__init__(embedding_size=size)

    assert list(inspect.signature(Mine).parameters) == ["size"]
    assert Mine(3).config.embedding_size == 3
