"""The real datasets, where they are: below CAGED_DATA, or beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[3] / "shared" / "data"


def real_data() -> Path | None:
    candidates = [Path(folder) for folder in (os.environ.get("CAGED_DATA"), BESIDE) if folder]
    return next((folder for folder in candidates if (folder / "caged_movie").is_dir()), None)


def needs_real_data() -> pytest.MarkDecorator:
    reason = "the real datasets are not here: set CAGED_DATA to the folder that holds caged_movie/, ml1m/ and so on"
    return pytest.mark.skipif(real_data() is None, reason=reason)
