"""A comparison as tables of text, the same for the terminal, Markdown, LaTeX and the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from caged.evaluation.keys import METRICS, MetricKey
from caged.evaluation.significance import LEVEL
from caged.products.compare.comparison import Comparison
from caged.products.compare.differences import Difference
from caged.products.compare.groups import Group

BETTER = {"up": "higher", "down": "lower", "zero": "near 0", "none": "-"}  # by direction of a metric
UNDEFINED = "-"


class TextTable(NamedTuple):
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(comparison: Comparison) -> list[TextTable]:
    """Values, differences, and tests where there are any."""
    found = [value_table(comparison), difference_table(comparison)]
    if any(one.over_users for one in comparison.differences):
        found.append(user_test_table(comparison))
    if any(one.over_seeds for one in comparison.differences):
        found.append(seed_test_table(comparison))
    return found


def value_table(comparison: Comparison) -> TextTable:
    several = any(len(group.entries) > 1 for group in comparison.methods)
    spread = ": mean and standard deviation over runs" if several else ""
    rows = [
        [group.name, str(len(group.entries)), *(value(group, key) for key in comparison.metrics)]
        for group in comparison.methods
    ]
    return TextTable(f"{heading(comparison)}{spread}", ["method", "runs", *comparison.metrics], rows)


def difference_table(comparison: Comparison) -> TextTable:
    headers = ["method", "metric", "better", "difference", "95% interval", "change", "users"]
    rows = [
        [
            one.method,
            one.metric,
            better(one.metric),
            signed(one.difference),
            interval(one),
            percent(one.relative_change),
            UNDEFINED if one.users is None else f"{one.users:,}",
        ]
        for one in comparison.differences
    ]
    return TextTable(f"{heading(comparison)}: difference to {comparison.baseline.name}", headers, rows)


def user_test_table(comparison: Comparison) -> TextTable:
    """Without a verdict where seeds were tested: those decide."""
    decides = any(one.over_users and not one.over_seeds for one in comparison.differences)
    headers = ["method", "metric", "p (t)", "Holm", "p (Wilcoxon)", "Holm", "d_z", "rank-biserial"]
    rows = [
        [
            one.method,
            one.metric,
            p_value(test.p_t),
            p_value(one.p_t_adjusted),
            p_value(test.p_wilcoxon),
            p_value(one.p_wilcoxon_adjusted),
            signed(test.d_z, 3),
            signed(test.rank_biserial, 3),
            *([UNDEFINED if one.over_seeds else starred(one)] if decides else []),
        ]
        for one in comparison.differences
        if (test := one.over_users) is not None
    ]
    title = f"paired tests over users against {comparison.baseline.name}"
    marked = f"; * = t below {LEVEL} after Holm's correction" if decides else ""
    return TextTable(f"{heading(comparison)}: {title}{marked}", [*headers, *(["verdict"] if decides else [])], rows)


def seed_test_table(comparison: Comparison) -> TextTable:
    name = "Welch's t" if comparison.seed_test == "welch" else "paired t by split"
    headers = ["method", "metric", "t", "df", "p", "Holm", "Hedges' g", "verdict"]
    rows = [
        [
            one.method,
            one.metric,
            signed(test.t, 3),
            number(test.df, 1),
            p_value(test.p),
            p_value(one.p_seeds_adjusted),
            signed(test.hedges_g, 3),
            starred(one),
        ]
        for one in comparison.differences
        if (test := one.over_seeds) is not None
    ]
    title = f"tests over seeds ({name}) against {comparison.baseline.name}; * = below {LEVEL} after Holm's correction"
    return TextTable(f"{heading(comparison)}: {title}", headers, rows)


def heading(comparison: Comparison) -> str:
    """What the numbers are about; the protocol goes wherever they go."""
    unstated = [group.name for group in comparison.methods if any(entry.protocol is None for entry in group.entries)]
    apart = f" ({', '.join(unstated)}: not stated)" if comparison.protocol and unstated else ""
    where = f", {comparison.dataset}" if comparison.dataset else ""
    return f"protocol {comparison.protocol or 'not stated'}{apart}{where}, test part"


def closing(comparison: Comparison) -> list[str]:
    """Sentences below the tables."""
    said = [f"{note[0].upper()}{note[1:]}." for note in comparison.notes]
    if comparison.trade_off is not None:
        found = comparison.trade_off
        said.append(f"Not beaten in both {found.x} and {found.y}: {', '.join(found.front)}.")
    return said


def as_text(comparison: Comparison) -> str:
    parts = [f"warning: {warning}" for warning in comparison.warnings]
    return "\n\n".join([*parts, *map(_plain, tables(comparison)), "\n".join(closing(comparison))])


# -------------------------------------------------------------------- cells


def better(metric: str) -> str:
    return BETTER[METRICS[MetricKey.parse(metric).name].direction]


def number(value: float, digits: int = 4) -> str:
    """Fewer decimals for larger values.

    >>> number(0.12345), number(56.789), number(math.nan), number(1234.56)
    ('0.1235', '56.79', '-', '1,234.6')
    """
    if not math.isfinite(value):
        return UNDEFINED if math.isnan(value) else "inf"
    places = digits if abs(value) < 10 else 2 if abs(value) < 1000 else 1
    return f"{value:,.{min(places, digits)}f}"


def signed(value: float, digits: int = 4) -> str:
    """
    >>> signed(0.01), signed(-12.5), signed(0.0), signed(math.nan)
    ('+0.0100', '-12.50', '0.0000', '-')
    """
    if math.isnan(value):
        return UNDEFINED
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{number(abs(value), digits)}"


def percent(value: float) -> str:
    """
    >>> percent(-3.14159), percent(18015.2), percent(-0.001), percent(math.nan)
    ('-3.1%', '+18,015%', '0.0%', '-')
    """
    if not math.isfinite(value):
        return UNDEFINED
    if abs(value) < 0.05:
        return "0.0%"
    return f"{value:+,.0f}%" if abs(value) >= 1000 else f"{value:+.1f}%"


def p_value(p: float) -> str:
    """
    >>> p_value(0.0321), p_value(1e-9), p_value(math.nan)
    ('0.0321', '<0.0001', '-')
    """
    if math.isnan(p):
        return UNDEFINED
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def interval(one: Difference) -> str:
    if one.interval is None:
        return UNDEFINED
    return f"{signed(one.interval.low)} to {signed(one.interval.high)}"


def starred(one: Difference) -> str:
    return one.verdict + ("" if one.verdict in ("unclear", "untested") else " *")


def value(group: Group, key: str) -> str:
    spread = group.spread(key)
    return number(group.mean(key)) + ("" if math.isnan(spread) else f" ± {number(spread)}")


def _plain(table: TextTable) -> str:
    widths = [max(map(len, column)) for column in zip(table.headers, *table.rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (table.headers, *table.rows)]
    return "\n".join([table.title, *lines])
