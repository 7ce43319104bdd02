"""The figures of an audit's page: from an `AuditResult` to charts with their numbers in tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import BUCKETS, ITEM_GROUPS, USER_GROUPS
from caged.evaluation.metrics import MetricKey
from caged.page import charts
from caged.page.charts import Series
from caged.page.definitions import GROUP_NAMES, meaning, part_of_items
from caged.page.html import ColumnHead, Figure, Panel, Table, Term
from caged.page.numbers import Format, percent
from caged.page.svg import CATALOGUE, NICHE, POPULAR, REFERENCE
from caged.page.svg import LISTS as LIST_LOOK
from caged.page.svg import WANTED as WANTED_LOOK
from caged.page.tenths import TENTHS, tenths_panel
from caged.page.units import in_table, in_words, share
from caged.products.audit.evidence import SHORT
from caged.products.audit.result import AuditResult

HISTORY, LISTS, WANTED = "Training interactions", "List places", "Wanted in the test"
_LOOKS = {HISTORY: REFERENCE, LISTS: LIST_LOOK, WANTED: WANTED_LOOK}
_LORENZ_STEPS = 50
_USER_NAMES = {group: GROUP_NAMES[group] for group in USER_GROUPS}
ITEM_NAMES = {None: "All items", "popular": "Popular", "niche": "Niche"}
_ITEM_LOOKS = {None: CATALOGUE, "popular": POPULAR, "niche": NICHE}


def main_k(audit: AuditResult) -> int:
    """The cut-off that charts and sentences are about: the first that was asked for."""
    return audit.ks[0]


def with_interval(audit: AuditResult, key: MetricKey) -> str:
    """`12.34% (11.90% to 12.71%)`; without the brackets where there is no interval."""
    value, written = audit.metrics.get(key, math.nan), in_table(key)
    between = interval_text(audit, key, written).replace(" ", "\N{NO-BREAK SPACE}")  # a line breaks before it
    return written(value) + (f" ({between})" if between else "")


def interval_text(audit: AuditResult, key: str, written: Format) -> str:
    interval = audit.intervals.get(key)
    if interval is None or not math.isfinite(audit.metrics.get(key, math.nan)):
        return ""
    return f"{written(interval.low)} to {written(interval.high)}"


# ---------------------------------------------------------------- exposure by tenth of the items


def name_of(audit: AuditResult, row: int) -> str:
    """The title of an item, or its identifier."""
    name = str(audit.exposure.item_ids.values[row].as_py())
    return audit.titles.get(name, name)


def counted(audit: AuditResult) -> dict[str, Array]:
    """Per item: training interactions, list places, and how often it is relevant where a test was given."""
    exposure = audit.exposure
    counts = {HISTORY: exposure.degrees, LISTS: exposure.shown[main_k(audit)]}
    return counts if exposure.relevant is None else {**counts, WANTED: exposure.relevant}


def bucket_shares(audit: AuditResult, counts: Array) -> list[float]:
    """The share of each tenth of the items, most popular first; NaN where there is nothing to share."""
    mass = np.bincount(audit.exposure.bucket, weights=counts, minlength=BUCKETS)
    total = mass.sum()
    return [float(share) for share in mass / total] if total else [math.nan] * BUCKETS


def exposure_figure(audit: AuditResult) -> Figure:
    series = [Series(name, bucket_shares(audit, counts), look=_LOOKS[name]) for name, counts in counted(audit).items()]
    said = "; ".join(f"{one.name}: {percent(one.values[0])}" for one in series)
    description = f"Share that goes to the most popular tenth of the items. {said}."
    panel = tenths_panel(
        series,
        title="Who gets the places in the lists, by popularity of the items",
        description=description,
        y_label="share",
    )
    meanings = {
        HISTORY: "This tenth's share of all training interactions.",
        LISTS: f"Share of the first {main_k(audit)} places of all lists that show items of this tenth.",
        WANTED: "This tenth's share of what people wanted in the test.",
    }
    columns = [
        ColumnHead("tenth of the items", numeric=False),
        *(ColumnHead(one.name, meanings[one.name]) for one in series),
    ]
    rows = [[f"tenth {tenth}", *(share(one.values[place]) for one in series)] for place, tenth in enumerate(TENTHS)]
    caption = (
        "Items with training interactions are sorted by them and cut into ten equal groups; items without any count in "
        "the last. Where list places rise above training interactions, the lists give a group more attention than it "
        "already had. Lists rarely repeat what a user already has, which alone moves some places away from the most "
        "popular tenth."
    )
    return Figure([panel], caption, Table(description, columns, rows))


# ---------------------------------------------------------------- Lorenz curves


def lorenz(counts: Array, steps: int = _LORENZ_STEPS) -> list[float]:
    """Share of all counts that the least counted p of the items hold, for p = 0, 1/steps, ..., 1.

    >>> lorenz(np.array([0, 1, 3, 0]), 4)
    [0.0, 0.0, 0.0, 0.25, 1.0]
    """
    total = counts.sum()
    if not total:
        return [math.nan] * (steps + 1)
    through = np.concatenate(([0.0], np.cumsum(np.sort(counts)) / total))
    places = np.arange(steps + 1) / steps * len(counts)
    return [float(value) for value in np.interp(places, np.arange(len(counts) + 1), through)]


def lorenz_figure(audit: AuditResult) -> Figure:
    shares = [step / _LORENZ_STEPS for step in range(_LORENZ_STEPS + 1)]
    series = [Series("All items alike", shares, look=CATALOGUE)]
    series += [Series(name, lorenz(counts), look=_LOOKS[name]) for name, counts in counted(audit).items()]
    said = "; ".join(f"{one.name}: {percent(1 - one.values[_LORENZ_STEPS * 4 // 5])}" for one in series[1:])
    description = f"Share held by the top fifth of the items, each curve by its own order. {said}."

    def draw(width: int) -> str:
        return charts.line_chart(
            shares,
            series,
            title="How unequally training interactions and list places are spread over the catalogue",
            description=description,
            x_label="share of the catalogue, least served items first",
            y_label="their share of the interactions or places",
            x_names=[f"lowest {percent(lowest)} of the items" for lowest in shares],
            x_ticks=shares[::5],
            x_format=percent,
            y_format=percent,
            width=width,
            height=440 if width > 500 else 360,
            markers=False,
        )

    columns = [ColumnHead("lowest share of the items", numeric=False), *(ColumnHead(one.name) for one in series)]
    rows = [
        [percent(lowest), *(share(one.values[place]) for one in series)]
        for place, lowest in enumerate(shares)
        if place % 5 == 0
    ]
    caption = (
        "Lorenz curves. On the straight line every item of the catalogue would get the same; the further a curve sags "
        "below it, the fewer items hold most of the places. A curve that stays on the ground shows the share of the "
        "catalogue that gets nothing at all."
    )
    return Figure([Panel(draw)], caption, Table(description, columns, rows))


# ---------------------------------------------------------------- values with intervals


def group_figure(audit: AuditResult) -> Figure:
    """Popularity lift by user group, and recall beside it where there is a test."""
    k = main_k(audit)
    lift, recall = MetricKey("popularity_lift", k), MetricKey("recall", k)
    panels = [rows_panel(audit, lift, f"Popularity lift@{k}", _USER_NAMES)]
    if has_test(audit):
        panels.append(rows_panel(audit, recall, f"Recall@{k}", _USER_NAMES))
    rows, columns = user_group_columns(audit, "user group", _USER_NAMES)
    beside = (
        " Recall is how much of what they wanted the lists find."
        if has_test(audit)
        else " With a test part, recall would be shown too."
    )
    caption = (
        "Niche taste is the fifth of the users whose own history holds the fewest popular items, blockbuster taste the "
        "fifth with the most. A lift of +100% means that the list is twice as popular as the user's own history; 0 "
        f"means as popular.{beside} {whiskers(audit)}"
    )
    return Figure(panels, caption, Table("Per user group, with 95% intervals", columns, rows))


def user_group_columns(
    audit: AuditResult, heading: str, groups: Mapping[str, str]
) -> tuple[list[list[str]], list[ColumnHead]]:
    """Rows and columns of the table of some groups of users, by key and name."""
    k = main_k(audit)
    lift = MetricKey("popularity_lift", k)
    shown = [lift, *(MetricKey(name, k) for name in ("delta_gap", "tail_share", "upd"))]
    shown += [MetricKey(name, k) for name in ("recall", "ndcg") if has_test(audit)]
    columns = [ColumnHead(heading, numeric=False), ColumnHead("users", "Users with a value of the first metric.")]
    columns += [ColumnHead(key, meaning(key, audit.share)) for key in shown]
    rows = [
        [name, f"{audit.users.get(lift.of(group), 0):,}", *(with_interval(audit, key.of(group)) for key in shown)]
        for group, name in groups.items()
    ]
    return rows, columns


def accuracy_figure(audit: AuditResult) -> Figure:
    k = main_k(audit)
    recall, ndcg = MetricKey("recall", k), MetricKey("ndcg", k)
    panels = [
        rows_panel(audit, recall, f"Recall@{k}", ITEM_NAMES),
        rows_panel(audit, ndcg, f"NDCG@{k}", ITEM_NAMES),
    ]
    columns = [
        ColumnHead("relevant items", numeric=False),
        ColumnHead("users", "Users who wanted at least one such item."),
    ]
    columns += [ColumnHead(key, meaning(key, audit.share)) for key in (recall, ndcg)]
    rows = [
        [title, f"{audit.users.get(recall.of(group), 0):,}"]
        + [with_interval(audit, key.of(group)) for key in (recall, ndcg)]
        for group, title in ITEM_NAMES.items()
    ]
    caption = (
        "How much of what users wanted in the test their lists hold: counting everything, only popular items (the "
        f"most popular {part_of_items(audit.share)}) or only niche items (all others). {whiskers(audit)}"
    )
    return Figure(
        panels, caption, Table("Accuracy by popularity of the wanted items, with 95% intervals", columns, rows)
    )


def tests_figure(tests: dict[str, AuditResult]) -> Figure:
    """The same lists against several tests: recall of all, popular and niche items."""
    names = list(tests)
    first = tests[names[0]]
    key, ndcg = MetricKey("recall", main_k(first)), MetricKey("ndcg", main_k(first))
    series = []
    for group, title in ITEM_NAMES.items():
        values = [test.metrics.get(key.of(group), math.nan) for test in tests.values()]
        bounds = [test.intervals.get(key.of(group)) for test in tests.values()]
        lower = [bound.low if bound else math.nan for bound in bounds]
        upper = [bound.high if bound else math.nan for bound in bounds]
        series.append(Series(title, values, lower, upper, look=_ITEM_LOOKS[group]))
    said = "; ".join(f"{name}: {percent(value)}" for name, value in zip(names, series[0].values, strict=True))
    description = f"Recall over all items. {said}."

    def draw(width: int) -> str:
        return charts.bar_chart(
            names,
            series,
            title="The same lists against several tests",
            description=description,
            y_label=key,
            y_format=percent,
            width=width,
            height=320,
        )

    shown = {str(key): key, **{group: key.of(group) for group in ITEM_GROUPS}, str(ndcg): ndcg}
    columns = [
        ColumnHead("test", numeric=False),
        ColumnHead("what it is", "Where this test comes from.", numeric=False),
        ColumnHead("users", "Users with a relevant item in this test."),
        *(ColumnHead(name, meaning(one, first.share)) for name, one in shown.items()),
    ]
    rows = [
        [
            name,
            SHORT[test.evidence],
            f"{test.users.get(key, 0):,}",
            *(with_interval(test, one) for one in shown.values()),
        ]
        for name, test in tests.items()
    ]
    caption = (
        "Compare bars within one test only: the tests differ in how much there is to find. What matters is the gap "
        f"between popular and niche items in each. {whiskers(first)}"
    )
    return Figure(
        [Panel(draw)], caption, Table("The same lists against several tests, with 95% intervals", columns, rows)
    )


# ---------------------------------------------------------------- the long tail


def reach_figure(audit: AuditResult) -> Figure:
    """How many items of each tenth are shown to anybody at all."""
    exposure = audit.exposure
    shown = exposure.shown[main_k(audit)] > 0
    items = np.bincount(exposure.bucket, minlength=BUCKETS)
    reached = np.bincount(exposure.bucket[shown], minlength=BUCKETS)
    shares = [float(a / b) if b else math.nan for a, b in zip(reached, items, strict=True)]
    description = (
        f"Share of the items that are in at least one list: {percent(shares[0])} of the most popular tenth, "
        f"{percent(shares[-1])} of the least popular."
    )

    panel = tenths_panel(
        [Series("Shown to at least one user", shares, look=LIST_LOOK)],
        title="Which items are reached at all, by popularity",
        description=description,
        height=300,
        narrow_height=300,
    )
    columns = [
        ColumnHead("tenth of the items", numeric=False),
        ColumnHead("items"),
        ColumnHead("reached", f"Items that are in at least one list of {main_k(audit)}."),
        ColumnHead("not reached", "Items that no list shows."),
    ]
    counts: list[list[int]] = [[int(a), int(b), int(a - b)] for a, b in zip(items, reached, strict=True)]
    if exposure.relevant is not None:
        missed = np.bincount(exposure.bucket[~shown & (exposure.relevant > 0)], minlength=BUCKETS)
        columns.append(
            ColumnHead("wanted, not reached", "Items that a user wanted in the test and that no list shows.")
        )
        counts = [[*row, int(count)] for row, count in zip(counts, missed, strict=True)]
    rows = [[f"tenth {tenth}", *(f"{count:,}" for count in row)] for tenth, row in zip(TENTHS, counts, strict=True)]
    caption = (
        f"An item is reached when it is among the first {main_k(audit)} places of at least one list. Items without "
        "training interactions are in the last tenth, which can therefore be larger than the others."
    )
    return Figure([panel], caption, Table(description, columns, rows))


# ---------------------------------------------------------------- parts


def has_test(audit: AuditResult) -> bool:
    return audit.exposure.relevant is not None


def rows_panel(
    audit: AuditResult, key: MetricKey, heading: str, groups: Mapping[str, str] | Mapping[str | None, str]
) -> Panel:
    """One bar per group, under its name."""
    rows, written = [], in_words(key)
    for group, name in groups.items():
        interval = audit.intervals.get(key.of(group))
        low, high = interval[:2] if interval else (None, None)
        look = _ITEM_LOOKS.get(group, LIST_LOOK)
        rows.append(charts.Row(name, audit.metrics.get(key.of(group), math.nan), low, high, look))
    said = "; ".join(f"{row.name}: {written(row.value)}" for row in rows)

    def draw(width: int) -> str:
        return charts.row_chart(rows, title=heading, description=f"{said}.", x_format=written, width=width)

    return Panel(draw, Term(heading, meaning(key, audit.share)))


def whiskers(audit: AuditResult) -> str:
    if not audit.intervals:
        return "No intervals were computed."
    return "The thin lines are 95% intervals over the choice of users; they say nothing about another training run."


def top_rows(counts: Array, chosen: Array, limit: int) -> Sequence[int]:
    """Rows of the chosen items with the largest counts, ties by row number."""
    rows = np.flatnonzero(chosen)
    return [int(row) for row in rows[np.argsort(-counts[rows], kind="stable")][:limit]]
