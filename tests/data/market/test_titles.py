"""Names of items."""

from __future__ import annotations

import numpy as np

from caged.data.market.titles import genre_names, item_titles


def test_titles_are_distinct_and_numbered_when_used_up() -> None:
    titles = item_titles(6500, np.random.default_rng(0))
    assert len(set(titles)) == 6500
    assert len(titles[0].split()) == 2
    assert titles[3000] == f"{titles[0]} II"
    assert titles[6000] == f"{titles[0]} III"
    assert genre_names(12)[0] == "noir"
    assert len(set(genre_names(60))) == 60
