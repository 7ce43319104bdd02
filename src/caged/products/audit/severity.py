"""How badly the lists are captured by popularity: one grade, one sentence, from the thresholds below.

What counts is how much of the room that niche items should have is taken from them. With 26 of 100 wishes being niche,
lists that hold 92% popular items leave niche ones a third of their room, and lists that hold 99.8% leave nothing: the
share of popular items alone hardly tells the two apart. An interval counts against the grade, never for it.
"""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array
from caged.page.html import Headline
from caged.page.numbers import percent
from caged.products.audit.charts import main_k
from caged.products.audit.ranges import LeanOfLists, Range, lean_of_lists
from caged.products.audit.result import AuditResult

GRADES = (
    "Not captured by popularity",
    "Slightly captured by popularity",
    "Clearly captured by popularity",
    "Badly captured by popularity",
    "Almost completely captured by popularity",
)
TAKEN = (1 / 3, 2 / 3, 0.95)  # of the room of niche items, from which on the next grade begins
THE_SAME = 0.95  # of the places that k items fill, from which on everyone sees the same
NEARLY_THE_SAME = 0.75
FEW = 0.1  # of the catalogue: lists that together show no more than that are told by it


def severity(audit: AuditResult) -> Headline | None:
    """None where popular items cannot be told from niche ones, or nothing is listed."""
    lean = lean_of_lists(audit)
    if lean is None:
        return None
    level = _level(lean)
    sentence = _sentence(audit, lean, level)
    return Headline(sentence, level=level, grade=GRADES[level], meaning=_measured(lean))


def taken_from_niche(lean: LeanOfLists) -> Range:
    """The share of the room of niche items that popular ones take, and its interval; none of it where there is none."""
    room = 1 - lean.due
    if room <= 0:
        return Range(0.0, 0.0, 0.0, lean.places.known)
    lost = [1 - (1 - share) / room for share in lean.places[:3]]
    return Range(lost[0], lost[1], lost[2], lean.places.known)


def _level(lean: LeanOfLists) -> int:
    if lean.side < 1:
        return 0
    return 1 + sum(taken_from_niche(lean).low >= least for least in TAKEN)


def _sentence(audit: AuditResult, lean: LeanOfLists, level: int) -> str:
    shown = concentration(audit.exposure.shown[main_k(audit)], main_k(audit))
    filled, due = lean.places.value, lean.due
    if level == 0:
        popular = f"Popular items fill {percent(filled)} of the places and make up {percent(due)} of {lean.measure}"
        return f"{popular}; {shown[0].lower()}{shown[1:]}."
    niche = f"niche items get {percent(1 - filled)} of the places but make up {percent(1 - due)} of {lean.measure}"
    return f"{shown}; {niche}."


def concentration(shown: Array, k: int) -> str:
    """In words, how few items fill the lists.

    >>> concentration(np.array([50, 50, 0, 0, 0, 0]), 2)
    'Everyone sees the same 2 of 6 items'
    >>> concentration(np.array([9, 8, 7, 6, 5, 4, 3, 2, 1]), 2)
    'Half of all places go to 3 of 9 items'
    """
    descending = np.sort(shown)[::-1]
    total, reached = descending.sum(), int(np.count_nonzero(shown))
    of_all = f"of {len(shown):,} items"
    together = descending[:k].sum() / total
    if together >= NEARLY_THE_SAME:
        return f"{'Everyone' if together >= THE_SAME else 'Nearly everyone'} sees the same {k} {of_all}"
    if reached <= FEW * len(shown):
        return f"All lists together show only {reached:,} {of_all}"
    half = int(np.searchsorted(np.cumsum(descending), total / 2)) + 1
    return f"Half of all places go to {half:,} {of_all}"


def _measured(lean: LeanOfLists) -> str:
    steps = ", ".join(percent(least) for least in TAKEN)
    taken = taken_from_niche(lean)
    return (
        f"The room of niche items is their share of {lean.measure}. Popular items take "
        f"{percent(max(0.0, taken.value))} of it here. The grade rises at {steps}; where there is an interval, its "
        "cautious end has to reach them."
    )
