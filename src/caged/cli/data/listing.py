"""`caged data list`."""

from __future__ import annotations

from typing import Any

from caged.cli.output import AsJson, Verbose, print_json, print_table, say
from caged.data.known import DATASETS, Dataset, data_folder


def list_datasets(as_json: AsJson = False, verbose: Verbose = False) -> None:
    """List the known datasets: size, whether you have them, source and terms.

    Datasets live in the folder that CAGED_DATA names, or else in your cache folder. The output says which.
    """
    rows = [_row(dataset) for dataset in DATASETS.values()]
    if as_json:
        print_json({"data_folder": data_folder(), "datasets": rows})
        return
    sizes = ("users", "items", "interactions")
    print_table(
        ["name", *sizes, "here"],
        [
            [
                f"{row['name']}{' (a part)' if row['partial'] else ''}",
                *(f"{row[size]:,}" for size in sizes),
                "yes" if row["here"] else "no",
            ]
            for row in rows
        ],
    )
    homes = [[row["name"], row["home"] or "none known", row["verified"] or "none"] for row in rows]
    print_table(["name", "public home", "verified"], homes, title="where they come from")
    print_table(["name", "terms"], [[row["name"], row["terms"]] for row in rows], title="terms of use")
    say(f"data folder: {data_folder()} (set CAGED_DATA to use another)")


def _row(dataset: Dataset) -> dict[str, Any]:
    home = dataset.home
    return {
        "name": dataset.name,
        "title": dataset.title,
        "users": dataset.users,
        "items": dataset.items,
        "interactions": dataset.interactions,
        "partial": dataset.partial,
        "here": dataset.find(data_folder() / dataset.folder) is not None,
        "folder": dataset.folder,
        "home": home.page if home else None,
        "downloads": [download.url for download in home.downloads] if home else [],
        "verified": str(home.verified) if home and home.verified else None,
        "terms": dataset.terms,
        "citation": dataset.citation,
        "fingerprints": dict(dataset.fingerprints),
    }
