import math

import numpy as np
import pytest

from caged.evaluation import bootstrap
from caged.evaluation.bootstrap import Interval, normal_interval, percentile_interval, replicates


def test_draws_are_those_of_the_definition():
    """`rng.integers(0, n, size=n)`, one draw after the other."""
    values = np.array([0.5, 2.0, 3.0, 7.0])
    rng = np.random.default_rng(3)
    expected = [values[rng.integers(0, 4, size=4)].sum() for _ in range(20)]
    assert replicates(lambda counts: counts @ values, 4, draws=20, seed=3).tolist() == expected


@pytest.mark.parametrize("block", [1, 12, 21])
def test_draws_do_not_depend_on_how_many_are_made_at_once(block, monkeypatch):
    at_once = replicates(lambda counts: counts, 3, draws=10)
    monkeypatch.setattr(bootstrap, "BLOCK_COUNTS", block)
    np.testing.assert_array_equal(replicates(lambda counts: counts, 3, draws=10), at_once)


def test_the_middle_of_the_defined_replicates():
    numbers = np.arange(41.0)
    assert percentile_interval(numbers) == Interval(1.0, 39.0, "bootstrap")
    assert percentile_interval(np.append(numbers, [math.nan, math.nan])) == Interval(1.0, 39.0, "bootstrap")
    assert percentile_interval(np.append(numbers, [math.nan] * 3)) is None  # more than 5%
    assert percentile_interval(np.array([math.nan])) is None


def test_the_normal_interval():
    assert normal_interval(1.0, 0.5) == Interval(1.0 - 0.979982, 1.0 + 0.979982, "normal")
