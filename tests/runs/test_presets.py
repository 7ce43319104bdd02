"""The presets that come along: each of them fits the methods it is for."""

from __future__ import annotations

import pytest

from caged.models import METHODS
from caged.runs.presets import own_options, preset_names, preset_values
from caged.runs.spec import read_preset, resolve


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_can_be_used(name: str) -> None:
    values = preset_values(name)
    for method in values.get("methods", METHODS):
        resolve("x", method, presets=(name,))
        assert own_options(name, method).items() <= read_preset(name, method)["method"].items()
