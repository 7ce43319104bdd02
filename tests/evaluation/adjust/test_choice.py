"""The rule that chooses a strength."""

from __future__ import annotations

import pytest

from caged.errors import ConfigError
from caged.evaluation.adjust import GRID, Adjustment, choose_strength


def test_the_grid_is_that_of_the_documents() -> None:
    assert GRID[:7] == (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.1)
    assert GRID[-1] == 1.0
    assert len(GRID) == 25
    assert list(GRID) == sorted(GRID)


def test_a_strength_behind_a_costly_one_is_never_chosen() -> None:
    """Recall comes back at 0.15, but the way there leads through 0.1, which costs 5%."""
    recall = {0.0: 1.0, 0.05: 0.995, 0.1: 0.95, 0.15: 1.0}
    found = choose_strength(recall.__getitem__, 0.99, tuple(recall))
    assert found.strength == 0.05
    assert [strength for strength, _ in found.tried] == [0.0, 0.05, 0.1]


def test_exactly_the_kept_share_is_enough() -> None:
    assert choose_strength({0.0: 1.0, 0.5: 0.75}.__getitem__, 0.75, (0.0, 0.5)).strength == 0.5


def test_where_nothing_costs_anything_the_end_of_the_grid_is_reached() -> None:
    found = choose_strength(lambda strength: 0.3 + strength)
    assert found.strength == 1.0
    assert found.reaches_the_end


def test_a_recall_of_zero_has_no_share_to_keep() -> None:
    with pytest.raises(ConfigError, match="nothing to keep a share of"):
        choose_strength(lambda strength: 0.0)


@pytest.mark.parametrize("keep", [-0.1, 1.5, float("nan"), "99%", True])
def test_shares_outside_of_0_and_1_are_refused(keep: object) -> None:
    with pytest.raises(ConfigError, match="keep is"):
        choose_strength(lambda strength: 0.5, keep)  # type: ignore[arg-type]


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="degree"):
        Adjustment("degrees", 0.1)  # type: ignore[arg-type]
