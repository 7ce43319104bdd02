"""`caged data info`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from caged.cli.data.contrast import print_contrast
from caged.cli.output import AsJson, Ids, Verbose, print_json, print_table, print_text
from caged.data.cgraph.layout import is_graph_folder, verify
from caged.data.describe import describe
from caged.data.readers.columns import Columns
from caged.data.source import load
from caged.page.numbers import number


def info(
    source: Annotated[str, typer.Argument(help="Dataset name, log file, or folder with train and test files.")],
    user_column: Annotated[str | None, typer.Option(help="Name of the user column [default: user_id].")] = None,
    item_column: Annotated[str | None, typer.Option(help="Name of the item column [default: item_id].")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Name of the rating column [default: rating].")] = None,
    timestamp_column: Annotated[str | None, typer.Option(help="Name of the time column [default: timestamp].")] = None,
    ids: Ids = "auto",
    min_rating: Annotated[float | None, typer.Option(help="Keep only interactions with at least this rating.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Describe a dataset, log or split: sizes, activity, popularity, overlap, checksums.

    Gini and the share of the most popular fifth show how unequal the items are. Of a .cgraph folder, every file is
    read and compared with its checksum.

    Examples:

      caged data info ml-1m-caged

      caged data info log.csv --min-rating 4 --json
    """
    columns = (
        Columns()
        .reading_ids(ids)
        .named(user=user_column, item=item_column, rating=rating_column, timestamp=timestamp_column)
    )
    loaded = load(source, columns=columns, min_rating=min_rating)
    if is_graph_folder(loaded.path):
        verify(loaded.path)
    described = describe(loaded, filtered=min_rating is not None or columns.ids == "text")
    if as_json:
        print_json(described)
        return
    _print(described)


def _print(described: dict[str, Any]) -> None:
    facts = [
        ("users", f"{described['users']:,}"),
        ("items", f"{described['items']:,}"),
        ("interactions", f"{described['interactions']:,}"),
        ("density", f"{100 * described['density']:.3g}%"),
        ("duplicates merged", f"{described['duplicates']:,}"),
        ("Gini of train popularity", number(described["gini"], 3)),
        ("share of the top 20% of items", number(described["top_20_percent_share"], 3)),
    ]
    print_table(["of all parts", "value"], [list(fact) for fact in facts], title=_title(described))
    parts = described["parts"]
    print_table(
        ["part", "interactions", "users", "items", "per user: min", "median", "max", "Gini", "top 20%"],
        [_sizes(name, part) for name, part in parts.items()],
        title="parts",
    )
    if len(parts) > 1:
        print_table(
            ["part", "items not in train", "their interactions", "users not in train", "dropped, in train too"],
            [_overlap(name, part) for name, part in parts.items() if name != "train"],
            title="beside train",
        )
    print_table(
        ["part", "values", "fingerprint"],
        [[name, ", ".join(part["columns"]) or "none", part["fingerprint"]] for name, part in parts.items()],
        title="columns beside user and item, checksums of the sorted pairs",
    )
    if "popularity_contrast" in described:
        print_contrast(described["popularity_contrast"])
    about = [f"{key}: {described[key]}" for key in ("terms", "citation") if key in described]
    notes = [f"note: {note}" for note in described["notes"]]
    if about or notes:
        print_text("\n" + "\n".join([*about, *notes]))


def _title(described: dict[str, Any]) -> str:
    title = described.get("title")
    known = {True: "the published pairs", False: "NOT the published pairs", None: None}[described["published"]]
    return ", ".join(text for text in (f"{described['name']}{f': {title}' if title else ''}", known) if text)


def _sizes(name: str, part: dict[str, Any]) -> list[str]:
    per_user = part["per_user"]
    return [
        name,
        *(f"{part[key]:,}" for key in ("interactions", "users", "items")),
        f"{per_user['min']:,}",
        "-" if per_user["median"] is None else f"{per_user['median']:,g}",
        f"{per_user['max']:,}",
        number(part["gini"], 3),
        number(part["top_20_percent_share"], 3),
    ]


def _overlap(name: str, part: dict[str, Any]) -> list[str]:
    keys = ("items_not_in_train", "interactions_of_items_not_in_train", "users_not_in_train", "dropped")
    return [name, *(f"{part[key]:,}" for key in keys)]
