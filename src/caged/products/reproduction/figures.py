"""The figures of a study, from records: curves over a setting, trade-off, learning curves, densities.

Each is SVG of its own. What was not run is left out of a drawing; a figure of which nothing is recorded is not drawn,
and its name comes back with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.data.known import dataset_title
from caged.evaluation.metrics import MetricKey
from caged.models import display_name
from caged.page import svg
from caged.page.charts import Series, line_chart
from caged.page.figure_file import standalone
from caged.page.looks import looks_of
from caged.page.scatter import Point, scatter, zoomed_ticks
from caged.products.reproduction.cells import Cell, Seeds, cell_of, on_shared_seeds
from caged.products.reproduction.content import curve_of, densities_of
from caged.products.reproduction.tables import MAIN, K, further_seeds, value_of, varied_setting
from caged.products.reproduction.titles import SYMBOLS, data_name, row_title, titles_of
from caged.products.study import Plan, PlannedRun, Recorded

CHARTED = ("recall", "ndcg")
_METRIC_NAMES = {"recall": "Recall@20", "ndcg": "NDCG@20"}
MAGNITUDES = 100  # the largest value over the smallest, beyond which a linear axis would heap the small ones
KERNEL = 0.02  # standard deviation of the density estimate


class Drawn(NamedTuple):
    name: str  # of its file, less the ending
    svg: str | None  # None where there is nothing to draw
    reason: str = ""  # and why
    left_out: str = ""  # of what is drawn: rows that it does not show, and why


def study_figures(
    plan: Plan, records: Mapping[PlannedRun, Recorded], runs: Sequence[PlannedRun] | None = None
) -> list[Drawn]:
    """Of these runs, by default of all of the plan."""
    wanted = [records[run] for run in (plan.runs if runs is None else runs)]
    protocols = {one.run.protocol for one in wanted}
    known = [one for one in records.values() if one.run.protocol in protocols]
    main = _of_main(wanted, known)
    return [*_curves(plan, wanted, known), *_trade_offs(main), *_learning(main), *_densities(wanted)]


def _by_place(records: Sequence[Recorded]) -> Iterator[tuple[str, str, list[Recorded]]]:
    """Dataset, protocol and their runs."""
    places = [(data_name(one.run), one.run.protocol) for one in records]
    for place in dict.fromkeys(places):
        yield *place, [one for one, other in zip(records, places, strict=True) if other == place]


def _of_main(records: Sequence[Recorded], known: Sequence[Recorded]) -> list[Recorded]:
    """What the main table shows of these: also the seeds of its rows that other sections have."""
    main = [one for one in records if MAIN in one.run.sections]
    return [*main, *further_seeds(MAIN, main, known)]


def _rows(records: Sequence[Recorded]) -> dict[str, Seeds]:
    return {
        name: Seeds(tuple(one for one in records if one.run.row == name))
        for name in dict.fromkeys(one.run.row for one in records)
    }


# ---------------------------------------------------------------- curves over a setting


def _curves(plan: Plan, records: Sequence[Recorded], known: Sequence[Recorded]) -> Iterator[Drawn]:
    """One per section that varies a number, and metric."""
    for section in plan.sections:
        members = [one for one in records if section in one.run.sections]
        setting = varied_setting(members) if members else None
        if setting is None:
            continue
        for data, protocol, part in _by_place(members):
            further = further_seeds(section, part, known)
            for metric in CHARTED:
                yield _curve(f"{section}-{data}-{protocol}-{metric}", setting, metric, _rows([*part, *further]))


def _curve(name: str, setting: str, metric: str, rows: Mapping[str, Seeds]) -> Drawn:
    """The mean per value over the seeds that all have; behind it, where the seeds of the preset's value lie."""
    key = MetricKey(metric, K)
    every_seed, rows = rows, _comparable(rows)
    cells = {row: cell_of(seeds, None, key) for row, seeds in rows.items()}
    values = {row: value_of(setting, seeds.planned) for row, seeds in rows.items()}
    points = {
        value: cell for row, cell in cells.items() if isinstance(cell, Cell) and (value := values[row]) is not None
    }
    if len(points) < 2:
        return Drawn(name, None, f"{len(points)} of {len(rows)} values recorded, and a curve needs two")
    places = sorted(points)
    line = _with_intervals(_METRIC_NAMES[metric], [points[place] for place in places])
    words = SYMBOLS.get(setting, setting)
    run = next(seeds.planned[0].run for seeds in rows.values() if seeds.planned[0].run.group is not None)
    where = f"{dataset_title(data_name(run))}, {run.protocol}"
    title = f"{_METRIC_NAMES[metric]} of {_base_title(rows, run.method)} over {words}: {where}"
    logarithmic = places[0] > 0 and places[-1] > MAGNITUDES * places[0]
    spread = _spread(every_seed, run.method, key, len(places))
    series = [line] if spread is None else [line, spread]
    drawing = line_chart(
        places,
        series,
        title=title,
        description="Mean per value; bands are Student's 95% intervals over seeds, from three seeds on.",
        x_label=f"{words}{', logarithmic' * logarithmic}; {_seeds_said(list(points.values()))}",
        y_label=f"{_METRIC_NAMES[metric]}; the axis does not begin at zero",
        x_format=lambda value: f"{value:g}",
        y_levels=zoomed_ticks([value for one in series for value in one.extremes if math.isfinite(value)]),
        legend=spread is not None,
        logarithmic=logarithmic,
    )
    return Drawn(name, standalone(drawing, title))


