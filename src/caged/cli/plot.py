"""`caged plot`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from caged.cli.help import group
from caged.cli.output import AsJson, Verbose, print_json, say
from caged.errors import RunError
from caged.page.figure_file import check_figure, write_figure
from caged.page.iip import densities, iip_svg
from caged.runs.artefact import load_artefact
from caged.runs.densities import inverse_item_popularity
from caged.runs.environment import resolve_device
from caged.runs.folder import RunFolder
from caged.runs.saved_weights import load_saved_weights

app = group("Draw figures of a run.", no_args_is_help=True)


@app.callback()
def plot() -> None:
    """Draw figures of a run."""


@app.command()
def iip(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run that was trained with --save-weights.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Figure to write: .svg, .png or .pdf [default: RUN/iip.svg].")
    ] = None,
    rescale: Annotated[
        bool,
        typer.Option("--rescale", help="Divide out the overall scale of the weights, to compare only their shape."),
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Draw inverse item popularity before, during and after training.

    The inverse popularity of an interaction is its weight times the square root of the user's degree. It starts at
    1/sqrt(item degree), which is near 0 for popular items. `during` is the saved update closest to the middle.

    Example: caged plot iip runs/first -o iip.svg
    """
    RunFolder.read(run)  # before its place is taken for that of the figure
    out = out or run / "iip.svg"
    check_figure(out)
    saved = load_saved_weights(run)
    train = load_artefact(run, resolve_device("cpu")).train
    if any(len(weights.to_user) != len(train) for weights in saved):
        raise RunError(f"the weights in {run} do not match its {len(train)} interactions; restore them or train again")
    named = [
        (one.name, one.updates, inverse_item_popularity(one.to_user.numpy(), train.users, train.user_count))
        for one in saved
    ]
    found = densities(named, rescaled=rescale)
    write_figure(out, iip_svg(found, f"Inverse item popularity during training: {run.resolve().name}"))
    if as_json:
        print_json({"file": out, **asdict(found)})
    say(f"figure: {out}")
