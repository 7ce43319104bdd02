"""The page of a study: every table, the best in bold, nothing wider than a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.reproduction.page import tables_html
from caged.products.reproduction.tables import study_tables
from tests.page.browser import Browser, installed
from tests.products.reproduction.studied import records_of, runs_of, small_plan, write_record


@pytest.fixture
def page(tmp_path: Path) -> Path:
    plan = small_plan(tmp_path)
    for row, value in (("lightgcn", 0.1), ("caged", 0.12)):
        for run in runs_of(plan, row):
            write_record(plan, run, value + 0.001 * run.seed)
    path = tmp_path / "tables.html"
    path.write_text(tables_html(plan, study_tables(plan, records_of(plan)), "caged study tables <plan>"), "utf-8")
    return path


def test_a_section_per_table_with_bold_for_the_best(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<table>") == 6 + 6 + 4 + 4 + 4
    assert "<strong>0.1230\u00a0±\u00a00.0020 (+19.4%\u00a0[+17.2,\u00a0+21.7])*</strong>" in text
    assert "Pinterest (37,501 of 55,186 users): main" in text
    assert "&lt;plan&gt;" in text


def test_a_run_in_several_sections_counts_once(page: Path) -> None:
    """14 of main, then 1, 2 and 4 more: the ablations and lambda have a run of `caged` that main has, too."""
    assert "10 of 21 planned runs of these tables are recorded." in page.read_text(encoding="utf-8")


def test_what_the_marks_rest_on_stands_below_the_tables(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    first = text.index("Mean over seeds")
    assert text.index("Epinions, main: NDCG@20, popular items") < first < text.index("Epinions, ablations: Recall@20")


@pytest.mark.skipif(installed() is None, reason="needs Chromium")
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_no_width_makes_the_page_scroll_sideways(page: Path, width: int) -> None:
    program = installed()
    assert program is not None
    with Browser(program) as browser:
        browser.open(page, width=width)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert not {event["method"] for event in browser.events} & {"Log.entryAdded", "Runtime.exceptionThrown"}