def _with_intervals(name: str, cells: Sequence[Cell]) -> Series:
    halves = [math.nan if cell.half is None else cell.half for cell in cells]
    means = [cell.mean for cell in cells]
    lower = [mean - half for mean, half in zip(means, halves, strict=True)]
    return Series(name, means, lower, [mean + half for mean, half in zip(means, halves, strict=True)])


def _as_preset(rows: Mapping[str, Seeds], method: str) -> Seeds | None:
    """The row with the value of the preset; one of another method has none."""
    firsts = ((seeds, seeds.planned[0].run) for seeds in rows.values())
    return next((seeds for seeds, run in firsts if run.group is None and run.method == method), None)


def _base_title(rows: Mapping[str, Seeds], method: str) -> str:
    """Of the row with the value of the preset; a varied row says which value it has."""
    base = _as_preset(rows, method)
    return display_name(method) if base is None else row_title(base.planned[0].run)


def _comparable(rows: Mapping[str, Seeds]) -> dict[str, Seeds]:
    """The rows with values, on the seeds that all of these have: a seed that one row lacks would bend the curve."""
    finished = {row: seeds for row, seeds in rows.items() if seeds.finished}
    shared = on_shared_seeds(list(finished.values())) if finished else []
    return {**rows, **dict(zip(finished, shared, strict=True))}


def _spread(rows: Mapping[str, Seeds], method: str, key: str, count: int) -> Series | None:
    """Mean and range over the seeds of the preset's value, all along the axis: smaller differences are noise."""
    base = _as_preset(rows, method)
    found = [] if base is None else base.values(key)
    if len(found) < 2:
        return None
    name = f"mean and range of {len(found)} seeds at the preset's value"
    ends = [min(found)] * count, [max(found)] * count
    return Series(name, [fmean(found)] * count, *ends, look=svg.REFERENCE, measured=False)


def _seeds_said(cells: Sequence[Cell]) -> str:
    counts = sorted({cell.seeds for cell in cells})
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} seeds per value"
    return f"{counts[0]} seed{'s' * (counts[0] > 1)} per value"


# ---------------------------------------------------------------- trade-off


def _trade_offs(main: Sequence[Recorded]) -> Iterator[Drawn]:
    """Recall against niche recall of the rows of the main table."""
    for data, protocol, part in _by_place(main):
        yield _trade_off(f"trade-off-{data}-{protocol}", data, protocol, _rows(part))


def _trade_off(name: str, data: str, protocol: str, rows: Mapping[str, Seeds]) -> Drawn:
    points, looks = {}, list[str]()
    titles = titles_of(seeds.planned[0].run for seeds in rows.values())
    for row, seeds in rows.items():
        cells = [cell_of(seeds, None, MetricKey("recall", K, group)) for group in (None, "niche")]
        if all(isinstance(cell, Cell) for cell in cells):
            recall, niche = (cell for cell in cells if isinstance(cell, Cell))
            points[titles[row]] = Point(recall.mean, niche.mean, _bounds(recall), _bounds(niche))
            looks.append(row)
    if len(points) < 2:
        return Drawn(name, None, f"{len(points)} of {len(rows)} rows recorded, and a trade-off needs two")
    title = f"Recall@20 against niche Recall@20: {dataset_title(data)}, {protocol}"
    drawing = scatter(
        points,
        front(points),
        title=title,
        description="One point per row of the main table; lines are Student's 95% intervals over seeds.",
        x_label="Recall@20",
        y_label="Recall@20 of niche items",
        looks=dict(zip(points, looks_of(looks), strict=True)),
        height=440,
    )
    return Drawn(name, standalone(drawing, title))


def _bounds(cell: Cell) -> tuple[float, float] | None:
    return None if cell.half is None else (cell.mean - cell.half, cell.mean + cell.half)


def front(points: Mapping[str, Point]) -> list[str]:
    """Whom nobody beats in both, from the smallest recall to the largest."""
    ranked = sorted(points, key=lambda name: (points[name].x, points[name].y), reverse=True)
    found, highest = [], -math.inf
    for name in ranked:
        if points[name].y > highest:
            found.append(name)
            highest = points[name].y
    return found[::-1]


