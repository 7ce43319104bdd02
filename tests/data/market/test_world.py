"""What users truly like, against the formula."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caged.data.market import Market
from caged.data.market.world import World, draw_world
from caged.errors import ConfigError, RunError
from tests.data.market.small import SMALL


def test_true_preference_is_the_formula(small: Market) -> None:
    world = small.world
    matrix = world.preference_matrix()
    for user, item in ((0, 0), (7, 31), (119, 89)):
        logit = SMALL.sharpness * float(world.z[user] @ world.v[item]) + world.q[item] - world.b
        assert matrix[user, item] == pytest.approx(1 / (1 + np.exp(-logit)), rel=1e-12)
    pairs = world.true_preference(np.arange(120)[:, None], np.arange(90)[None, :])
    assert pairs == pytest.approx(matrix, rel=1e-12)
    assert np.linalg.norm(world.z, axis=1) == pytest.approx(np.ones(120))
    assert np.linalg.norm(world.v, axis=1) == pytest.approx(np.ones(90))


def test_genres_are_balanced_and_lead_the_item_vectors() -> None:
    world = draw_world(replace(SMALL, item_count=96, item_spread=0.0))
    assert np.bincount(world.item_genres).tolist() == [8] * 12
    assert world.v.argmax(axis=1).tolist() == world.item_genres.tolist()
    assert world.v.max() == 1.0


@pytest.mark.parametrize("like_rate", [1e-6, 0.3, 1 - 1e-6])
def test_calibration_meets_any_like_rate(like_rate: float) -> None:
    world = draw_world(replace(SMALL, like_rate=like_rate))
    assert world.preference_matrix().mean() == pytest.approx(like_rate, rel=0.05)


def test_activity_is_clipped() -> None:
    world = draw_world(replace(SMALL, activity_sd=3.0))
    assert world.activity.min() == 0.02
    assert world.activity.max() == 1.0


def test_the_full_matrix_has_a_budget(small: Market) -> None:
    with pytest.raises(ConfigError, match=r"120 users for 90 items need 86,400 bytes; at most 1,000 are allowed"):
        small.world.preference_matrix(budget=1000)


def test_world_survives_a_file(small: Market, tmp_path: Path) -> None:
    small.world.save(tmp_path / "world.npz")
    again = World.load(tmp_path / "world.npz")
    assert np.array_equal(again.preference_matrix(), small.world.preference_matrix())
    (tmp_path / "world.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(RunError, match="is not the world of a market"):
        World.load(tmp_path / "world.npz")
