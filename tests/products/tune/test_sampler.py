"""Which setting a trial gets."""

from __future__ import annotations

import sys
from unittest import mock

import pytest

from caged.config import Range
from caged.errors import ConfigError
from caged.products.tune.sampler import check_optuna, propose, small_grid
from caged.products.tune.space import Values, within

SPACE = {
    "train.learning_rate": Range(1e-4, 1e-2, "log"),
    "method.layers": Range(1, 4),
    "method.loss": ("bpr", "softmax"),
    "method.size": (8, 16, 32),
}
ONE: Values = {"train.learning_rate": 1e-3, "method.layers": 2, "method.loss": "bpr", "method.size": 8}


def test_a_proposal_is_in_the_space_and_the_same_again() -> None:
    tried = [(ONE, 0.0)]
    for number in range(1, 9):
        values = propose(SPACE, tried, number, seed=3)
        assert within(SPACE, values)
        assert isinstance(values["method.layers"], int)
        assert values == propose(SPACE, tried, number, seed=3)
        tried.append((values, float(number)))
    assert len({str(values) for values, _ in tried}) == 9


def test_another_seed_proposes_something_else() -> None:
    assert propose(SPACE, [(ONE, 0.0)], 1, seed=3) != propose(SPACE, [(ONE, 0.0)], 1, seed=4)


def test_drawn_numbers_are_short() -> None:
    rate = propose(SPACE, [], 1, seed=1)["train.learning_rate"]
    assert rate == float(f"{rate:.4g}")


def test_defaults_outside_of_the_space_do_no_harm() -> None:
    outside = {**ONE, "method.layers": 0}
    assert within(SPACE, propose(SPACE, [(outside, 1.0)], 1, seed=1))


def test_the_sampler_learns_where_it_is_good() -> None:
    """After many trials, proposals lie nearer to the best value than blind draws do."""
    space = {"method.x": Range(0.0, 1.0)}
    tried = [({"method.x": place / 40}, -abs(place / 40 - 0.8)) for place in range(41)]
    proposed = [propose(space, tried, number, seed=1)["method.x"] for number in range(41, 51)]
    assert sum(abs(value - 0.8) < 0.2 for value in proposed) >= 8


def test_a_small_grid_begins_with_the_defaults_and_is_tried_to_its_end() -> None:
    space = {"method.size": (8, 16, 32)}
    found = small_grid(space, {"method.size": 16}, 3, seed=1)
    assert found is not None
    assert found[0] == {"method.size": 16}
    assert sorted(values["method.size"] for values in found) == [8, 16, 32]
    assert small_grid(space, {"method.size": 16}, 2, seed=1) is None
    assert small_grid(space, {"method.size": 64}, 3, seed=1) is None  # four settings with the defaults
    assert small_grid({}, {}, 5, seed=1) == [{}]


def test_settings_are_not_tried_twice_while_there_are_others() -> None:
    space = {"method.size": tuple(range(8))}
    tried: list[tuple[Values, float]] = []
    for number in range(8):
        tried.append((propose(space, tried, number, seed=2), float(number == 0)))
    assert sorted(values["method.size"] for values, _ in tried) == list(range(8))


def test_without_optuna_the_sentence_says_what_to_install() -> None:
    with mock.patch.dict(sys.modules, {"optuna": None}), pytest.raises(ConfigError, match=r"caged-rec\[tune\]"):
        check_optuna()
