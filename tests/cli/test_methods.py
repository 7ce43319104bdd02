"""`caged methods`."""

from __future__ import annotations

import json

import pytest

from caged.config import describe, value_text
from caged.models import METHODS
from caged.training import TrainConfig
from tests.cli.invoke import caged


def test_methods_lists_every_method() -> None:
    outcome = caged("methods")
    assert (outcome.code, outcome.err) == (0, "")
    printed = json.loads(caged("methods", "--json").out)
    assert [method["name"] for method in printed] == list(METHODS)
    for name, known in METHODS.items():
        assert name in outcome.out
        assert known.title in outcome.out


@pytest.mark.parametrize("name", METHODS)
def test_show_prints_every_parameter(name: str) -> None:
    outcome = caged("methods", "show", name)
    assert (outcome.code, outcome.err) == (0, "")
    printed = json.loads(caged("methods", "show", name, "--json").out)
    assert printed["name"] == name
    assert [option["name"] for option in printed["method"]] == [info.name for info in describe(METHODS[name].config)]
    for info in describe(METHODS[name].config):
        [line] = [line for line in outcome.out.splitlines() if line.startswith(f"method.{info.name} ")]
        assert value_text(info.default) in line
        assert info.help in line
        assert info.source in line


def test_show_prints_the_presets_of_a_method() -> None:
    lines = caged("methods", "show", "advdrop").out.splitlines()
    assert [line.split()[1:] for line in lines if line.startswith("advdrop_rescaled ")] == [
        ["rescale=prob,", "min_keep=0.1,", "inv_tau=0.01,", "adv_steps=100"]
    ]
    assert any(line.startswith("yelp2018_ood ") for line in lines)
    assert not any(line.startswith("galore_code ") for line in lines)
    assert "--preset" not in caged("methods", "show", "ease").out


def test_show_prints_the_options_of_training_where_there_is_any() -> None:
    outcome = caged("methods", "show", "lightgcn")
    for info in describe(TrainConfig):
        [line] = [line for line in outcome.out.splitlines() if line.startswith(f"train.{info.name} ")]
        assert value_text(info.default) in line
        assert info.source in line
    assert "train." not in caged("methods", "show", "mostpop").out
    assert "train" not in json.loads(caged("methods", "show", "mostpop", "--json").out)
