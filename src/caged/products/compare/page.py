"""The page of `caged compare`. Every statement is computed from the numbers of the comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEVEL
from caged.page import charts
from caged.page.definitions import INTERVAL, meaning
from caged.page.html import ColumnHead, Figure, Page, Panel, Section, Table, Term, render
from caged.page.numbers import UNDEFINED, compact, percent_change, signed
from caged.page.scatter import scatter
from caged.page.text_table import TextTable
from caged.products.compare.comparison import Comparison, TradeOff
from caged.products.compare.differences import Difference
from caged.products.compare.tables import (
    better,
    closing,
    heading,
    interval,
    seed_test_table,
    starred,
    user_test_table,
    value,
)
from caged.runs.versions import versions

_TERMS = {
    "better": "Which way is better; 'neither' where a metric only describes.",
    "difference": "Method minus baseline, over the users with a value in both.",
    "95% interval": INTERVAL,
    "change": "The difference in percent of the baseline.",
    "users": "Users with a value in both.",
    "p (t)": "Paired t-test over users: how often chance alone would give so large a mean difference.",
    "p (Wilcoxon)": "Signed-rank test over users (Pratt): the same question asked of ranks, insensitive to outliers.",
    "Holm": "The p-value before it, adjusted for the number of tests in this table.",
    "Holm (t)": "The p-value before it, adjusted for the number of tests in this table.",
    "Holm (Wilcoxon)": "The p-value before it, adjusted for the number of tests in this table.",
    "d_z": "Mean difference over the standard deviation of the users' differences.",
    "rank-biserial": "Ranks in favour less ranks against, over all ranks: 1 = everybody who changes gains.",
    "Hedges' g": "Mean difference over the pooled standard deviation of the runs, corrected for few runs.",
    "verdict": f"What the adjusted p-value supports at {LEVEL}. One run supports 'higher' and 'lower' for these users; "
    "'better' and 'worse' need several seeds.",
}
SURELY = "the 95% intervals of both differences to one other method lie beyond zero"
_DIFFERENCE_HEADERS = ("difference", "95% interval", "change", "users", "verdict")


def comparison_html(comparison: Comparison, command: str) -> str:
    """The whole page; `command` is what the reader can type to get it again."""
    return render(_page(comparison, command))


def sentences(comparison: Comparison) -> list[str]:
    """One per method: what it does to accuracy, to niche items, and whether that is more than chance."""
    return [_about(comparison, group.name) for group in comparison.methods[1:]]


# ---------------------------------------------------------------- in words


def _about(comparison: Comparison, method: str) -> str:
    of_method = {one.metric: one for one in comparison.differences if one.method == method}
    told = [one for key in _told(comparison) if (one := of_method.get(key)) is not None]
    return f"{method} against {comparison.baseline.name}: {'; '.join(map(_change, told))}."


def _told(comparison: Comparison) -> list[MetricKey]:
    """The two axes of the trade-off where they are shown, else the first two metrics."""
    axes = [comparison.trade_off.x, comparison.trade_off.y] if comparison.trade_off else []
    shown = [key for key in axes if key in comparison.metrics]
    return shown if len(shown) == len(axes) > 0 else list(comparison.metrics[:2])


def _change(one: Difference) -> str:
    """
    >>> one = Difference("ips", MetricKey("recall", 20), 0.2, 0.25, 0.05, 25.0, None, None, (0, 0), None, None)
    >>> _change(one)
    'recall@20 rises from 0.2000 to 0.2500 (+25.0%), not tested'
    """
    if one.difference == 0:
        return f"{one.metric} stays at {compact(one.value)}"
    moved = f"{'rises' if one.difference > 0 else 'falls'} from {compact(one.baseline_value)} to {compact(one.value)}"
    change = f" ({percent_change(one.relative_change)})" if math.isfinite(one.relative_change) else ""
    words = {
        "higher": "more than chance for these users",
        "lower": "more than chance for these users",
        "better": "better beyond chance over seeds",
        "worse": "worse beyond chance over seeds",
        "unclear": "which may be chance",
        "untested": "not tested",
    }
    return f"{one.metric} {moved}{change}, {words[one.verdict]}"


# ---------------------------------------------------------------- figures


def _trade_off_figure(found: TradeOff) -> Figure:
    on_front, unbeaten = ", ".join(found.front), ", ".join(found.unbeaten)
    description = f"{found.y} over {found.x}, one point per method; not surely beaten in both: {unbeaten}."

    def draw(width: int) -> str:
        return scatter(
            found.points,
            found.front,
            title=f"{found.y} over {found.x}",
            description=description,
            x_label=found.x,
            y_label=found.y,
            width=width,
            height=400 if width > 500 else 340,
        )

    caption = (
        "Up and to the right is better. The dashed line is the front of what is reached: a method below or left of it "
        f"is beaten in both by another one, though perhaps by chance. On the front (bold): {on_front}. Not "
        f"surely beaten ({SURELY}): {unbeaten}. The axes show where the points are and need not begin at zero."
    )
    columns = [ColumnHead("method", numeric=False), *(ColumnHead(key, meaning(key)) for key in (found.x, found.y))]
    columns.append(ColumnHead("on the front", numeric=False))
    columns.append(ColumnHead("surely beaten", f"Yes: {SURELY}.", numeric=False))
    rows = [
        [
            name,
            compact(x),
            compact(y),
            "yes" if name in found.front else "no",
            "no" if name in found.unbeaten else "yes",
        ]
        for name, (x, y) in found.points.items()
    ]
    return Figure([Panel(draw)], caption, Table(description, columns, rows))


def _difference_figure(comparison: Comparison) -> Figure:
    keys = _told(comparison)
    looks = {group.name: index for index, group in enumerate(comparison.methods)}

    def panel(key: str) -> Panel:
        rows = [
            charts.Row(
                one.method,
                one.difference,
                one.interval.low if one.interval else None,
                one.interval.high if one.interval else None,
                looks[one.method],
            )
            for one in comparison.differences
            if one.metric == key
        ]
        said = "; ".join(f"{row.name} {compact(row.value)}" for row in rows)

        def draw(width: int) -> str:
            return charts.row_chart(
                rows,
                title=f"Difference to {comparison.baseline.name} in {key}",
                description=f"{said}.",
                x_label=f"{key}, difference",
                width=width,
            )

        return Panel(draw, key)

    rows = [[one.method, one.metric, *_difference_cells(one)] for one in comparison.differences if one.metric in keys]
    headers = ["method", "metric", *_DIFFERENCE_HEADERS]
    table = Table(_caption(comparison, f"difference to {comparison.baseline.name}"), _columns(headers), rows)
    caption = (
        f"Bars are the differences to {comparison.baseline.name}, whiskers their 95% intervals over users where there "
        "are any. A whisker that reaches over zero leaves open which one is ahead."
    )
    return Figure([panel(key) for key in keys], caption, table)


# ---------------------------------------------------------------- the page


def _page(comparison: Comparison, command: str) -> Page:
    protocol = comparison.protocol or "not stated"
    on = f" on {comparison.dataset}" if comparison.dataset else ""
    others = [group.name for group in comparison.methods[1:]]
    return Page(
        title=f"{_joined([comparison.baseline.name, *others])}{on}",
        subtitle=f"{len(comparison.methods)} methods on the same test part, protocol {protocol}; the baseline is "
        f"{comparison.baseline.name}.",
        notice=" ".join([*(f"Warning: {one}." for one in comparison.warnings), *closing(comparison)[:1]]),
        findings=sentences(comparison),
        sections=_sections(comparison),
        glossary=[(key, meaning(key)) for key in comparison.metrics],
        command=command,
        facts=[
            *((name, version) for name, version in versions().items()),
            ("protocol", protocol),
            ("test part", comparison.baseline.entries[0].fingerprints.get("test", "none")[:16]),
        ],
    )


def _sections(comparison: Comparison) -> list[Section]:
    baseline = comparison.baseline.name
    found = []
    if comparison.trade_off is not None:
        found.append(Section("Accuracy and niche items together", figure=_trade_off_figure(comparison.trade_off)))
    found.append(Section(f"Against {baseline}", figure=_difference_figure(comparison)))
    found.append(Section("All values", table=_values(comparison)))
    for group in comparison.methods[1:]:
        found.append(Section(f"{group.name} against {baseline}", table=_differences(comparison, group.name)))
    if any(one.over_seeds for one in comparison.differences):
        found.append(Section("Tests over seeds", table=_as_is(seed_test_table(comparison)), folded="All tests"))
    if any(one.over_users for one in comparison.differences):
        found.append(Section("Tests over users", table=_as_is(user_test_table(comparison)), folded="All tests"))
    return [*found, Section("How this was compared", closing(comparison))]


def _values(comparison: Comparison) -> Table:
    """Metrics down, methods across: there are mostly fewer methods than metrics."""
    columns = [ColumnHead("metric", numeric=False), ColumnHead("better", _TERMS["better"], numeric=False)]
    columns += [
        ColumnHead(group.name, f"{len(group.entries)} runs: mean and standard deviation")
        if len(group.entries) > 1
        else ColumnHead(group.name)
        for group in comparison.methods
    ]
    rows: list[list[str | Term]] = [
        [Term(key, meaning(key)), better(key), *(_unbroken(value(group, key)) for group in comparison.methods)]
        for key in comparison.metrics
    ]
    return Table(_caption(comparison, "values"), columns, rows)


def _differences(comparison: Comparison, method: str) -> Table:
    rows: list[list[str | Term]] = [
        [Term(one.metric, meaning(one.metric)), *_difference_cells(one)]
        for one in comparison.differences
        if one.method == method
    ]
    caption = _caption(comparison, f"{method} less {comparison.baseline.name}")
    return Table(caption, _columns(["metric", *_DIFFERENCE_HEADERS]), rows)


def _difference_cells(one: Difference) -> list[str]:
    users = UNDEFINED if one.users is None else f"{one.users:,}"
    return [
        signed(one.difference),
        _unbroken(interval(one)),
        percent_change(one.relative_change),
        users,
        _unbroken(starred(one)),
    ]


def _unbroken(cell: str) -> str:
    return cell.replace(" ", "\u00a0")


def _as_is(table: TextTable) -> Table:
    return Table(f"{table.title[0].upper()}{table.title[1:]}", _columns(table.headers), table.rows)


def _columns(headers: Sequence[str]) -> list[ColumnHead]:
    words = ("method", "metric", "better")
    return [ColumnHead(name, _TERMS.get(name, ""), numeric=name not in words) for name in headers]


def _caption(comparison: Comparison, what: str) -> str:
    about = heading(comparison)
    return f"{about[0].upper()}{about[1:]}: {what}"


def _joined(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"
