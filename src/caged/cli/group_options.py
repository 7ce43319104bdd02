"""Options by which users choose groups; the same for every command that measures."""

from __future__ import annotations

from typing import Annotated

import typer

PopularShare = Annotated[
    float | None,
    typer.Option(help="Share of the trained items that counts as popular; the others are niche. [default: 0.2]"),
]
ItemGroups = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE[:COLUMN,...]",
        help="Table with item_id and one column per grouping, such as genre; measures each group too. Repeatable.",
    ),
]
UserGroups = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE[:COLUMN,...]",
        help="Table with user_id and one column per grouping, such as age band. Repeatable.",
    ),
]
GroupSeparator = Annotated[
    str | None, typer.Option(help="Character between several groups in one cell, such as '|' in Action|Comedy.")
]