# ---------------------------------------------------------------- learning curves


def _learning(main: Sequence[Recorded]) -> Iterator[Drawn]:
    for data, protocol, part in _by_place(main):
        yield _learning_curves(f"learning-{data}-{protocol}", data, protocol, _rows(part))


def _learning_curves(name: str, data: str, protocol: str, rows: Mapping[str, Seeds]) -> Drawn:
    """The last stage of the first seed that has a curve, for each row."""
    found: dict[str, dict[int, float]] = {}  # by row
    without = []
    for row, seeds in rows.items():
        if seeds.planned[0].run.kind != "train" or not seeds.finished:  # what is adjusted has the curve of its start
            continue
        curve = next((curve for one in seeds.finished if (curve := curve_of(one))), None)
        if curve is None:
            without.append(row)
        else:
            found[row] = curve
    if not found:
        return Drawn(name, None, "no record holds a learning curve")
    epochs = sorted({epoch for curve in found.values() for epoch in curve})
    part = "the test part" if protocol == "paper" else "the validation part"
    title = f"Recall@20 on {part} by epoch: {dataset_title(data)}, {protocol}"
    titles = titles_of(seeds.planned[0].run for seeds in rows.values())
    lines = [[curve.get(epoch, math.nan) for epoch in epochs] for curve in found.values()]
    drawing = line_chart(
        epochs,
        [
            Series(titles[row], line, look=look)
            for row, line, look in zip(found, lines, looks_of(list(found)), strict=True)
        ],
        title=title,
        description=f"What decided the epoch: Recall@20 on {part} after each validated epoch, first recorded seed.",
        x_label="epoch",
        y_label=f"Recall@20 on {part}",
        x_ticks=[tick for tick in svg.round_steps(0, epochs[-1], 6) if tick <= epochs[-1]],
        markers=False,
    )
    listed = ", ".join(titles[row] for row in without)
    left_out = f"{listed} (no learning curve recorded)" if without else ""
    return Drawn(name, standalone(drawing, title), left_out=left_out)


# ---------------------------------------------------------------- densities


def _densities(records: Sequence[Recorded]) -> Iterator[Drawn]:
    """Of CAGED on each dataset, as the paper draws them; the first record that holds them."""
    learned = [one for one in records if one.run.method == "caged"]
    for data, protocol, part in _by_place(learned):
        name = f"densities-{data}-{protocol}"
        shown = next(((one, curves) for one in part if one.finished and (curves := densities_of(one))), None)
        if shown is None:
            yield Drawn(name, None, "no record holds densities; train with --save-weights")
        else:
            yield _density(name, *shown)


def _density(name: str, one: Recorded, curves: Sequence[Mapping[str, Any]]) -> Drawn:
    centres = (np.arange(len(curves[0]["values"])) + 0.5) / len(curves[0]["values"])
    where = f"{dataset_title(data_name(one.run))}, {one.run.protocol}"
    title = f"Inverse item popularity: {row_title(one.run)} on {where}"
    looks = [svg.REFERENCE, *range(len(curves) - 1)]
    drawing = line_chart(
        centres.tolist(),
        [
            Series(_moment(curve), smoothed(np.array(curve["values"]), centres).tolist(), look=look)
            for curve, look in zip(curves, looks, strict=True)
        ],
        title=title,
        description="Density of inverse item popularity over the training interactions, on the axis of the paper.",
        x_label="inverse item popularity: near 0 popular items, near 1 niche items",
        y_label=f"density of training interactions, smoothed by {KERNEL:g}",
        x_ticks=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
        markers=False,
    )
    return Drawn(name, standalone(drawing, title))


def smoothed(values: Array, centres: Array) -> Array:
    """The density estimate of a Gaussian kernel, reflected at 0 and 1; what lies below the curve stays the same.

    Before training the popularity of niche items has few values, 1/sqrt(1), 1/sqrt(2), ...: bins alone would zigzag.
    """
    distances = centres[:, None] - np.concatenate((-centres, centres, 2 - centres))
    reach = np.exp(-0.5 * (distances / KERNEL) ** 2).reshape(len(centres), 3, len(centres)).sum(axis=1)
    found: Array = (reach / reach.sum(axis=0)) @ values
    return found


def _moment(curve: Mapping[str, Any]) -> str:
    said = [f"mean {curve['mean']:.3f}"]
    if curve["updates"]:
        said.insert(0, f"{curve['updates']} update{'s' * (curve['updates'] > 1)}")
    if curve["above"]:
        share = f"{100 * curve['above']:.1f}%"
        said.append(f"{'under 0.1%' if share == '0.0%' else share} above 1")
    return f"{curve['name']} ({', '.join(said)})"
