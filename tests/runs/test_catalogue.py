"""What is known of a method without importing it, and which of its options leave results as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from caged.config import describe, option
from caged.models import METHODS, register
from caged.models.mostpop import MostPopular
from caged.runs.catalogue import (
    Described,
    default_settings,
    describe_method,
    method_options,
    operational_settings,
    training_options,
)
from caged.runs.spec import resolve
from caged.training import TrainConfig


@dataclass(frozen=True)
class MineConfig:
    size: int = option(3, "how large", search=(3, 4))
    fast: bool = option(True, "how fast", operational=True)


@pytest.fixture
def mine() -> Iterator[str]:
    register("mine", MostPopular, MineConfig, "for this test")
    yield "mine"
    del METHODS["mine"]


@pytest.mark.parametrize("name", METHODS)
def test_the_catalogue_says_what_the_configuration_says(name: str) -> None:
    told, live = method_options(name), describe_method(METHODS[name])
    assert [info._replace(default=None) for info in told.options] == [
        info._replace(default=None) for info in live.options
    ]
    assert [_plain(info.default) for info in told.options] == [_plain(info.default) for info in live.options]
    assert told[1:] == live[1:]


def _plain(default: object) -> object:
    return list(default) if isinstance(default, tuple) else default


def test_training_is_in_it() -> None:
    assert training_options().options == describe(TrainConfig)


def test_a_method_registered_at_run_time_is_asked(mine: str) -> None:
    assert method_options(mine) == Described(describe(MineConfig), ["fast"], trained=False)


def test_operational_settings(mine: str) -> None:
    training = {"train.checkpoint_seconds", "train.backend", "train.precision", "train.capture"}
    assert operational_settings("lightgcn") == training
    assert operational_settings("caged") == {*training, "method.estimator_capture"}
    assert operational_settings("advdrop") == {*training, "method.adv_capture"}
    assert operational_settings("ease") == training  # whose own precision decides results
    assert operational_settings(mine) == {*training, "method.fast"}
    assert operational_settings("gone") == training  # a run may outlive the registration of its method


@pytest.mark.parametrize("name", METHODS)
def test_default_settings_are_those_of_a_run_without_any(name: str) -> None:
    config = resolve("", name, protocol="honest").to_json()["config"]
    ran_with = {f"{part}.{key}": value for part in ("method", "train") for key, value in config[part].items()}
    assert {key: _plain(value) for key, value in default_settings(name).items()} == ran_with


def test_default_settings_of_other_methods(mine: str) -> None:
    assert default_settings(mine)["method.size"] == 3
    assert not any(key.startswith("method.") for key in default_settings("gone"))
