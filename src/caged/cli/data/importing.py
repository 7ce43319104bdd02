"""`caged data import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caged.cli.output import AsJson, Ids, Verbose, print_json, print_table, say
from caged.cli.progress import progress_line
from caged.data import Columns
from caged.data.importing import import_log


def import_(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="Files of one log; you may use quoted wildcards.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the result.", show_default=False)],
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Name of the rating column [default: rating].")] = None,
    timestamp_column: Annotated[str | None, typer.Option(help="Name of the time column [default: timestamp].")] = None,
    ids: Ids = "auto",
    keep: Annotated[list[str] | None, typer.Option(help="Another column to keep; repeatable.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Import a log of any size into a folder that loads fast: sorted, numbered pairs and tables of your ids.

    Checks every row, merges duplicates (the latest stays) and keeps memory bounded. Pass the folder to --data.

    Examples:

      caged data import log.csv.gz -o imported

      caged data import 'logs/2024-*.parquet' -o imported --user-column visitor --keep source
    """
    columns = (
        Columns(keep=tuple(dict.fromkeys(keep or ())))
        .reading_ids(ids)
        .named(user=user_column, item=item_column, rating=rating_column, timestamp=timestamp_column)
    )
    with progress_line(quiet=as_json) as line:
        manifest = import_log(logs, out, columns=columns, progress=line)
    for note in manifest["notes"]:
        say(f"note: {note}")
    if as_json:
        print_json({"folder": out, **manifest})
        return
    counted = ("interactions", "users", "items", "merged_duplicates")
    print_table(["", "count"], [[name.replace("_", " "), f"{manifest[name]:,}"] for name in counted])
    say(f"imported into {out}; train on it with: caged train --data {out} --method lightgcn")
