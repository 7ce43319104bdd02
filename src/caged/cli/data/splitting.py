"""`caged data split`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caged.cli.output import AsJson, Ids, Verbose, print_json, print_table, say
from caged.cli.progress import progress_line
from caged.data import Columns, load, split_log
from caged.data.filters import k_core
from caged.data.splits import check_kept, write_split
from caged.errors import DataError
from caged.files import refuse_filled_folder
from caged.page.numbers import number


def split(
    source: Annotated[str, typer.Argument(help="Dataset name or log file (.csv, .tsv, .parquet, .txt).")],
    out: Annotated[Path, typer.Option("-o", "--out", help="New folder for the split.")],
    kind: Annotated[str, typer.Option(help="random (7:1:2 per user), time, leave_last_out or intervened.")] = "random",
    seed: Annotated[int, typer.Option(min=0, help="Seed for random and intervened splits.")] = 1,
    test_share: Annotated[
        float | None, typer.Option(help="Share that goes to test; time and intervened [default: 0.2].")
    ] = None,
    valid_share: Annotated[
        float | None, typer.Option(help="Share that goes to validation; time and intervened [default: 0.1].")
    ] = None,
    max_item_share: Annotated[
        float | None,
        typer.Option(help="Largest share of one item's interactions that may go to test; intervened [default: 0.5]."),
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Another column to keep; repeatable.")] = None,
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Name of the rating column [default: rating].")] = None,
    timestamp_column: Annotated[str | None, typer.Option(help="Name of the time column [default: timestamp].")] = None,
    ids: Ids = "auto",
    min_rating: Annotated[float | None, typer.Option(help="Keep only interactions with at least this rating.")] = None,
    core: Annotated[
        int | None,
        typer.Option(
            "--k-core",
            min=1,
            help="Keep only users and items with at least this many interactions, once all others are gone.",
        ),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Split a log into train, validation and test files that caged train --data reads.

    Writes train.parquet, valid.parquet and test.parquet with the ids of your log, and manifest.json with the kind,
    parameters, counts, fingerprints and how unequal the items of each part are.

    Examples:

      caged data split log.csv -o split --kind time

      caged data split log.csv -o balanced --kind intervened --seed 2

      caged train --data balanced --method lightgcn
    """
    refuse_filled_folder(out)
    kept = tuple(dict.fromkeys(keep or ()))
    check_kept(kept)
    columns = (
        Columns(keep=kept)
        .reading_ids(ids)
        .named(user=user_column, item=item_column, rating=rating_column, timestamp=timestamp_column)
    )
    with progress_line(quiet=as_json) as line:
        line("splitting: reading the log", 0.0)
        read = load(source, columns=columns, min_rating=min_rating)
    if read.log is None:
        raise DataError(
            f"'{source}' is split into {', '.join(read.parts or ())} already; give a log, or train on it as it is"
        )
    for note in read.notes:
        say(f"note: {note}")
    chosen = {"test_share": test_share, "valid_share": valid_share, "max_item_share": max_item_share}
    options = {name: value for name, value in chosen.items() if value is not None}
    with progress_line(quiet=as_json) as line:
        line("splitting: dealing the interactions", 0.4)
        log = read.log if core is None else k_core(read.log, core, core, where=source)
        parts = split_log(log, kind, seed=seed, **options)
        line("splitting: writing", 0.7)
        origin = {"source": source, "min_rating": min_rating, "k_core": core, "merged_duplicates": log.merged}
        manifest = write_split(parts, out, origin=origin)
    if as_json:
        print_json({"folder": out, **manifest})
        return
    rows = [
        [name, f"{len(part):,}", number(parts.item_gini[name]), part.fingerprint[:12]]
        for name, part in parts.parts.items()
    ]
    print_table(["part", "interactions", "item Gini", "fingerprint"], rows, title=f"{read.name}, split {parts.kind}")
    for name, value in parts.notes.items():
        if isinstance(value, int):  # the others are the Gini of the parts, above
            say(f"{name.replace('_', ' ')}: {value:,}")
    say(f"folder: {out}")
