"""`caged explain`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from caged.cli.output import AsJson, Verbose, print_json, print_table, say
from caged.errors import ConfigError
from caged.page.numbers import number
from caged.runs.artefact import load_artefact
from caged.runs.environment import resolve_device
from caged.runs.explain import Explanation, HistoryItem, explain
from caged.runs.folder import RunFolder


def explain_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run or of a saved model.")],
    user: Annotated[str, typer.Option(help="User id.")],
    item: Annotated[
        str | None, typer.Option(help="Also show what each history item adds to the score of this item id.")
    ] = None,
    rows: Annotated[int, typer.Option("-n", "--rows", help="How many history items to show; 0 shows all.")] = 20,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show which items in a user's history the model relies on, and how popular they are.

    The weight of an item is what its vector is multiplied by on the way to the user's; the ratio compares it with
    LightGCN's, 1/sqrt(d_u d_i). With --item, the contributions of the history and the user's own part add up to the
    score of that item, as it was trained: what caged adjust takes out afterwards is not part of it.

    Examples:

      caged explain runs/first --user ann

      caged explain runs/first --user ann --item blue-shoes --json
    """
    if rows < 0:
        raise ConfigError(f"--rows is {rows}; it must be at least 0, where 0 shows all")
    fitted = load_artefact(run, resolve_device(device))
    titles = RunFolder.read(run).titles() if RunFolder.is_one(run) else {}
    found = explain(fitted, user, item, titles)
    if item is not None and fitted.adjustment is not None:
        say("note: popularity was taken out of the scores of this model after training; this is the score before that")
    if as_json:
        print_json(asdict(found))
        return
    _print(found, rows or len(found.items))


def _print(found: Explanation, rows: int) -> None:
    shown = found.items[:rows]
    optional = {
        "title": any(item.title is not None for item in found.items),
        "contribution": found.item_id is not None,
    }
    headers = ["item_id", "title", "contribution", "weight", "LightGCN's", "ratio", "users", "popularity rank"]
    kept = [place for place, name in enumerate(headers) if optional.get(name, True)]
    cells = [_cells(item) for item in shown]
    print_table(
        [headers[place] for place in kept], [[row[place] for place in kept] for row in cells], title=_title(found)
    )
    if len(shown) < len(found.items):
        say(f"{len(found.items) - len(shown)} more; --rows 0 shows all")


def _title(found: Explanation) -> str:
    history = f"history of user {found.user_id}, {len(found.items)} items"
    if found.item_id is None:
        return f"{history}, by weight"
    name = f"{found.item_id}" + (f" ({found.item_title})" if found.item_title else "")
    return f"{history}: score of {name} is {number(found.score)}, {number(found.own)} of it from the user's own vector"


def _cells(item: HistoryItem) -> list[str]:
    return [
        str(item.item_id),
        item.title or "",
        number(item.contribution),
        number(item.weight, 6),
        number(item.lightgcn_weight, 6),
        number(item.ratio, 3),
        f"{item.degree:,}",
        str(item.popularity_rank),
    ]
