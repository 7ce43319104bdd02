"""`caged data`: one file per command."""

from __future__ import annotations

import typer

from caged.cli.data.getting import get
from caged.cli.data.importing import import_
from caged.cli.data.info import info
from caged.cli.data.listing import list_datasets
from caged.cli.data.simulating import simulate
from caged.cli.data.splitting import split

app = typer.Typer(help="Datasets, logs, splits and the built-in market.", no_args_is_help=True)

app.command()(split)
app.command()(simulate)
app.command("import")(import_)
app.command("list")(list_datasets)
app.command()(get)
app.command()(info)
