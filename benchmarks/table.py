"""Writes the tables of benchmarks/README.md anew from benchmarks/results/: `python -m benchmarks.table`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caged.files import read_json, write_text
from caged.page.text_table import markdown_table
from tools.marked import filled

HERE = Path(__file__).parent
HEADERS = ("benchmark", "data", "threads", "ours", "reference", "ratio", "of ceiling", "beside")
INDEX_HEADERS = (
    "index",
    "set to",
    "recall",
    "at 0.25",
    "at 0.5",
    "at 1",
    "ms CPU",
    "lists/s",
    "two threads",
    "build s",
    "MiB",
)
NUMERIC = (False, False, True, True, True, True, True, False)


def rows(result: dict[str, Any]) -> list[list[str]]:
    measured = [result] + ([result["all_cores"]] if "all_cores" in result else [])
    return [_row(result, part) for part in measured]


def _row(result: dict[str, Any], part: dict[str, Any]) -> list[str]:
    fraction = part["fraction_of_ceiling"]
    others = ", ".join(f"{name} {_time(other['seconds'])}" for name, other in part["others"].items())
    return [
        f"`{result['name']}`",
        result["data"],
        str(part["threads"]),
        _time(part["ours_s"]),
        _time(part["reference_s"]),
        f"{part['ratio']:.2f}",
        "-" if fraction is None else f"{fraction:.2f} ({result['ceiling']})",
        others,
    ]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


def table(record: dict[str, Any]) -> str:
    load = "/".join(f"{value:.1f}" for value in record["load_average"])
    hardware, versions = record["hardware"], record["versions"]
    machine = hardware.get("gpu") or f"{hardware['cpu']}, {hardware['cores']} cores"
    origin = (
        f"`{record['command']}`, finished {record['finished']}, {machine}, torch {versions['torch']}, "
        f"numpy {versions['numpy']}; load average at the end {load}"
    )
    written = markdown_table(HEADERS, [row for result in record["results"] for row in rows(result)], NUMERIC)
    return f"{written}\n\n{origin}"


def index_table(results: Sequence[dict[str, Any]]) -> str:
    """Of `python -m benchmarks.index`."""
    return markdown_table(INDEX_HEADERS, [_index_row(one) for one in results], (False, *[True] * 10))


def _index_row(result: dict[str, Any]) -> list[str]:
    recalls = [f"{value:.3f}" for value in result["recall"].values()]
    others = [f"{result[name]:,.0f}" for name in ("lists_per_s", "lists_per_s_two_threads", "build_s", "mib")]
    return [result["index"], str(result["setting"]), *recalls, f"{result['cpu_ms']:.2f}", *others]


def _index_record(record: dict[str, Any]) -> str:
    load = "/".join(f"{value:.1f}" for value in record["load_average"])
    known = record["versions"]
    versions = ", ".join(f"{name} {known[name]}" for name in ("faiss-cpu", "usearch", "numpy") if name in known)
    return (
        f"{index_table(record['results'])}\n\n`{record['command']}`, finished {record['finished']}, "
        f"{record['hardware']['cpu']}, {record['hardware']['cores']} cores, {versions}; load average at the end {load}"
    )


def updated(text: str) -> str:
    """The document with every table made anew."""
    return filled(
        text,
        {
            "table": lambda name: table(read_json(HERE / "results" / name)),
            "index": lambda name: _index_record(read_json(HERE / "results" / name)),
        },
    )


def main() -> None:
    readme = HERE / "README.md"
    write_text(readme, updated(readme.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
