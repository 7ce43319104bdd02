"""The shop is exported once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Pair
from tests.products.serve.explorer.shop import write_shop


@pytest.fixture(scope="package")
def shop(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_shop(tmp_path_factory.mktemp("shop"), pairs)
