"""The page of `caged compare`. Every statement is computed from the numbers of the comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEVEL
from caged.models import METHODS
from caged.page import charts
from caged.page.definitions import CHANCE, INTERVAL, WHY_FAIREST, glossary, meaning
from caged.page.html import ColumnHead, Figure, Page, Panel, Section, Table, Term, render
from caged.page.looks import looks_of
from caged.page.numbers import UNDEFINED, percent
from caged.page.scatter import Point, scatter
from caged.page.text_table import TextTable
from caged.page.units import in_table, in_words, of_difference, on_axis_of_difference
from caged.products.compare.comparison import Comparison, TradeOff
from caged.products.compare.differences import Difference
from caged.products.compare.groups import Group
from caged.products.compare.tables import (
    LEAST_BASE,
    better,
    change,
    closing,
    heading,
    seed_test_table,
    shown_table,
    starred,
    user_test_table,
)
from caged.products.compare.words import headline, joined, sentences, titles_of, told
from caged.runs.versions import versions

_TERMS = {
    "better": "Which way is better; 'neither' where a metric only describes.",
    "difference": "Method minus baseline, over the users with a value in both. Differences of percentages are in "
    "percentage points (pp).",
    "95% interval": INTERVAL,
    "change": f"The difference in percent of the baseline; not given where that is below {percent(LEAST_BASE)}.",
    "users": "Users with a value in both.",
    "p (t)": "Paired t-test over users: how often chance alone would give a mean difference this large.",
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
_NAMED_IN_TITLE = 3
_DIFFERENCE_HEADERS = ("difference", "95% interval", "change", "users", "verdict")


def comparison_html(comparison: Comparison, command: str) -> str:
    """The whole page; `command` is what the reader can type to get it again."""
    return render(_page(comparison, command))


# ---------------------------------------------------------------- figures


def _trade_off_figure(comparison: Comparison, found: TradeOff) -> Figure:
    titles, looks = titles_of(comparison), _looks(comparison)
    on_front, unbeaten = (", ".join(titles[name] for name in names) for names in (found.front, found.unbeaten))
    description = f"{found.y} over {found.x}, one point per method; not surely beaten in both: {unbeaten}."
    points = {
        titles[name]: Point(x, y, *(None if one is None else one[:2] for one in found.intervals[name]))
        for name, (x, y) in found.points.items()
    }

    def draw(width: int) -> str:
        return scatter(
            points,
            [titles[name] for name in found.front],
            title=f"{found.y} over {found.x}",
            description=description,
            x_label=found.x,
            y_label=found.y,
            written=in_words(found.x),
            looks={titles[name]: look for name, look in looks.items()},
            width=width,
            height=400 if width > 500 else 340,
        )

    caption = (
        "Higher and further right is better. The dashed line is the front of what is reached: a method below it or to "
        f"the left is beaten in both by another one, though perhaps by chance. On the front (bold): {on_front}. Not "
        f"surely beaten ({SURELY}): {unbeaten}. The thin lines are 95% intervals over users. The axes show where the "
        "points are and need not begin at zero; a method far to the left stands at the edge, with its value."
    )
    axes = [ColumnHead(key, meaning(key, comparison.share)) for key in (found.x, found.y)]
    columns = [ColumnHead("method", numeric=False), *axes]
    columns.append(ColumnHead("on the front", numeric=False))
    columns.append(ColumnHead("surely beaten", f"Yes: {SURELY}.", numeric=False))
    rows = [
        [
            titles[name],
            in_table(found.x)(x),
            in_table(found.y)(y),
            "yes" if name in found.front else "no",
            "no" if name in found.unbeaten else "yes",
        ]
        for name, (x, y) in found.points.items()
    ]
    return Figure([Panel(draw)], caption, Table(description, columns, rows))


def _looks(comparison: Comparison) -> dict[str, int]:
    looks = looks_of([group.method for group in comparison.methods])
    return {group.name: look for group, look in zip(comparison.methods, looks, strict=True)}


def _difference_figure(comparison: Comparison) -> Figure:
    keys, titles, looks = told(comparison), titles_of(comparison), _looks(comparison)
    baseline = comparison.baseline.title

    def panel(key: MetricKey) -> Panel:
        written = of_difference(key)
        rows = [
            charts.Row(
                titles[one.method],
                one.difference,
                one.interval.low if one.interval else None,
                one.interval.high if one.interval else None,
                looks[one.method],
            )
            for one in comparison.differences
            if one.metric == key
        ]
        said = "; ".join(f"{row.name} {written(row.value)}" for row in rows)
        tick_format, unit = on_axis_of_difference(key)

        def draw(width: int) -> str:
            return charts.row_chart(
                rows,
                title=f"Difference to {baseline} in {key}",
                description=f"{said}.",
                x_label=unit,
                x_format=written,
                tick_format=tick_format,
                width=width,
            )

        return Panel(draw, Term(f"{key}, difference", meaning(key, comparison.share)))

    rows = [
        [titles[one.method], one.metric, *_difference_cells(one)]
        for one in comparison.differences
        if one.metric in keys
    ]
    headers = ["method", "metric", *_DIFFERENCE_HEADERS]
    table = Table(_caption(comparison, f"difference to {baseline}"), _columns(headers), rows)
    caption = (
        f"Bars are differences to {baseline}, those of percentages in percentage points (pp). The thin lines are 95% "
        "intervals over users, where there are any; one that crosses zero leaves open which method is ahead."
    )
    return Figure([panel(key) for key in keys], caption, table)


# ---------------------------------------------------------------- the page


def _page(comparison: Comparison, command: str) -> Page:
    protocol = comparison.protocol or "not stated"
    on = f" on {comparison.dataset}" if comparison.dataset else ""
    return Page(
        title=f"{_who(comparison)}{on}",
        subtitle=f"{len(comparison.methods)} methods on the same test part, protocol {protocol}. Differences are to "
        f"{comparison.baseline.title}, the baseline.",
        headline=headline(comparison),
        notice=" ".join(f"Warning: {one}." for one in comparison.warnings),
        findings=(),
        sections=_sections(comparison),
        glossary=glossary(comparison.metrics, comparison.share),
        command=command,
        facts=[
            *((name, version) for name, version in versions().items()),
            ("protocol", protocol),
            ("test part", comparison.baseline.entries[0].fingerprints.get("test", "none")[:16]),
        ],
    )


def _who(comparison: Comparison) -> str:
    titles = list(titles_of(comparison).values())
    return joined(titles) if len(titles) <= _NAMED_IN_TITLE else f"{len(titles)} methods compared"


def _sections(comparison: Comparison) -> list[Section]:
    baseline = comparison.baseline.title
    found = []
    if comparison.trade_off is not None:
        figure = _trade_off_figure(comparison, comparison.trade_off)
        found.append(Section("Accuracy and niche items together", figure=figure))
    against = Section(f"Against {baseline}", figure=_difference_figure(comparison), bullets=sentences(comparison))
    found.append(against)
    if comparison.floors:
        found.append(Section(CHANCE, [WHY_FAIREST], table=_tests(comparison, shown_table(comparison))))
    found.append(Section("All values", table=_values(comparison)))
    for group in comparison.methods[1:]:
        found.append(Section(f"{group.title} against {baseline}", table=_differences(comparison, group)))
    known = {group.title: METHODS[group.method].plain for group in comparison.methods if group.method in METHODS}
    if any(known.values()):
        words = [f"{title}: {plain}" for title, plain in known.items() if plain]
        found.append(Section("What the methods do", bullets=words))
    if any(one.over_seeds for one in comparison.differences):
        found.append(
            Section("Tests over seeds", table=_tests(comparison, seed_test_table(comparison)), folded="All tests")
        )
    if any(one.over_users for one in comparison.differences):
        found.append(
            Section("Tests over users", table=_tests(comparison, user_test_table(comparison)), folded="All tests")
        )
    return [*found, *_group_sections(comparison), Section("How this was compared", closing(comparison))]


def _group_sections(comparison: Comparison) -> list[Section]:
    """A table for each family of groups that somebody chose."""
    families: dict[tuple[str, bool], list[MetricKey]] = {}
    for key in comparison.by_groups:
        if key.chosen is not None:
            families.setdefault((key.chosen.family, key.chosen.of_users), []).append(key)
    return [
        Section(
            f"{'Users' if of_users else 'Items'} by {family}",
            ["Values without tests. Differences and tests are shown for the metrics that --metrics names."],
            table=_values(comparison, keys, f"values by {family}"),
            folded=f"All {len(keys)} values",
            number=number,
        )
        for number, ((family, of_users), keys) in enumerate(families.items(), start=1)
    ]


def _values(comparison: Comparison, keys: Sequence[MetricKey] | None = None, what: str = "values") -> Table:
    """Metrics down, methods across: there are mostly fewer methods than metrics."""
    columns = [ColumnHead("metric", numeric=False), ColumnHead("better", _TERMS["better"], numeric=False)]
    columns += [
        ColumnHead(group.title, f"{len(group.entries)} runs: mean and standard deviation")
        if len(group.entries) > 1
        else ColumnHead(group.title)
        for group in comparison.methods
    ]
    rows: list[list[str | Term]] = [
        [
            Term(key, meaning(key, comparison.share)),
            better(key),
            *(_unbroken(_value(group, key)) for group in comparison.methods),
        ]
        for key in (comparison.metrics if keys is None else keys)
    ]
    return Table(_caption(comparison, what), columns, rows)


def _value(group: Group, key: MetricKey) -> str:
    spread, written = group.spread(key), in_table(key)
    return written(group.mean(key)) + ("" if math.isnan(spread) else f" ± {written(spread).lstrip('+')}")


def _differences(comparison: Comparison, group: Group) -> Table:
    rows: list[list[str | Term]] = [
        [Term(one.metric, meaning(one.metric, comparison.share)), *_difference_cells(one)]
        for one in comparison.differences
        if one.method == group.name
    ]
    caption = _caption(comparison, f"{group.title} minus {comparison.baseline.title}")
    return Table(caption, _columns(["metric", *_DIFFERENCE_HEADERS]), rows)


def _difference_cells(one: Difference) -> list[str]:
    users = UNDEFINED if one.users is None else f"{one.users:,}"
    written = of_difference(one.metric)
    between = UNDEFINED if one.interval is None else f"{written(one.interval.low)} to {written(one.interval.high)}"
    cells = [written(one.difference), between, change(one), users, starred(one)]
    return [_unbroken(cell) for cell in cells]


def _unbroken(cell: str) -> str:
    return cell.replace(" ", "\u00a0")


def _tests(comparison: Comparison, table: TextTable) -> Table:
    """As in the terminal, but for the names of the methods."""
    titles = titles_of(comparison)
    rows = [[titles.get(method, method), *cells] for method, *cells in table.rows]
    return Table(f"{table.title[0].upper()}{table.title[1:]}", _columns(table.headers), rows)


def _columns(headers: Sequence[str]) -> list[ColumnHead]:
    words = ("method", "metric", "better", "ranked by")
    return [ColumnHead(name, _TERMS.get(name, ""), numeric=name not in words) for name in headers]


def _caption(comparison: Comparison, what: str) -> str:
    about = heading(comparison)
    return f"{about[0].upper()}{about[1:]}: {what}"
