"""`caged data import`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from caged.cli.output import AsJson, Ids, Verbose, print_json, print_table, say
from caged.cli.progress import StopOnCtrlC, progress_line, stopping
from caged.data import Columns
from caged.data.cgraph.dividing import SplitAs
from caged.data.cgraph.layout import SUFFIX
from caged.data.cgraph.writing import import_graph
from caged.data.importing import import_log
from caged.errors import ConfigError
from caged.signals import ENDED_BY


def import_(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Files of one log, or a folder of part files; you may use quoted wildcards.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the result.", show_default=False)],
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Name of the rating column [default: rating].")] = None,
    timestamp_column: Annotated[str | None, typer.Option(help="Name of the time column [default: timestamp].")] = None,
    ids: Ids = "auto",
    keep: Annotated[list[str] | None, typer.Option(help="Another column to keep; repeatable.")] = None,
    split: Annotated[
        str | None,
        typer.Option(help="random (7:1:2 per user), time or leave_last_out; .cgraph only [default: random]."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the random split; .cgraph only [default: 1].")
    ] = None,
    test_share: Annotated[
        float | None, typer.Option(help="Share that a time split gives to test; .cgraph only [default: 0.2].")
    ] = None,
    valid_share: Annotated[
        float | None, typer.Option(help="Share that a time split gives to validation; .cgraph only [default: 0.1].")
    ] = None,
    min_rating: Annotated[
        float | None, typer.Option(help="Keep only interactions with at least this rating; .cgraph only.")
    ] = None,
    core: Annotated[
        int | None,
        typer.Option(
            "--k-core",
            min=1,
            help="Keep only users and items with at least this many interactions, once all others are gone; "
            ".cgraph only.",
        ),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Import a log of any size into a folder that loads fast: sorted, numbered pairs and tables of your ids.

    Checks every row, merges duplicates (the latest stays) and keeps memory bounded. Pass the folder to --data.

    If the name of the folder ends in .cgraph, it becomes a graph that is split already: training maps it into memory
    and does not read it again. That is how you train on logs that do not fit into memory.

    Examples:

      caged data import log.csv.gz -o imported

      caged data import 'logs/2024-*.parquet' -o imported --user-column visitor --keep source

      caged data import 'logs/*.parquet' -o shop.cgraph --split time --k-core 5
    """
    columns = (
        Columns(keep=tuple(dict.fromkeys(keep or ())))
        .reading_ids(ids)
        .named(user=user_column, item=item_column, rating=rating_column, timestamp=timestamp_column)
    )
    chosen = {"split": split, "seed": seed, "test-share": test_share, "valid-share": valid_share}
    chosen |= {"min-rating": min_rating, "k-core": core}
    seconds: Mapping[str, float] = {}
    # However it is asked to end: what the import has on disk so far is many times as large as its result.
    with progress_line(quiet=as_json) as line, StopOnCtrlC(*ENDED_BY, at_hand="this block") as stop:
        progress = stopping(line, stop)
        if out.suffix == SUFFIX:
            asked = SplitAs(split or "random", 1 if seed is None else seed, test_share, valid_share)
            graph = import_graph(
                logs, out, columns=columns, split=asked, min_rating=min_rating, k_core=core, progress=progress
            )
            manifest, seconds = graph.manifest, graph.seconds
        else:
            _refuse(chosen, out)
            manifest = import_log(logs, out, columns=columns, progress=progress)
    for note in manifest["notes"]:
        say(f"note: {note}")
    if as_json:
        print_json({"folder": out, **manifest, **({"seconds": seconds} if seconds else {})})
        return
    print_table(["", "count"], _counts(manifest))
    say(f"imported into {out}; train on it with: caged train --data {out} --method lightgcn")


def _refuse(chosen: Mapping[str, object], out: Path) -> None:
    """A log is imported as it is; only a graph is filtered and split on the way."""
    for name, value in chosen.items():
        if value is not None:
            raise ConfigError(
                f"--{name} works only where a graph is written; end the name of --out in {SUFFIX} ({out}{SUFFIX}), or "
                f"leave --{name} out and give it to caged train or caged data split"
            )


def _counts(manifest: Mapping[str, Any]) -> list[list[str]]:
    pairs = manifest["interactions"]
    in_parts = pairs if isinstance(pairs, Mapping) else {}
    rows = {"interactions": sum(in_parts.values()) if in_parts else pairs}
    rows |= {f"in {name}": count for name, count in in_parts.items()}
    rows |= {name: manifest[name] for name in ("users", "items", "merged_duplicates")}
    return [[name.replace("_", " "), f"{count:,}"] for name, count in rows.items()]
