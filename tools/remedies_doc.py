"""The generated tables of `docs/remedies.md`: what each remedy costs and brings, from recorded runs.

    python -m tools.remedies_doc docs/remedies.md

rewrites what stands between the markers and leaves the rest alone:

    <!-- prices: DATASET PROTOCOL FOLDER=STEP; ... -->   records below results/DATASET/PROTOCOL; the first is the start
    <!-- shown: DATASET PROTOCOL FOLDER=STEP; ... -->    the same, judged by what chance showed
    <!-- chance: DATASET -->                             results/DATASET/halves.json, of tools.shown_halves
    <!-- end -->

A change is one of means over the seeds that both have. From three seeds on it has Welch's 95% interval over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from scipy.stats import t as student

from caged.evaluation.significance import welch_test
from caged.files import read_json
from caged.page.text_table import markdown_table
from tools.marked import filled, rewrite

COLUMNS = {"recall@20": "recall@20", "niche recall@20": "recall@20/niche", "NDCG@20": "ndcg@20"}
SHOWN = {"`shown_auc`": "shown_auc", "among niche items": "shown_auc/niche", "among popular items": "shown_auc/popular"}
SEEDS_FOR_INTERVAL = 3

BySeed = dict[int, dict[str, float]]  # metrics of the runs of one row


def updated(text: str, results: Path) -> str:
    """The document with every marked part generated anew."""
    return filled(
        text,
        {
            "prices": lambda argument: _against_first(argument, results, COLUMNS),
            "shown": lambda argument: _against_first(argument, results, SHOWN),
            "chance": lambda argument: _chance(results / argument / "halves.json"),
        },
    )


def _against_first(argument: str, results: Path, columns: dict[str, str]) -> str:
    """The steps that `argument` lists, with their changes against the first of them."""
    dataset, protocol, listed = argument.split(maxsplit=2)
    steps = dict(part.strip().split("=", 1) for part in listed.split(";"))
    found = {folder: _metrics(results / dataset / protocol / folder) for folder in steps}
    start = next(iter(found.values()))
    rows = [
        [title, str(len(found[folder])), *(_cell(found[folder], start, key) for key in columns.values())]
        for folder, title in steps.items()
    ]
    return markdown_table(["step", "seeds", *columns], rows)


def _metrics(folder: Path) -> BySeed:
    records = [read_json(path) for path in sorted(folder.glob("seed*.json"))]
    return {record["spec"]["seed"]: record["metrics"] for record in records if record["status"] == "finished"}


def _cell(runs: BySeed, start: BySeed, key: str) -> str:
    """
    >>> lower, higher = ({seed: {"x": base + seed / 100} for seed in (1, 2, 3)} for base in (0.09, 0.19))
    >>> _cell(higher, lower, "x")
    '0.2100 (+91%, +70% to +112%)'
    >>> _cell({1: {"x": 0.2}}, lower, "x"), _cell(lower, lower, "x")
    ('0.2000 (+100%)', '0.1100')
    """
    if not runs:
        return "not run"
    values = [run[key] for run in runs.values()]
    before = [run[key] for seed, run in start.items() if seed in runs]
    if runs is start or not before:
        return f"{mean(values):.4f}"
    change = mean(values) - mean(before)
    text = _share(change, mean(before))
    if min(len(values), len(before)) >= SEEDS_FOR_INTERVAL:
        test = welch_test(values, before)
        reach = float(student.ppf(0.975, test.df)) * abs(test.mean_difference / test.t)
        text += f", {_share(change - reach, mean(before))} to {_share(change + reach, mean(before))}"
    return f"{mean(values):.4f} ({text})"


def _share(change: float, base: float) -> str:
    percent = 100 * change / base
    return f"{percent:+.0f}%" if abs(percent) >= 10 else f"{percent:+.1f}%"


def _chance(path: Path) -> str:
    """Rows by the half that chooses, the best last."""
    runs = sorted(read_json(path)["runs"], key=lambda run: float(_auc(run, "first")))
    rows = [[_name(run), _auc(run, "first"), _auc(run, "second")] for run in runs]
    return markdown_table(["ranked by", "half that chooses", "half that reports"], rows)


def _auc(run: dict[str, Any], half: str) -> str:
    return f"{run['halves'][half]['shown_auc']:.4f}"


def _name(run: dict[str, Any]) -> str:
    settings = run["settings"]
    if run["method"] != "softmax":
        return f"`{run['method']}`"
    return f"`softmax`, temperature {settings['temperature']:g}, gamma {settings['gamma']:g}"


def main(arguments: Sequence[str] | None = None) -> None:
    rewrite(arguments, updated, "Generate the tables of docs/remedies.md anew.")


if __name__ == "__main__":
    main()
