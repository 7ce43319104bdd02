"""`caged export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caged.cli.help import group
from caged.cli.output import AsJson, Verbose, print_json, say
from caged.files import refuse_filled_folder
from caged.runs.recommender import load
from caged.runs.vectors import ITEMS, MANIFEST, USERS, write_vectors

ABOUT = "Export what a model learned: an artefact to serve, or the vectors of users and items."
app = group(ABOUT, no_args_is_help=True)


@app.command()
def vectors(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run or of a saved model.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the vectors.")],
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Write the vectors of users and items; the dot product of two is the score that caged recommend ranks by.

    The folder holds users.parquet (user_id, vector), items.parquet (item_id, vector), in the ids of your log, and
    vectors.json, which says where they come from. They do not say which items a user has seen.

    Example:

      caged export vectors runs/first -o vectors
    """
    refuse_filled_folder(out)
    model = load(run, device=device)
    found = model.vectors()
    write_vectors(found, out, {"method": model.name, "seed": model.seed})
    if as_json:
        print_json({"folder": out, "users": len(found.users), "items": len(found.items), "width": found.width})
        return
    say(f"{len(found.users):,} user vectors and {len(found.items):,} item vectors of {found.width} numbers")
    say(f"folder: {out} ({USERS}, {ITEMS}, {MANIFEST})")


@app.command()
def artefact(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run or of a saved model.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the artefact.")],
    dtype: Annotated[
        str, typer.Option(help="Number format of the vectors: float32, or bfloat16 for half the size.")
    ] = "float32",
    price: Annotated[
        bool, typer.Option("--price/--no-price", help="Measure what each step of the less_popular knob costs.")
    ] = True,
    index: Annotated[
        str, typer.Option(help="auto builds an index for catalogues above 200,000 items; none: search stays exact.")
    ] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Write a folder that caged serve can answer from, without torch, pickle or training data other than histories.

    Example:

      caged export artefact runs/first -o artefact
    """
    from caged.products.serve.export import artefact_of_run  # with torch
    from caged.products.serve.index import INSTALL
    from caged.products.serve.index_build import wants_index

    refuse_filled_folder(out)
    manifest = artefact_of_run(run, out, dtype=dtype, with_price=price, index=index, device=device)
    if as_json:
        print_json({"folder": out, **manifest.to_json()})
        return
    say(f"{manifest.method}: {manifest.users:,} users, {manifest.items:,} items")
    if manifest.fold_in is None and manifest.fold_in_refused:
        say(f"note: no answers for new people: {manifest.fold_in_refused}")
    if manifest.index is not None:
        say(f"index: {min(notch.recall for notch in manifest.index.notches):.3f} of the exact top {manifest.index.k}")
    elif index == "auto" and wants_index(manifest):
        say(f"note: no index, because faiss is not installed; {INSTALL}, or lists take long for so many items")
    say(f"artefact: {out}")
