"""The presets that come along: each of them fits the methods it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.errors import ConfigError
from caged.models import METHODS
from caged.runs.presets import own_options, preset_names, preset_values, tuned_on
from caged.runs.spec import read_preset, resolve


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_can_be_used(name: str) -> None:
    values = preset_values(name)
    for method in values.get("methods", METHODS):
        resolve("x", method, presets=(name,))
        assert own_options(name, method).items() <= read_preset(name, method)["method"].items()


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    path = tmp_path / "tuned.toml"
    path.write_text(
        "[train]\nlearning_rate = 0.5\nepochs = 7\n\n[methods.softmax]\ntemperature = 0.3\n\n"
        "[methods.softmax.train]\nlearning_rate = 0.25\n"
    )
    return path


def test_training_for_one_method_goes_before_training_for_all(tuned: Path) -> None:
    softmax, lightgcn = (resolve("x", name, presets=[str(tuned)]) for name in ("softmax", "lightgcn"))
    assert (softmax.train.learning_rate, softmax.train.epochs) == (0.25, 7)
    assert lightgcn.train.learning_rate == 0.5
    assert softmax.config.temperature == 0.3
    assert own_options(str(tuned), "softmax") == {"temperature": 0.3}


def test_a_preset_says_for_which_methods_it_was_tuned_and_sets_nothing_by_it(tmp_path: Path) -> None:
    path = tmp_path / "tuned.toml"
    path.write_text('[tuned]\ndata = "shop"\nmethods = ["softmax"]\n')
    assert [tuned_on(str(path), name) for name in ("softmax", "lightgcn")] == ["shop", None]
    assert tuned_on("epinions", "softmax") is None
    assert resolve("x", "softmax", presets=[str(path)]).config == resolve("x", "softmax").config


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[methods.ease.train]\nrate = 1", "methods.ease.train.rate"),
        ("[methods.ease]\ntrain = 1", "write it as a table"),
        ('[tuned]\ndata = "shop"', "list of the methods that caged tune chose values for"),
        ("[tuned]\ndata = 1\nmethods = []", "list of the methods that caged tune chose values for"),
        ('[tuned]\non = "shop"', "tuned.on"),
        ("tuned = 1", "it must be a table"),
        ('[tuned]\ndata = "shop"\nmethods = ["softmx"]', "did you mean 'softmax'"),
    ],
)
def test_what_no_method_reads_is_refused(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(line)
    with pytest.raises(ConfigError, match=words):
        resolve("x", "lightgcn", presets=[str(path)])  # also where another method is meant
