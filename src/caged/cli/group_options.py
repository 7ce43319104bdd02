"""Options by which users choose groups; the same for every command that measures."""

from __future__ import annotations

from typing import Annotated

import typer

PopularShare = Annotated[
    float | None,
    typer.Option(help="Share of the items with training interactions that is popular; the others are niche. [0.2]"),
]
ItemGroups = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE[:COLUMN,...]",
        help="Table of item_id and columns that sort items into groups, such as genre; also measure these. Repeatable.",
    ),
]
UserGroups = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE[:COLUMN,...]",
        help="Table of user_id and columns that sort users into groups, such as an age band. Repeatable.",
    ),
]
GroupSeparator = Annotated[
    str | None, typer.Option(help="What stands between several groups in one cell, such as '|' in Action|Comedy.")
]
