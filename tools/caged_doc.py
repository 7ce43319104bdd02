"""The generated tables of `docs/caged.md`: every recorded run of LightGCN and CAGED.

    python -m tools.caged_doc docs/caged.md

rewrites what stands between the markers and leaves the rest alone:

    <!-- runs: DATASET PROTOCOL -->   records of these methods below results/DATASET/PROTOCOL, a row per variant;
                                       behind it may follow `except PATTERN ...`, for variants that are left out
    <!-- end -->

Runs that failed or never ended are listed too. A difference to LightGCN is taken seed by seed, and only from a LightGCN
that was trained in the same way; from three seeds on it has Student's 95% interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

from caged.evaluation.significance import student_half
from caged.files import read_json
from caged.page.text_table import markdown_table
from tools.marked import filled, rewrite, short

BACKBONE = "lightgcn"
METHODS = (BACKBONE, "caged")
WITH_RANGE = {"Recall@20": "recall@20", "NDCG@20": "ndcg@20"}
MEANS = {
    "NDCG hits100": "ndcg_hits100@20",  # only where a record has it: under `paper`
    "niche Recall": "recall@20/niche",
    "niche NDCG": "ndcg@20/niche",
    "popular Recall": "recall@20/popular",
    "popular NDCG": "ndcg@20/popular",
    "ARP": "arp@20",
    "Gini": "gini@20",
    "coverage": "coverage@20",
}
DIFFERENCE = "recall@20"
SEEDS_FOR_INTERVAL = 3
SHARED_SETTINGS = {  # what a fair comparison has in common
    "method": ("embedding_size", "layers", "l2"),
    "train": ("learning_rate", "batch_size", "epochs", "patience", "sampler"),
}


@dataclass(frozen=True)
class Run:
    """One record: a variant of a method with a seed."""

    variant: str
    seed: int
    status: str
    error: str | None
    settings: tuple[Any, ...]
    metrics: dict[str, float]


def updated(text: str, results: Path) -> str:
    """The document with every marked part generated anew."""

    def content(argument: str) -> str:
        dataset, protocol, *hidden = argument.split()
        return _content(read_runs(results / dataset / protocol, hidden[1:]))

    return filled(text, {"runs": content})


def read_runs(folder: Path, hidden: Sequence[str] = ()) -> list[Run]:
    """The runs of both methods, LightGCN first, by variant and seed, but for the variants of `hidden` patterns."""
    shown = [path for path in folder.glob("*/seed*.json") if not any(map(path.parent.match, hidden))]
    runs = [_read(path) for path in shown if _method_of(path) in METHODS]
    return sorted(runs, key=lambda run: (_order(run.variant), run.variant, run.seed))


def _method_of(path: Path) -> str:
    return path.parent.name.partition("-")[0]


def _order(variant: str) -> int:
    return METHODS.index(variant.partition("-")[0])


def _read(path: Path) -> Run:
    record = read_json(path)
    config = record["spec"]["config"]
    settings = tuple(config[part].get(key) for part, keys in SHARED_SETTINGS.items() for key in keys)
    metrics = record.get("metrics") or {}
    return Run(path.parent.name, record["spec"]["seed"], record["status"], record.get("error"), settings, metrics)


def _content(runs: list[Run]) -> str:
    if not runs:
        return "No runs recorded yet."
    means = {name: key for name, key in MEANS.items() if any(run.metrics.get(key) is not None for run in runs)}
    header = ["variant", "seeds", *WITH_RANGE, "Recall against LightGCN", *means, "status"]
    baselines = {(run.seed, run.settings): run for run in runs if run.variant == BACKBONE and run.metrics}
    rows = [
        _row(variant, list(group), baselines, means.values())
        for variant, group in groupby(runs, key=lambda run: run.variant)
    ]
    return "\n\n".join([markdown_table(header, rows), *_errors(runs)])


def _row(variant: str, runs: list[Run], baselines: dict[Any, Run], means: Iterable[str]) -> list[str]:
    finished = [run for run in runs if run.status == "finished"]
    return [
        f"`{variant}`",
        ", ".join(str(run.seed) for run in finished) or "-",
        *(_mean_and_range(finished, key) for key in WITH_RANGE.values()),
        "-" if variant == BACKBONE else _difference(finished, baselines),
        *(_mean(finished, key) for key in means),
        _status(runs),
    ]


def _values(runs: list[Run], key: str) -> list[float]:
    return [run.metrics[key] for run in runs if run.metrics.get(key) is not None]


def _mean(runs: list[Run], key: str) -> str:
    values = _values(runs, key)
    return short(mean(values)) if values else "-"


def _mean_and_range(runs: list[Run], key: str) -> str:
    values = _values(runs, key)
    if len(values) < 2:
        return _mean(runs, key)
    return f"{short(mean(values))} ({short(min(values))} to {short(max(values))})"


def _difference(runs: list[Run], baselines: dict[Any, Run]) -> str:
    """Mean over the seeds that LightGCN has too, with the number of them where not all have."""
    pairs = [(run, baselines[run.seed, run.settings]) for run in runs if (run.seed, run.settings) in baselines]
    if not pairs:
        return "-"
    base = mean(other.metrics[DIFFERENCE] for _, other in pairs)
    differences = [run.metrics[DIFFERENCE] - other.metrics[DIFFERENCE] for run, other in pairs]
    found = mean(differences)
    some = "" if len(pairs) == len(runs) else f", seed {', '.join(str(run.seed) for run, _ in pairs)}"
    relative = f" ({_signed(100 * found / base, 1)}%{some})" if base else ""
    return _signed(found) + _interval(differences) + relative


def _interval(differences: Sequence[float]) -> str:
    """Student's 95% interval of the mean over seeds; fewer than three say nothing about chance.

    >>> _interval([0.01, 0.02, 0.03])
    ' [-0.0048, +0.0448]'
    """
    count = len(differences)
    if count < SEEDS_FOR_INTERVAL:
        return ""
    half = student_half(differences)
    middle = mean(differences)
    return f" [{_signed(middle - half)}, {_signed(middle + half)}]"


def _signed(value: float, digits: int = 4) -> str:
    """
    >>> _signed(0.00123), _signed(-0.5, 1), _signed(-0.00001)
    ('+0.0012', '-0.5', '+0.0000')
    """
    return f"{round(value, digits) + 0.0:+.{digits}f}"  # adding zero takes the sign off a zero


def _status(runs: list[Run]) -> str:
    """
    >>> _status([Run("caged", seed, "finished", None, (), {}) for seed in (1, 2)])
    'finished'
    """
    states = {status: [run.seed for run in runs if run.status == status] for status in {run.status for run in runs}}
    if set(states) == {"finished"}:
        return "finished"
    parts = [f"{status} (seed {', '.join(map(str, seeds))})" for status, seeds in sorted(states.items())]
    return "; ".join(parts)


def _errors(runs: list[Run]) -> list[str]:
    lines = [f"- `{run.variant}`, seed {run.seed}: {run.error}" for run in runs if run.status == "failed" and run.error]
    return ["Why runs failed:\n\n" + "\n".join(lines)] if lines else []


def main(arguments: Sequence[str] | None = None) -> None:
    rewrite(arguments, updated, "Generate the result tables of docs/caged.md anew.")


if __name__ == "__main__":
    main()
