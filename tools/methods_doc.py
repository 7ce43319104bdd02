"""The generated parts of `docs/methods.md`: a parameter table per method, and tables of recorded results.

    python -m tools.methods_doc docs/methods.md

rewrites what stands between the markers and leaves the rest alone:

    <!-- parameters: NAME -->            every option of a method
    <!-- results: DATASET PROTOCOL -->   finished records below results/DATASET/PROTOCOL, a row per method and variant
    <!-- end -->

After the protocol may follow `on TEST`, for a further test part of the dataset, and `except PATTERN ...`, for variants
that are shown elsewhere.

A method of one's own that is registered gets its table by a marker with its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

from caged.config import OptionInfo, describe, value_text
from caged.errors import RunError
from caged.files import read_json
from caged.models import registered
from caged.page.numbers import UNDEFINED
from caged.page.text_table import markdown_table
from tools.marked import arguments_of, filled, rewrite, short

RESULTS = re.compile(r"(\S+) (\S+)(?: on (\S+))?(?: except (.+))?")
BACKBONE = "lightgcn"
RESULT_COLUMNS = {
    "Recall@20": "recall@20",
    "niche Recall": "recall@20/niche",
    "popular Recall": "recall@20/popular",
    "NDCG@20": "ndcg@20",
    "niche NDCG": "ndcg@20/niche",
    "popular NDCG": "ndcg@20/popular",
    "ARP": "arp@20",
    "popularity lift": "popularity_lift@20",
    "tail share": "tail_share@20",
    "Gini": "gini@20",
    "coverage": "coverage@20",
}


def updated(text: str, results: Path) -> str:
    """The document with every marked part generated anew."""
    return filled(text, {"parameters": parameters, "results": partial(recorded, results)})


def documented_methods(text: str) -> list[str]:
    """The methods that have a parameter table, in order."""
    return arguments_of(text, "parameters")


def parameters(method: str) -> str:
    """A table of the options of a method; those of the backbone are only named."""
    options = describe(registered(method).config)
    shared = [] if method == BACKBONE else [info for info in options if info in describe(registered(BACKBONE).config)]
    own = [info for info in options if info not in shared]
    parts = []
    if own:
        header = ["option", "default", "allowed", "worth trying", "meaning", "source of the default"]
        parts.append(markdown_table(header, map(_option_row, own)))
    if shared:
        names = ", ".join(f"`{info.name}`" for info in shared)
        parts.append(f"As in `{BACKBONE}`: {names}.")
    return "\n\n".join(parts) or "No parameters."


def recorded(results: Path, argument: str) -> str:
    """A table of finished records, LightGCN first: a row per method and variant, means over its seeds."""
    asked = RESULTS.fullmatch(argument)
    if asked is None:
        raise RunError(f"results of '{argument}'; allowed is DATASET PROTOCOL [on TEST] [except PATTERN ...]")
    dataset, protocol, test, hidden = asked.groups()
    folder = results / dataset / protocol
    shown = [path for path in folder.glob("*/seed*.json") if not _hidden(path, (hidden or "").split())]
    records = [(path.parent.name, read_json(path)) for path in sorted(shown, key=_place)]
    finished = [(variant, record) for variant, record in records if record.get("status") == "finished"]
    if not finished:
        raise RunError(f"{folder} holds no finished record; train with --record {results} or remove the marker")
    groups = groupby(finished, key=lambda part: part[0])
    rows = [_result_row(variant, [record for _, record in part], test) for variant, part in groups]
    return markdown_table(["method", "seeds", *RESULT_COLUMNS, "on"], rows)


def _hidden(path: Path, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path.parent.name, pattern) for pattern in patterns)


def _place(path: Path) -> tuple[bool, str, str]:
    variant = path.parent.name
    return variant != BACKBONE, variant, path.name


def _result_row(variant: str, records: Sequence[dict[str, Any]], test: str | None) -> list[str]:
    parts = [record["metrics"] if test is None else record["extra_tests"][test] for record in records]
    means = [_mean([part.get(key) for part in parts]) for key in RESULT_COLUMNS.values()]
    machines = " / ".join(sorted({_machine(record) for record in records}))
    return [f"`{variant}`", ", ".join(str(record["spec"]["seed"]) for record in records), *means, machines]


def _option_row(info: OptionInfo) -> list[str]:
    allowed = info.allowed or info.type
    tried = value_text(info.search) or "-"
    return [f"`{info.name}`", value_text(info.default), allowed, tried, info.help, info.source]


def _mean(values: Sequence[float | None]) -> str:
    """
    >>> _mean([0.1, 0.2]), _mean([1029.21]), _mean([0.1, None])
    ('0.1500', '1029.2', '-')
    """
    known = [value for value in values if value is not None]
    return short(mean(known)) if len(known) == len(values) else UNDEFINED


def _machine(record: dict[str, Any]) -> str:
    hardware = record["hardware"]
    return str(hardware.get("gpu") or f"CPU, {record['threads']} thread{'s' * (record['threads'] > 1)}")


def main(arguments: Sequence[str] | None = None) -> None:
    rewrite(arguments, updated, "Generate the tables of docs/methods.md anew.")


if __name__ == "__main__":
    main()
