"""What stands in the cells: means over seeds, their intervals, who is best, and what is more than chance.

Numbers of different protocols never share a table, nor numbers from different test parts a column. Stars rest on
Welch's t over seeds against the first row, and only where both have five seeds or more; recorded results hold no values
per user, so nothing else can be tested.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from caged.data.known import dataset_title
from caged.errors import ConfigError, unknown
from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEAST_RUNS, LEVEL, holm, student_half, welch_test
from caged.models import display_name
from caged.products.compare import Entry, Group, same_split
from caged.products.results.reading import Found

USUAL_METRICS = ("recall@20", "ndcg@20", "recall@20/niche", "ndcg@20/niche")
LEAST_FOR_INTERVAL = 3  # seeds; two say next to nothing about a third
Place = Literal["best", "second"]
Sign = Literal["better", "worse"]


@dataclass(frozen=True)
class Column:
    dataset: str
    metric: MetricKey
    digits: int  # behind the point, the same all down the column


@dataclass(frozen=True)
class Cell:
    """One method on one dataset in one metric, over its seeds."""

    mean: float
    seeds: int
    half: float | None = None  # half the width of Student's 95% interval over seeds
    place: Place | None = None
    sign: Sign | None = None  # against the first row, after Holm's correction


@dataclass(frozen=True)
class ResultsTable:
    """One protocol: a row per method and variant, a group of columns per dataset."""

    protocol: str
    columns: tuple[Column, ...]
    rows: Mapping[str, tuple[Cell | None, ...]]  # by the name of the row; None where nothing was recorded
    baseline: str  # the name of the first row
    tests: int  # over seeds, whose p-values were adjusted together
    notes: tuple[str, ...]

    @property
    def datasets(self) -> list[tuple[str, int]]:
        """The groups of columns, as papers call them, and how many columns each has."""
        groups = [(name, len(list(part))) for name, part in groupby(column.dataset for column in self.columns)]
        shown = [dataset_title(name) for name, _ in groups]
        # Two splits of the same data share a name; side by side they keep their own.
        return [
            (name if shown.count(display) > 1 else display, count)
            for (name, count), display in zip(groups, shown, strict=True)
        ]

    @property
    def seeds(self) -> list[int]:
        """How many seeds the cells have: the fewest and the most."""
        counts = [cell.seeds for cells in self.rows.values() for cell in cells if cell is not None]
        return sorted({min(counts), max(counts)})

    def to_json(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "columns": [{"dataset": column.dataset, "metric": column.metric} for column in self.columns],
            "rows": {
                name: [None if cell is None else vars(cell) for cell in cells] for name, cells in self.rows.items()
            },
            "baseline": self.baseline,
            "tests": self.tests,
            "notes": list(self.notes),
        }


def results_tables(found: Found, metrics: Sequence[str] | None = None) -> list[ResultsTable]:
    """One table per protocol."""
    protocols = list(dict.fromkeys(entry.protocol for entry in found.entries))
    return [
        _table(str(protocol), [entry for entry in found.entries if entry.protocol == protocol], metrics, found)
        for protocol in protocols
    ]


def _table(protocol: str, entries: Sequence[Entry], metrics: Sequence[str] | None, found: Found) -> ResultsTable:
    datasets = list(dict.fromkeys(str(entry.dataset) for entry in entries))
    for dataset in datasets:
        _check_one_test([entry for entry in entries if entry.dataset == dataset], dataset)
    names = list(dict.fromkeys(entry.method for entry in entries))
    groups = {
        (name, dataset): Group(name, members)
        for name in names
        for dataset in datasets
        if (members := tuple(one for one in entries if (one.method, one.dataset) == (name, dataset)))
    }
    keys = _keys(entries, metrics)
    pairs = [(dataset, key) for dataset in datasets for key in keys if _measured(groups.values(), dataset, key)]
    cells = {(name, pair): _cell(groups.get((name, pair[0])), pair[1]) for name in names for pair in pairs}
    signs, tests = _signs(groups, names, pairs)
    columns = [_column(*pair, [cells[name, pair] for name in names]) for pair in pairs]
    marked: list[list[Cell | None]] = [
        _with_places([cells[name, pair] for name in names], column, [signs.get((name, pair)) for name in names])
        for pair, column in zip(pairs, columns, strict=True)
    ]
    rows = {_row_name(name): tuple(column[place] for column in marked) for place, name in enumerate(names)}
    return ResultsTable(protocol, tuple(columns), rows, _row_name(names[0]), tests, tuple(_notes(found, groups)))


def _row_name(name: str) -> str:
    """A method by its name in papers, its variant behind.

    >>> _row_name("lightgcn"), _row_name("caged-no_momentum")
    ('LightGCN', 'CAGED (no momentum)')
    """
    method, _, variant = name.partition("-")
    return display_name(method) + (f" ({variant.replace('_', ' ')})" if variant else "")


def _keys(entries: Sequence[Entry], metrics: Sequence[str] | None) -> list[MetricKey]:
    recorded = list(dict.fromkeys(key for entry in entries for key in entry.metrics))
    keys = [MetricKey.parse(text.strip()) for text in dict.fromkeys(metrics or USUAL_METRICS)]
    for key in keys:
        if key not in recorded and metrics is not None:
            raise ConfigError(unknown("metric", key, recorded))
    known = [key for key in keys if key in recorded]
    if not known:
        raise ConfigError(f"the results hold none of {', '.join(USUAL_METRICS)}; choose some with --metrics")
    return known


def _measured(groups: Any, dataset: str, key: str) -> bool:
    """Whether any result on a dataset has this metric: no column is empty."""
    return any(key in one.metrics for group in groups for one in group.entries if one.dataset == dataset)


def _check_one_test(entries: Sequence[Entry], dataset: str) -> None:
    first = entries[0]
    other = next((entry for entry in entries if not same_split(first, entry)), None)
    if other is not None:
        raise ConfigError(
            f"{first.folder} and {other.folder} were measured on different parts of {dataset}, so they cannot share a "
            "column; choose results of one split with --methods"
        )


def _cell(group: Group | None, key: MetricKey) -> Cell | None:
    """None where a method has no result on a dataset, or one without this metric."""
    if group is None or not all(key in entry.metrics for entry in group.entries):
        return None
    values = group.values(key)
    half = student_half(values) if len(values) >= LEAST_FOR_INTERVAL and all(map(math.isfinite, values)) else None
    return Cell(statistics.fmean(values), len(values), half)


def _column(dataset: str, key: MetricKey, cells: Sequence[Cell | None]) -> Column:
    largest = max((abs(cell.mean) for cell in cells if cell and math.isfinite(cell.mean)), default=0.0)
    return Column(dataset, key, 4 if largest < 10 else 2 if largest < 100 else 1)


# ---------------------------------------------------------------- who is best


def _with_places(cells: Sequence[Cell | None], column: Column, signs: Sequence[Sign | None]) -> list[Cell | None]:
    """Best and second best by what is shown: who is equal to the last digit shares the place."""
    rank = {"up": lambda value: -value, "down": lambda value: value, "zero": abs}.get(column.metric.metric.direction)
    shown = [_rounded(cell, column) for cell in cells]
    order = sorted({rank(value) for value in shown if value is not None}) if rank else []
    places: dict[float, Place] = dict(zip(order[:2], ("best", "second"), strict=False)) if len(order) > 1 else {}
    return [
        None if cell is None else Cell(cell.mean, cell.seeds, cell.half, _place(value, rank, places), sign)
        for cell, value, sign in zip(cells, shown, signs, strict=True)
    ]


def _place(value: float | None, rank: Any, places: Mapping[float, Place]) -> Place | None:
    return None if value is None or not places else places.get(rank(value))


def _rounded(cell: Cell | None, column: Column) -> float | None:
    return None if cell is None or not math.isfinite(cell.mean) else round(cell.mean, column.digits)


# ---------------------------------------------------------------- more than chance


def _signs(
    groups: Mapping[tuple[str, str], Group], names: Sequence[str], pairs: Sequence[tuple[str, MetricKey]]
) -> tuple[dict[tuple[str, tuple[str, MetricKey]], Sign], int]:
    """Better or worse than the first row, where Welch's t over seeds says so; and how many tests there were."""
    found: dict[tuple[str, tuple[str, MetricKey]], tuple[float, float]] = {}
    for name in names[1:]:
        for dataset, key in pairs:
            base, group = groups.get((names[0], dataset)), groups.get((name, dataset))
            if base is None or group is None or min(len(base.entries), len(group.entries)) < LEAST_RUNS:
                continue
            if all(key in entry.metrics for entry in (*base.entries, *group.entries)):
                test = welch_test(base.values(key), group.values(key))
                found[name, (dataset, key)] = (test.p, test.mean_difference)
    adjusted = holm([p for p, _ in found.values()])
    signs: dict[tuple[str, tuple[str, MetricKey]], Sign] = {}
    for (place, (_, difference)), p in zip(found.items(), adjusted, strict=True):
        direction = place[1][1].metric.direction
        if p < LEVEL and difference and direction in ("up", "down"):
            signs[place] = "better" if (difference > 0) == (direction == "up") else "worse"
    return signs, sum(not math.isnan(p) for p in adjusted)


def _notes(found: Found, groups: Mapping[tuple[str, str], Group]) -> list[str]:
    said = []
    if found.unfinished:
        runs = "1 recorded run is" if found.unfinished == 1 else f"{found.unfinished} recorded runs are"
        said.append(f"{runs} left out: failed, interrupted or still running")
    mixed = [
        f"{_row_name(group.name)} on {dataset}"
        for (_, dataset), group in groups.items()
        if any(entry.settings != group.entries[0].settings for entry in group.entries)
    ]
    if mixed:
        said.append(f"seeds of one row were trained with different settings: {', '.join(mixed)}")
    return said
