"""Values with their intervals, and how far the lists lean towards popular items: what the verdict is made of."""

from __future__ import annotations

import math
from typing import NamedTuple

from caged.data.ids import Array
from caged.evaluation.metrics import MetricKey
from caged.page.units import together
from caged.products.audit.charts import main_k
from caged.products.audit.result import AuditResult

NOTEWORTHY_SHARE = 0.02  # of the list places: two in a hundred


class Range(NamedTuple):
    """A value, and the interval it may lie in; without one the interval is the value."""

    value: float
    low: float
    high: float
    known: bool  # whether there is an interval

    def complement(self) -> Range:
        return Range(1 - self.value, 1 - self.high, 1 - self.low, self.known)

    def written(self) -> str:
        value, low, high = together(MetricKey("tail_share", 1), *self[:3])
        return f"{value} (95% interval {low} to {high})" if self.known else f"{value} (no interval)"

    def times(self) -> str:
        """A lift in words: how many times as popular."""
        between = f"{1 + self.low:.2f} to {1 + self.high:.2f}" if self.known else "no interval"
        return f"{1 + self.value:.2f} times ({between})"

    def side(self, reference: float, noteworthy: float) -> int:
        """1 above the reference by more than `noteworthy`, -1 below it, 0 if neither is certain."""
        if self.low > reference + noteworthy:
            return 1
        return -1 if self.high < reference - noteworthy else 0


class LeanOfLists(NamedTuple):
    """The share of the places that popular items fill, beside the share that they should have.

    What people wanted is the fairer measure: like the lists, a test leaves out what a user had before. Without a test
    the history has to do.
    """

    places: Range
    history: float  # share of the training interactions
    wanted: float  # share of the test, NaN without one

    @property
    def due(self) -> float:
        return self.history if math.isnan(self.wanted) else self.wanted

    @property
    def side(self) -> int:
        return self.places.side(self.due, NOTEWORTHY_SHARE)

    @property
    def measure(self) -> str:
        return "the training interactions" if math.isnan(self.wanted) else "what people wanted in the test"


def lean_of_lists(audit: AuditResult) -> LeanOfLists | None:
    """None where popular items cannot be told from niche ones, or nothing is listed."""
    tail = range_of(audit, MetricKey("tail_share", main_k(audit)))
    if tail is None or not audit.exposure.popular.any():
        return None
    relevant = audit.exposure.relevant
    wanted = math.nan if relevant is None else popular_share(audit, relevant)
    return LeanOfLists(tail.complement(), popular_share(audit, audit.exposure.degrees), wanted)


def range_of(audit: AuditResult, key: str) -> Range | None:
    """None where the value is undefined."""
    value = audit.metrics.get(key, math.nan)
    if not math.isfinite(value):
        return None
    interval = audit.intervals.get(key)
    return Range(value, *(interval[:2] if interval else (value, value)), interval is not None)


def popular_share(audit: AuditResult, counts: Array) -> float:
    """The share of the counts that falls on popular items."""
    total = counts.sum()
    return float(counts[audit.exposure.popular].sum() / total) if total else math.nan
