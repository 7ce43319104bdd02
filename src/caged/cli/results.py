"""`caged results`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caged.cli.help import group
from caged.cli.output import say
from caged.runs import results

app = group("Move records of results between machines.", no_args_is_help=True)


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="Folder that --record wrote to.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Archive to write.")] = Path("results.tar.gz"),
) -> None:
    """Put all records below a folder into one archive."""
    say(f"{results.pack(folder, out)} records packed into {out}")


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(help="Archive made by caged results pack.")],
    into: Annotated[Path, typer.Option(help="Folder to place the records in.")] = Path("results"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace records that differ.")] = False,
) -> None:
    """Place the records of an archive into a folder; nothing is written if one of them is bad."""
    say(f"{results.unpack(archive, into, overwrite=overwrite)} records unpacked into {into}")
