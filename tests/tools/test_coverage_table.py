"""Intervals hold the truth about as often as they say, and the table in the document is of the keys measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.coverage_table import KEYS, SIZES, coverage

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.mark.slow
@pytest.mark.parametrize("users", SIZES)
def test_intervals_hold_the_truth_at_about_95_percent(users: int) -> None:
    """95% less 3%: three standard errors of 1,000 repetitions, and 1% for what is left."""
    for key, (held, made) in coverage(users, seed=8).items():
        assert held >= 0.92, key
        assert made > 0.5, key


def test_the_table_holds_every_key_and_no_interval_that_misses() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").split("<!-- coverage: all -->")[1].split("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "`" in line]
    assert [row[0].strip("`") for row in rows] == list(KEYS)
    assert all(float(cell.rstrip("%")) >= 91 for row in rows for cell in row[1:])
