"""Strict configuration: conversion, limits, suggestions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from caged.config import build, describe, option, parse_override, to_dict
from caged.errors import ConfigError
from caged.models import METHODS
from caged.runs.spec import DataConfig, EvalConfig
from caged.training import TrainConfig

CONFIGS = [DataConfig, EvalConfig, TrainConfig, *(known.config for known in METHODS.values())]


@dataclass(frozen=True)
class Example:
    size: int = option(3, "how many", source="a paper", minimum=1, maximum=10)
    rate: float = option(0.5, "how fast", above=0)
    kind: str = option("plain", "which", choices=("plain", "fancy"))
    patience: int | None = option(2, "how long", minimum=1)
    active: bool = option(True, "whether")
    ks: tuple[int, ...] = option((20,), "where", minimum=1)


@pytest.mark.parametrize(
    ("key", "given", "meant"),
    [
        ("size", "7", 7),
        ("size", 7.0, 7),
        ("rate", "1e-3", 0.001),
        ("rate", 2, 2.0),
        ("kind", "fancy", "fancy"),
        ("patience", "none", None),
        ("patience", "None", None),
        ("patience", None, None),
        ("patience", "4", 4),
        ("active", "no", False),
        ("active", "on", True),
        ("ks", "5,10", (5, 10)),
        ("ks", [5, 10], (5, 10)),
        ("ks", 5, (5,)),
    ],
)
def test_text_and_plain_values_are_converted(key: str, given: object, meant: object) -> None:
    value = getattr(build(Example, {key: given}, "x"), key)
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("size", "abc", "x.size is 'abc'; it must be a whole number"),
        ("size", "99999999999999999999", "x.size is '99999999999999999999'; no number of that size is allowed"),
        ("size", -(2**63) - 1, "no number of that size"),
        ("rate", 10**400, "no number of that size"),
        ("size", "", "a whole number"),
        ("size", 2.5, "a whole number"),
        ("size", True, "a whole number"),
        ("size", None, "a whole number"),
        ("size", [1], "a whole number"),
        ("size", 0, "x.size is 0; it must be >= 1 and <= 10"),
        ("size", 11, "must be >= 1 and <= 10"),
        ("rate", "nan", "a finite number"),
        ("rate", "inf", "a finite number"),
        ("rate", 0, "x.rate is 0.0; it must be > 0"),
        ("kind", "fanci", "allowed: plain, fancy; did you mean 'fancy'?"),
        ("kind", 3, "must be text"),
        ("patience", 0, "must be >= 1"),
        ("patience", "soon", "must be a whole number"),
        ("active", "maybe", "true or false"),
        ("ks", "5,x", "a whole number"),
        ("ks", "5,0", "must be >= 1"),
    ],
)
def test_what_does_not_fit_is_one_sentence(key: str, given: object, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(Example, {key: given}, "x")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_keys_come_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'x.sise'; known: x.size, .*did you mean 'x.size'\?"):
        build(Example, {"sise": 1}, "x")


@pytest.mark.parametrize("config", CONFIGS)
def test_every_configuration_survives_the_round_trip(config: type) -> None:
    assert build(config, to_dict(config()), "x") == config()


@pytest.mark.parametrize("config", CONFIGS)
def test_every_option_says_what_it_is_and_where_its_default_comes_from(config: type) -> None:
    for info in describe(config):
        assert info.help
        assert info.source


@pytest.mark.parametrize("text", ["train.epochs", "epochs=3", ".x=3", "train.=3", "=", ""])
def test_overrides_have_one_form(text: str) -> None:
    with pytest.raises(ConfigError, match=r"section\.key=value"):
        parse_override(text)


def test_an_override_may_hold_equal_signs() -> None:
    assert parse_override(" data.user_column = a=b ") == ("data", "user_column", "a=b")
