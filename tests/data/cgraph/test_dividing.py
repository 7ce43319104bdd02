"""Order statistics without an order, and what cannot be split out of core."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.data.cgraph import dividing
from caged.data.cgraph.dividing import SplitAs, nth_smallest, ranks_of_users
from caged.data.splits.draws import ranks_within
from caged.errors import DataError


@given(
    st.lists(st.integers(-(2**40), 2**40) | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_the_nth_smallest_is_that_of_a_sort(values: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    pieces = [np.array(values[start : start + 7]) for start in range(0, len(values), 7)]
    assert nth_smallest(lambda: iter(pieces), place) == sorted(values)[place]


def test_values_may_span_all_integers() -> None:
    values = np.array([-(2**63), 2**63 - 1, 0, 1_700_000_000_000_000_000, 2**63 - 1])
    found = [nth_smallest(lambda: iter([values[:2], values[2:]]), place) for place in range(len(values))]
    assert found == sorted(values.tolist())


def test_few_bins_take_more_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividing, "BINS", 4)
    values = np.random.default_rng(2).integers(0, 1000, 300)
    for place in (0, 17, 150, 299):
        assert nth_smallest(lambda: iter([values[:100], values[100:]]), place) == np.sort(values)[place]


def test_ranks_are_those_of_the_split_in_memory() -> None:
    pytest.importorskip("polars")
    generator = np.random.default_rng(1)
    users = np.sort(generator.integers(0, 30, 500))
    for keys in (generator.random(500), generator.integers(0, 4, 500)):
        np.testing.assert_array_equal(ranks_of_users(users, keys), ranks_within(users, keys))


def test_kinds_that_need_everything_in_memory_are_refused() -> None:
    with pytest.raises(DataError, match="needs all pairs in memory"):
        SplitAs("intervened")
    with pytest.raises(DataError, match="unknown kind of split"):
        SplitAs("tme")
    with pytest.raises(DataError, match="has no test_share to set"):
        SplitAs("random", test_share=0.2)
