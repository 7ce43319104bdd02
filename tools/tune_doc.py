"""The generated tables of `docs/tune.md`: what searches found and what each method was given, from their records.

    python -m tools.tune_doc docs/tune.md

rewrites what stands between the markers and leaves the rest alone:

    <!-- tuned: NAME -->   tuned against default, of results/tunes/NAME.json
    <!-- given: NAME -->   trials, epochs and seconds of each method in that search
    <!-- end -->
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from caged.files import read_json
from caged.page.text_table import markdown_table
from tools.marked import filled, rewrite

METRICS = ("recall@20", "recall@20/niche")

Record = dict[str, Any]
Found = dict[str, Any]  # what a record says of a method


def updated(text: str, results: Path) -> str:
    """The document with every marked part generated anew."""

    def record(name: str) -> Record:
        found: Record = read_json(results / "tunes" / f"{name}.json")
        return found

    return filled(
        text, {"tuned": lambda name: _tuned(record(name)), "given": lambda name: _given(record(name)["methods"])}
    )


def _tuned(record: Record) -> str:
    """The best on validation first; those that miss a constraint last, as they cannot be chosen."""
    methods: dict[str, Found] = record["methods"]
    objective, up = record["goal"]["objective"], record["goal"]["maximise"]
    order = sorted(
        methods,
        key=lambda name: (not methods[name]["feasible"], (-1 if up else 1) * _on_validation(methods[name], objective)),
    )
    constrained = bool(record["subject_to"])
    head = ["method", *(f"{metric}: default, tuned" for metric in METRICS), *(f"test, {metric}" for metric in METRICS)]
    rows = [
        [
            f"`{name}`",
            *(_change(methods[name], metric) for metric in METRICS),
            *(_test(methods[name], metric) for metric in METRICS),
            *([("yes" if methods[name]["feasible"] else "no")] if constrained else []),
        ]
        for name in order
    ]
    return markdown_table([*head, *(["constraint kept"] if constrained else [])], rows)


def _on_validation(found: Found, metric: str, trial: int | None = None) -> float:
    """Of the chosen trial, or of another."""
    number = found["chosen"] if trial is None else trial
    return float(next(one["metrics"][metric] for one in found["record"] if one["number"] == number))


def _change(found: Found, metric: str) -> str:
    default, tuned = _on_validation(found, metric, 0), _on_validation(found, metric)
    if found["chosen"] == 0:
        return f"{default:.4f}, the same"
    return f"{default:.4f}, {tuned:.4f} ({100 * (tuned / default - 1):+.1f}%)"


def _test(found: Found, metric: str) -> str:
    values = [run["metrics"][metric] for run in found["test"] if "metrics" in run]
    if not values:
        return "not tested"
    return f"{mean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def _given(methods: dict[str, Found]) -> str:
    rows = [
        [
            f"`{name}`",
            f"{found['trials']}{' (all settings)' if found['exhausted'] else ''}",
            str(found["failed"]),
            f"{found['epochs']:,}",
            f"{found['seconds']:.0f}",
            str(len(found["test"])),
            f"{sum(run['epochs'] for run in found['test']):,}",
            f"{sum(run['seconds'] for run in found['test']):.0f}",
        ]
        for name, found in methods.items()
    ]
    head = ["method", "trials", "failed", "epochs", "seconds", "tests", "epochs of tests", "seconds of tests"]
    return markdown_table(head, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    rewrite(arguments, updated, "Generate the tables of docs/tune.md anew.")


if __name__ == "__main__":
    main()
