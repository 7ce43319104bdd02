"""What a search may try: declared, read from a file, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.config import Range
from caged.errors import ConfigError
from caged.models import METHODS
from caged.products.tune.space import (
    declared_space,
    grid_size,
    read_spaces,
    space_from_json,
    space_json,
    space_toml,
    within,
)
from caged.runs.catalogue import method_options
from caged.runs.spec import resolve


@pytest.mark.parametrize("method", METHODS)
def test_every_declared_value_is_one_that_the_method_takes(method: str, tmp_path: Path) -> None:
    space = declared_space(method)
    file = tmp_path / "space.toml"
    file.write_text(space_toml(method, space), encoding="utf-8")
    assert read_spaces(file) == {method: space}
    assert space_from_json(space_json(space)) == space


@pytest.mark.parametrize("method", METHODS)
def test_learning_rate_and_l2_are_searched_wherever_a_method_is_trained(method: str) -> None:
    space, known = declared_space(method), method_options(method)
    assert ("train.learning_rate" in space) == known.trained
    assert "method.l2" in space or "l2" not in [info.name for info in known.options]


def test_the_size_of_a_grid() -> None:
    assert grid_size({"method.a": (1, 2), "method.b": (1, 2, 3)}) == 6
    assert grid_size({"method.a": (1, 2), "method.b": Range(0.0, 1.0)}) == float("inf")


def test_defaults_need_not_be_in_the_space() -> None:
    space = {"method.l2": Range(1e-6, 1e-2, "log"), "method.loss": ("bpr", "softmax")}
    assert within(space, {"method.l2": 1e-6, "method.loss": "bpr"})
    assert not within(space, {"method.l2": 0.0, "method.loss": "bpr"})
    assert not within(space, {"method.l2": None, "method.loss": "bpr"})
    assert not within(space, {"method.l2": 1e-6, "method.loss": "other"})


def test_a_file_takes_the_place_of_what_is_declared(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text('[lightgcn]\nmethod.layers = [1, 2]\nmethod.l2 = { low = 1e-5, high = 1, scale = "log" }\n')
    assert read_spaces(file) == {"lightgcn": {"method.layers": (1, 2), "method.l2": Range(1e-5, 1, "log")}}
    assert resolve("x", "lightgcn", overrides=["method.layers=2"]).config.layers == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[lightgnc]", "did you mean 'lightgcn'"),
        ("[lightgcn]\ndata.ids = ['text']", "unknown section of lightgcn"),
        ("[lightgcn]\nmethod.layer = [1]", "method.layers"),
        ("[lightgcn]\nmethod.layers = [-1]", "must be >= 0"),
        ("[lightgcn]\nmethod.layers = []", "give a list of values, or a range"),
        ("[lightgcn]\nmethod.l2 = { low = 1, high = 0.1 }", "low < high"),
        ("[lightgcn]\nmethod.l2 = { low = 0, high = 0.1, scale = 'log' }", "low > 0"),
        ("[lightgcn]\nmethod.l2 = { low = 0, hihg = 0.1 }", "give a list of values, or a range"),
        ("[lightgcn]\ntrain.epochs = [1, 2]", "use --epochs"),
        ("lightgcn = 3", "below [METHOD]"),
        ("[lightgcn", "cannot read --space"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as told:
        read_spaces(file)
    assert words in str(told.value)
