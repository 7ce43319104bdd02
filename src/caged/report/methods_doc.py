"""The generated parts of `docs/methods.md`: a parameter table per method, and tables of recorded results.

    python -m caged.report.methods_doc docs/methods.md

rewrites what stands between the markers and leaves the rest alone:

    <!-- parameters: NAME -->            every option of a method
    <!-- results: DATASET PROTOCOL -->   every record below results/DATASET/PROTOCOL
    <!-- end -->

A method of one's own that is registered gets its table by a marker with its name.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from caged.config import OptionInfo, describe
from caged.errors import RunError
from caged.files import read_json, write_text
from caged.models import entry

MARKED = re.compile(r"(<!-- (parameters|results): ([^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
BACKBONE = "lightgcn"
RESULT_COLUMNS = {
    "Recall@20": "recall@20",
    "niche": "recall@20/niche",
    "popular": "recall@20/popular",
    "NDCG@20": "ndcg@20",
    "popularity lift": "popularity_lift@20",
    "tail share": "tail_share@20",
    "coverage": "coverage@20",
}


def updated(text: str, results: Path) -> str:
    """The document with every marked part generated anew."""

    def generated(match: re.Match[str]) -> str:
        opening, kind, argument, end = match.groups()
        content = parameters(argument) if kind == "parameters" else recorded(results, *argument.split())
        return f"{opening}{content}\n{end}"

    return MARKED.sub(generated, text)


def documented_methods(text: str) -> list[str]:
    """The methods that have a parameter table, in order."""
    return [argument for _, kind, argument, _ in MARKED.findall(text) if kind == "parameters"]


def parameters(method: str) -> str:
    """A table of the options of a method; those of the backbone are only named."""
    options = describe(entry(method).config)
    shared = [] if method == BACKBONE else [info for info in options if info in describe(entry(BACKBONE).config)]
    own = [info for info in options if info not in shared]
    parts = []
    if own:
        header = ["option", "default", "allowed", "worth trying", "meaning", "source of the default"]
        parts.append(markdown_table(header, map(_option_row, own)))
    if shared:
        names = ", ".join(f"`{info.name}`" for info in shared)
        parts.append(f"As in `{BACKBONE}`: {names}.")
    return "\n\n".join(parts) or "No parameters."


def recorded(results: Path, dataset: str, protocol: str) -> str:
    """A table of the finished records of a dataset under a protocol, by method and seed."""
    folder = results / dataset / protocol
    rows = []
    for path in sorted(folder.glob("*/seed*.json")):
        record = read_json(path)
        if record.get("status") == "finished":
            shown = [_number(record["metrics"].get(key)) for key in RESULT_COLUMNS.values()]
            rows.append([f"`{path.parent.name}`", str(record["spec"]["seed"]), *shown, _machine(record)])
    if not rows:
        raise RunError(f"{folder} holds no finished record; train with --record {results} or remove the marker")
    return markdown_table(["method", "seed", *RESULT_COLUMNS, "on"], rows)


def _option_row(info: OptionInfo) -> list[str]:
    allowed = info.allowed or info.type
    tried = ", ".join(_value(value) for value in info.search) or "-"
    return [f"`{info.name}`", _value(info.default), allowed, tried, info.help, info.source]


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_value(part) for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _machine(record: dict[str, Any]) -> str:
    hardware = record["hardware"]
    return str(hardware.get("gpu") or f"CPU, {record['threads']} thread{'s' * (record['threads'] > 1)}")


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows as Markdown; a vertical bar inside a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Generate the tables of docs/methods.md anew.")
    parser.add_argument("document", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder that --record wrote to")
    chosen = parser.parse_args(arguments)
    write_text(chosen.document, updated(chosen.document.read_text(encoding="utf-8"), chosen.results))


if __name__ == "__main__":
    main()
