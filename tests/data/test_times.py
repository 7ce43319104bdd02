"""Times in one unit."""

from __future__ import annotations

import numpy as np
import pytest

from caged.data.times import Times, in_one_unit
from caged.errors import DataError


def test_parts_in_different_units_become_one() -> None:
    seconds, milliseconds = Times(np.array([2, -3])), Times(np.array([1500]), "ms")
    assert [part.values.tolist() for part in in_one_unit([seconds, milliseconds])] == [[2000, -3000], [1500]]
    assert [part.unit for part in in_one_unit([seconds, milliseconds])] == ["ms", "ms"]
    assert in_one_unit([]) == []


@pytest.mark.parametrize("far", [2**62, -(2**62), -(2**63)])
def test_a_time_that_does_not_fit_the_finer_unit_is_refused(far: int) -> None:
    with pytest.raises(DataError, match=f"{abs(far)}.* nanoseconds"):
        Times(np.array([0, far])).to("ns")
