"""Options by which users choose groups and give vectors; the same for every command that measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
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
OWN = "own"  # the vectors of the run itself
ItemVectors = Annotated[
    Path | None,
    typer.Option(
        help="Item vectors (item_id, vector; Parquet or safetensors, as caged export vectors writes them); measures "
        "how different the items within a list are.",
    ),
]
ItemVectorsOrOwn = Annotated[
    str | None,
    typer.Option(
        metavar=f"FILE|{OWN}",
        help=f"Item vectors: a file, or {OWN} (those of the run); measures how different the items within a list are.",
    ),
]


def group_files(item_groups: Sequence[str] | None, user_groups: Sequence[str] | None) -> Iterator[str]:
    """The files of `FILE[:COLUMN,...]`, for checks that nothing is written there."""
    for text in (*(item_groups or ()), *(user_groups or ())):
        yield from (text, text.rpartition(":")[0] or text)  # a name may hold a colon itself
