from __future__ import annotations

import numpy as np
import pytest

from caged.data.market import Market, simulate
from tests.data.market.small import SMALL


@pytest.fixture(scope="session")
def market() -> Market:
    return simulate()


@pytest.fixture(scope="session")
def preference(market: Market) -> np.ndarray:
    return market.world.preference_matrix()


@pytest.fixture(scope="session")
def small() -> Market:
    return simulate(SMALL)
