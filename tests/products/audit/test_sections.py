"""The sections of an audit's page: tiles, gates, what people see most, and words that are true of their metric."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from caged.data.popularity import ITEM_GROUPS, USER_GROUPS
from caged.evaluation.metrics import metric_keys
from caged.page.definitions import GROUP_NAMES, glossary
from caged.page.html import Section
from caged.products.audit.page import audit_html, audit_page
from caged.products.audit.result import AuditResult, GateOutcome
from caged.products.audit.sections import SECTIONS, shown_keys
from tests.page.pages import check_page
from tests.products.audit.audits import K, made_up, with_further_tests, with_values

GATES = (
    GateOutcome("tail_share@10<0.2", True, "tail_share@10 is 0.1, < 0.2"),
    GateOutcome("recall@10<0.01", False, "recall@10 is 0.3, >= 0.01"),
)


def section(audit: AuditResult, title: str) -> Section:
    return next(one for one in audit_page(audit).sections if one.title == title)


def test_every_gate_is_on_the_page_with_its_reason() -> None:
    audit = replace(made_up(), gates=GATES)
    found = section(audit, "Gates")
    assert found.paragraphs == ["1 of 2 failed."]
    assert found.table is not None
    assert [row[1] for row in found.table.rows] == ["FAILED", "passed"]
    page = audit_html(audit)
    check_page(page)
    assert "tail_share@10 is 0.1, &lt; 0.2" in page
    assert section(replace(made_up(), gates=GATES[1:]), "Gates").paragraphs == ["All 1 passed."]
    assert "Conditions set for this audit" not in audit_html(made_up())


@pytest.mark.parametrize("audit", [made_up(), made_up(test=False), made_up(intervals=False)])
def test_six_tiles_that_all_know_something(audit: AuditResult) -> None:
    tiles = section(audit, "At a glance").tiles
    assert len(tiles) == 6
    assert all(re.search(r"\d", tile.value) for tile in tiles)
    assert len({tile.key for tile in tiles}) == 6


def test_a_value_and_its_interval_have_the_same_digits() -> None:
    audit = with_values(made_up(), 0.013, recall=0.3)
    tile = next(tile for tile in section(audit, "At a glance").tiles if tile.key == f"recall@{K}")
    assert (tile.value, tile.below) == ("30.0%", "28.7% to 31.3%")


def test_what_people_see_most_is_named_with_its_share() -> None:
    audit = made_up()
    audit = replace(audit, counts={**audit.counts, "users_trained": 40})
    found = section(audit, "What people see most")
    assert found.table is not None
    assert len(found.table.rows) == 10
    shares = [float(row[1].rstrip("%")) for row in found.table.rows]
    assert shares == sorted(shares, reverse=True)
    shown = audit.exposure.shown[K]
    assert shares[0] == pytest.approx(100 * shown.max() / audit.counts["users_listed"], abs=0.01)


def test_shares_are_percentages_with_the_same_digits_in_every_table() -> None:
    for one in audit_page(with_further_tests()).sections:
        table = one.figure.table if one.figure else one.table
        for column in zip(*(table.rows if table else ()), strict=True):
            digits = {re.sub(r"\d", "", part).count(".") for part in column if part.endswith("%")}
            decimals = {
                len(part.rstrip("%").partition(".")[2])
                for part in column
                if re.fullmatch(r"[\d.]+%", part) and part not in ("0%", "100%")
            }
            assert len(digits) <= 1
            assert len(decimals) <= 1, column


def test_without_a_test_nothing_is_shown_that_needs_one() -> None:
    audit = made_up(test=False)
    assert audit.keys != shown_keys(audit)
    assert not any(key.metric.needs_test for key in shown_keys(audit))
    assert len(section(audit, "All numbers").table.rows) == len(shown_keys(audit))  # type: ignore[union-attr]


def test_an_entry_of_the_glossary_is_true_for_its_metric_and_its_groups() -> None:
    entries = dict(glossary(metric_keys([20])))
    of_groups = {GROUP_NAMES[group] for group in (*ITEM_GROUPS, *USER_GROUPS)}
    assert of_groups <= entries.keys()
    for name, words in entries.items():
        if name not in of_groups:  # what holds for all forms says nothing about one group
            assert " only: " not in words, name
    assert "exposure_rate@20 (popular items, niche items)" in entries
    assert "exposure_rate@20" not in entries


def test_a_section_that_has_nothing_to_say_is_left_out() -> None:
    audit = made_up()
    empty = replace(audit, metrics=dict.fromkeys(audit.metrics, math.nan), intervals={}, examples=(), notes=())
    built = [one for build in SECTIONS if (one := build(empty)) is not None]
    assert len({one.anchor for one in built}) == len(built) < len(SECTIONS)
