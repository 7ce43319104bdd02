"""The verdict of an audit: three sentences whose wording follows from the thresholds below and from the intervals.

A difference is only called one if the interval leaves no room for less than the threshold; where there is no interval
the value itself decides, and the sentence says that there is none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from caged.data.ids import Array
from caged.data.popularity import ITEM_GROUPS
from caged.evaluation.metrics import MetricKey
from caged.page.definitions import meaning
from caged.page.html import Finding
from caged.page.numbers import percent
from caged.products.audit.charts import has_test, main_k
from caged.products.audit.evidence import CAUTIONS, TEXTS
from caged.products.audit.result import AuditResult

NOTEWORTHY_SHARE = 0.02  # of the list places: two in a hundred
NOTEWORTHY_LIFT = 0.10  # a list that is 10% more popular than the history
NOTEWORTHY_RATIO = 0.80  # a recall below four fifths of the other one


class Range(NamedTuple):
    """A value, and the interval it may lie in; without one the interval is the value."""

    value: float
    low: float
    high: float
    known: bool  # whether there is an interval

    def complement(self) -> Range:
        return Range(1 - self.value, 1 - self.high, 1 - self.low, self.known)

    def written(self) -> str:
        between = f"95% interval {percent(self.low)} to {percent(self.high)}" if self.known else "no interval"
        return f"{percent(self.value)} ({between})"

    def times(self) -> str:
        """A lift in words: how many times as popular."""
        between = f"{1 + self.low:.2f} to {1 + self.high:.2f}" if self.known else "no interval"
        return f"{1 + self.value:.2f} times ({between})"


def verdict(audit: AuditResult) -> list[Finding]:
    """Three sentences: what the lists do to items, to whom they do it, and what is known about its worth."""
    return [_about_items(audit), _about_users(audit), _about_worth(audit)]


def evidence_text(audit: AuditResult) -> str:
    return TEXTS[audit.evidence if has_test(audit) else "none"]


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


# ---------------------------------------------------------------- the three sentences


def _about_items(audit: AuditResult) -> Finding:
    k = main_k(audit)
    key = MetricKey("tail_share", k)
    tail = range_of(audit, key)
    measured = f"100% minus {key}. {meaning(key)}"
    if tail is None or not audit.exposure.popular.any():
        text = "too few items with training interactions, or no lists, to tell popular items from niche ones."
        return Finding("Nothing can be said about popular items", text, measured)
    places = tail.complement()
    history = popular_share(audit, audit.exposure.degrees)
    wanted = math.nan if audit.exposure.relevant is None else popular_share(audit, audit.exposure.relevant)
    # What people wanted is the fairer measure: like the lists, a test leaves out what a user had before.
    against, object_ = (history, "the history") if math.isnan(wanted) else (wanted, "people wanted")
    lead = {
        1: "The lists exaggerate popularity",
        -1: f"The lists hold fewer popular items than {object_}",
        0: f"The lists hold about as many popular items as {object_}",
    }[_side(places, against, NOTEWORTHY_SHARE)]
    received = f"{percent(history)} of the training interactions"
    received += "" if math.isnan(wanted) else f" and {percent(wanted)} of what people wanted in the test"
    text = (
        f"the most popular fifth of the items fills {places.written()} of the first {k} places, while it received "
        f"{received}."
    )
    return Finding(lead, text, measured)


def _about_users(audit: AuditResult) -> Finding:
    k = main_k(audit)
    lift = MetricKey("popularity_lift", k)
    niche, blockbuster = (range_of(audit, lift.of(group)) for group in ("niche-taste", "blockbuster"))
    measured = meaning(lift.of("niche-taste"))
    if niche is None:
        text = "no list belongs to a user of this group with a training history."
        return Finding("Nothing can be said about people with niche taste", text, measured)
    side = _side(niche, 0.0, NOTEWORTHY_LIFT)
    lead = {
        1: "People with niche taste are shown more popular things than they chose themselves",
        -1: "People with niche taste are shown even less popular things than they chose themselves",
        0: "People with niche taste are shown things about as popular as their own",
    }[side]
    if side == 1 and blockbuster is not None and niche.low > blockbuster.high:
        lead = "People with niche taste are pushed furthest towards popular things"
    text = f"their lists are {niche.times()} as popular as their own history"
    if blockbuster is not None:
        text += f", those of blockbuster users {blockbuster.times()}"
    return Finding(lead, text + _served(audit, k) + ".", measured)


def _served(audit: AuditResult, k: int) -> str:
    """The second half of the sentence about users: how much of what they wanted is found."""
    niche, blockbuster = (range_of(audit, MetricKey("recall", k, group)) for group in ("niche-taste", "blockbuster"))
    if niche is None or blockbuster is None:
        return ""
    if niche.high < blockbuster.low:
        judged = "the former find less of what they wanted"
    elif blockbuster.high < niche.low:
        judged = "the former find more of what they wanted"
    else:
        judged = "neither clearly find more of what they wanted"
    return f"; {judged}, {percent(niche.value)} against {percent(blockbuster.value)}"


def _about_worth(audit: AuditResult) -> Finding:
    k = main_k(audit)
    of_popular, of_niche = (MetricKey("recall", k, group) for group in ITEM_GROUPS)
    measured = f"{of_popular} and {of_niche}. {meaning(of_niche)}"
    if not has_test(audit):
        text = "no test part was given, so this page describes the lists and cannot say how good they are."
        return Finding("Whether people wanted these items is not known", text, measured)
    popular, niche = range_of(audit, of_popular), range_of(audit, of_niche)
    if popular is None or niche is None:
        text = "the test part has no user with a relevant item in both groups, popular and niche."
        return Finding("Popular and niche wishes cannot be compared", text, measured)
    lead = "Popular and niche wishes are met about equally often"
    if niche.high < NOTEWORTHY_RATIO * popular.low:
        lead = "Niche wishes are met less often than popular ones"
    elif popular.high < NOTEWORTHY_RATIO * niche.low:
        lead = "Niche wishes are met more often than popular ones"
    elif popular.value and not NOTEWORTHY_RATIO <= niche.value / popular.value <= 1 / NOTEWORTHY_RATIO:
        lead = "Whether niche wishes are met as often as popular ones is not clear from so few users"
    text = (
        f"of the popular items that people wanted in the test the lists find {popular.written()}, of the niche ones "
        f"{niche.written()}; {CAUTIONS[audit.evidence]}."
    )
    return Finding(lead, text, measured)


def _side(found: Range, reference: float, noteworthy: float) -> int:
    """1 above the reference by more than `noteworthy`, -1 below it, 0 if neither is certain."""
    if found.low > reference + noteworthy:
        return 1
    return -1 if found.high < reference - noteworthy else 0
