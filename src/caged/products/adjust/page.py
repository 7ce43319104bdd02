"""The page of an adjustment: what every strength costs and brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from caged.evaluation.metrics import MetricKey
from caged.page import charts
from caged.page.definitions import meaning
from caged.page.html import ColumnHead, Figure, Page, Panel, Section, Table, render
from caged.page.numbers import percent
from caged.page.text_table import TextTable
from caged.products.adjust.judge import Outcome, Point
from caged.products.adjust.tables import PARTS, change_table, curve_table, sentences
from caged.runs.versions import versions

WHY = (
    "An adjustment takes popularity out of the scores after training. The strength runs from 0 (the recommender as it "
    "was) to 1. It is chosen on the validation part; the test part only shows the price."
)


def adjustment_html(outcome: Outcome, name: str, command: str) -> str:
    """Needs the curve."""
    return render(
        Page(
            title=f"{name}: less popularity, at what price?",
            subtitle=f"Form {outcome.adjustment.form}, lists of {outcome.k}.",
            notice=WHY,
            findings=sentences(outcome),
            sections=[
                *(_curve_section(outcome, part) for part in outcome.curve),
                Section("Before and after", table=_as_table(change_table(outcome))),
            ],
            glossary=[(key, meaning(key)) for key in _keys(outcome)],
            command=command,
            facts=list(versions().items()),
        )
    )


def _keys(outcome: Outcome) -> list[MetricKey]:
    return list(next(iter(outcome.changes.values())))


def _curve_section(outcome: Outcome, part: str) -> Section:
    points, keys = outcome.curve[part], _keys(outcome)
    shown = (keys[0], keys[1])
    panels = [Panel(_drawing(points, key, PARTS[part]), key) for key in shown]
    caption = (
        f"Each line goes from the recommender as it was (left) to the strongest adjustment (right); bands are 95% "
        f"intervals over users. The strength in use is {outcome.adjustment.strength:g}."
    )
    return Section(
        f"Every strength, on {PARTS[part]}", figure=Figure(panels, caption, _as_table(curve_table(outcome, part)))
    )


def _drawing(points: Sequence[Point], key: MetricKey, part: str) -> Callable[[int], str]:
    strengths = [point.strength for point in points]

    def draw(width: int) -> str:
        return charts.line_chart(
            strengths,
            [_series(points, key, part)],
            title=f"{key} on {part} over the strength",
            description=f"{key} from {points[0].metrics[key]:.4f} at strength 0 to {points[-1].metrics[key]:.4f} at 1.",
            x_label="strength",
            y_format=percent,
            x_ticks=(0, 0.25, 0.5, 0.75, 1),
            width=width,
        )

    return draw


def _series(points: Sequence[Point], key: MetricKey, part: str) -> charts.Series:
    found = [point.intervals.get(key) for point in points]
    return charts.Series(
        part,
        [point.metrics[key] for point in points],
        [one.low if one else float("nan") for one in found],
        [one.high if one else float("nan") for one in found],
    )


def _as_table(table: TextTable) -> Table:
    heads = [ColumnHead(header, numeric=index > 0) for index, header in enumerate(table.headers)]
    return Table(table.title, heads, table.rows)
