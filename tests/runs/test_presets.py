"""The presets that come along: each of them fits the methods it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.errors import ConfigError
from caged.models import METHODS
from caged.runs.presets import own_options, preset_names, preset_values
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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[methods.ease.train]\nrate = 1", "methods.ease.train.rate"),
        ("[methods.ease]\ntrain = 1", "write it as a table"),
    ],
)
def test_training_that_does_not_exist_is_refused(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(line)
    with pytest.raises(ConfigError, match=words):
        resolve("x", "lightgcn", presets=[str(path)])  # also where another method is meant
