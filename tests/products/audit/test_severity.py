"""How badly lists are captured: the grade follows from what niche items lose, the words from how few are shown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from caged.products.audit.ranges import lean_of_lists, popular_share
from caged.products.audit.result import AuditResult
from caged.products.audit.severity import GRADES, concentration, severity, taken_from_niche
from caged.products.audit.view import Audit
from tests.products.audit.audits import K, made_up, with_values


def graded(audit: AuditResult, taken: float, width: float = 0.0005) -> int:
    """The level when popular items take this share of the room of niche ones."""
    relevant = audit.exposure.relevant
    assert relevant is not None
    room = 1 - popular_share(audit, relevant)
    found = severity(with_values(audit, width, tail_share=room * (1 - taken)))
    assert found is not None
    assert found.grade == GRADES[found.level]
    return found.level


@pytest.mark.parametrize(
    ("taken", "level"), [(-0.3, 0), (0.0, 0), (0.2, 1), (0.5, 2), (0.7, 3), (0.9, 3), (0.98, 4), (1.0, 4)]
)
def test_the_grade_is_what_niche_items_lose(taken: float, level: int) -> None:
    assert graded(made_up(), taken) == level


def test_ninety_two_and_nearly_a_hundred_percent_are_not_the_same_story() -> None:
    """Of a market in which a quarter of the wishes is niche."""
    audit = made_up()
    relevant = np.where(audit.exposure.popular, 0, 1) * 25 / np.count_nonzero(~audit.exposure.popular)
    relevant = relevant + audit.exposure.popular * 75 / np.count_nonzero(audit.exposure.popular)
    audit = replace(audit, exposure=audit.exposure._replace(relevant=relevant))
    levels = [severity(with_values(audit, tail_share=share)) for share in (0.08, 0.002)]
    assert [found.level for found in levels if found is not None] == [3, 4]


def test_where_nobody_wanted_a_niche_item_none_is_taken() -> None:
    audit = made_up()
    audit = replace(audit, exposure=audit.exposure._replace(relevant=audit.exposure.popular * 1.0))
    found = severity(with_values(audit, tail_share=0.1))
    assert found is not None
    assert found.level == 0


def test_an_interval_counts_against_the_grade() -> None:
    assert graded(made_up(), 0.7, width=0.0005) > graded(made_up(), 0.7, width=0.1)


def test_what_is_taken_has_the_interval_of_the_places() -> None:
    lean = lean_of_lists(with_values(made_up(), 0.01, tail_share=0.1))
    assert lean is not None
    taken = taken_from_niche(lean)
    assert taken.low < taken.value < taken.high
    assert taken.value == pytest.approx(1 - 0.1 / (1 - lean.due))


def test_without_a_test_the_history_is_the_measure() -> None:
    found = severity(with_values(made_up(test=False), tail_share=0.001))
    assert found is not None
    assert found.level == 4
    assert "make up" in found.sentence
    assert "of the training interactions" in found.sentence


def test_nothing_is_graded_where_nothing_is_known() -> None:
    audit = with_values(made_up(), tail_share=math.nan)
    assert severity(audit) is None
    assert len(Audit(audit).verdict) == 3


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ([30, 30, 0, 0], "Everyone sees the same 2 of 4 items"),
        ([30, 20, 10, 2], "Nearly everyone sees the same 2 of 4 items"),
        ([10] * 4 + [0] * 60, "All lists together show only 4 of 64 items"),
        ([10, 10, 10, 10, 0], "Half of all places go to 2 of 5 items"),
    ],
)
def test_how_few_items_fill_the_lists(shown: list[int], words: str) -> None:
    assert concentration(np.array(shown), 2) == words


def test_the_verdict_begins_with_it() -> None:
    shut_out = with_values(made_up(), tail_share=0.0)
    first = Audit(shut_out).verdict[0]
    assert first.startswith("Almost completely captured by popularity: ")
    assert f"of {len(shut_out.exposure.shown[K])} items" in first
