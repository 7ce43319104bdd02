"""The inverse-item-popularity figure: how edge weights are distributed before, during and after training.

`runs.densities` says what it is. Learned weights may be larger as a whole; `rescaled` divides that out, so that only
their shape is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caged.data.ids import Array
from caged.page import svg
from caged.page.charts import Series, line_chart
from caged.page.figure_file import standalone

BINS = 25
SHOWN = 0.99  # of the values; a few large ones would squeeze the rest into one bin


@dataclass(frozen=True)
class Density:
    name: str
    updates: int
    values: list[float]  # per bin; the mass below a curve is the share of edges within the axis
    mean: float


@dataclass(frozen=True)
class IIP:
    """Densities over a common axis."""

    centres: list[float]
    densities: list[Density]
    rescaled: bool


def densities(named: Sequence[tuple[str, int, Array]], *, rescaled: bool = False) -> IIP:
    """Histograms of (name, updates, values) on one axis from 0; the first of them sets the scale if `rescaled`."""
    first = named[0][2].mean()
    values = [entry[2] * (first / entry[2].mean()) if rescaled and entry[2].mean() > 0 else entry[2] for entry in named]
    upper = max(float(np.quantile(one, SHOWN)) for one in values)
    edges = np.linspace(0, upper, BINS + 1)
    found = []
    for (name, updates, _), one in zip(named, values, strict=True):
        counts, _ = np.histogram(one, edges)
        found.append(Density(name, updates, (counts / len(one) / np.diff(edges)).tolist(), float(one.mean())))
    return IIP(((edges[1:] + edges[:-1]) / 2).tolist(), found, rescaled)


def iip_svg(iip: IIP, title: str) -> str:
    """The figure as a file of its own."""
    series = [
        Series(_named(one), one.values, look=look)
        for one, look in zip(iip.densities, _looks(iip.densities), strict=True)
    ]
    scale = ", each rescaled to the mean before" if iip.rescaled else ""
    drawing = line_chart(
        iip.centres,
        series,
        title=title,
        description=f"Density of inverse item popularity over the training interactions{scale}.",
        x_label=f"inverse item popularity, weight x sqrt(user degree){scale}",
        y_label="density of training interactions",
        x_ticks=svg.round_steps(0, iip.centres[-1], 5),
        markers=False,
    )
    return standalone(drawing, title)


def _named(one: Density) -> str:
    return f"{one.name} ({one.updates} update{'' if one.updates == 1 else 's'})" if one.updates else one.name


def _looks(densities: Sequence[Density]) -> list[int]:
    """What training starts from is the reference."""
    return [svg.REFERENCE, *range(len(densities) - 1)]
