"""What popularity is worth, as a table of two tenths of the items."""

from __future__ import annotations

from typing import Any

from caged.cli.output import print_table
from caged.page.numbers import number


def print_contrast(contrast: dict[str, Any]) -> None:
    """What popularity is in train, and what it is worth where chance shows the items."""
    words = {"degree": "training users of an item, mean", "like_rate": "liked, of what was shown at random"}
    digits = {"degree": 1, "like_rate": 3}
    rows = [
        [words[name], *(number(one[end], digits[name]) for end in ("top", "bottom")), number(one["ratio"], 2)]
        for name, one in contrast.items()
    ]
    print_table(
        ["by training popularity", "top tenth", "bottom tenth", "ratio"], rows, title="what popularity is worth"
    )
