"""How values of a metric are written: shares as percentages, and with the same digits wherever a table shows them."""

from __future__ import annotations

import math

from caged.evaluation.metrics import MetricKey
from caged.page.numbers import UNDEFINED, Format, alike, decimal, number, percent, signed, signed_percent

_PERCENT_DIGITS = 2


def in_words(key: MetricKey) -> Format:
    """For sentences, tiles and charts: few digits."""
    return {"share": percent, "change": signed_percent}.get(key.metric.unit, decimal)


def together(key: MetricKey, *values: float) -> list[str]:
    """A value and the ends of its interval in words, with the same digits.

    >>> together(MetricKey("recall", 20), 0.2, 0.195, 0.205), together(MetricKey("popularity_lift", 20), 1.42, 1.391)
    (['20.0%', '19.5%', '20.5%'], ['+142.0%', '+139.1%'])
    """
    return alike([in_words(key)(value) for value in values])


def in_table(key: MetricKey) -> Format:
    """For cells: the digits depend on the metric alone, not on the value."""
    return {"share": share, "change": _change, "index": number}.get(key.metric.unit, _number)


def of_difference(key: MetricKey) -> Format:
    """For differences: those of percentages are in percentage points (pp).

    >>> of_difference(MetricKey("recall", 20))(0.0123), of_difference(MetricKey("gini", 20))(-0.05)
    ('+1.23 pp', '-0.0500')
    """
    return {"share": _points, "change": _points, "index": signed}.get(key.metric.unit, _signed_number)


def on_axis_of_difference(key: MetricKey) -> tuple[Format, str]:
    """For the axis below differences: the numbers, and what they are."""
    if key.metric.unit in ("share", "change"):
        return (lambda value: decimal(100 * value)), "percentage points"
    return decimal, ""


def share(value: float) -> str:
    """A share as a cell.

    >>> share(0.12345), share(0.2), share(0.00001), share(0.0)
    ('12.35%', '20.00%', '<0.01%', '0.00%')
    """
    if not math.isfinite(value):
        return UNDEFINED
    least = 10**-_PERCENT_DIGITS
    return f"<{least}%" if 0 < 100 * value < least / 2 else f"{100 * value:.{_PERCENT_DIGITS}f}%"


def _change(value: float) -> str:
    return f"{100 * value:+,.1f}%" if math.isfinite(value) else UNDEFINED


def _number(value: float) -> str:
    return f"{value:,.2f}" if math.isfinite(value) else UNDEFINED


def _points(value: float) -> str:
    return f"{signed(100 * value, _PERCENT_DIGITS)} pp" if math.isfinite(value) else UNDEFINED


def _signed_number(value: float) -> str:
    return signed(value, 2)
