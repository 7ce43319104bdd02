"""A page stands alone, shows everything and escapes everything."""

from __future__ import annotations

import importlib.util

import pytest

from caged.errors import ConfigError
from caged.page.charts import Row, row_chart
from caged.page.html import ColumnHead, Figure, Page, Panel, Section, Table, render
from tests.page.pages import check_page

NASTY = "<script>alert('x')</script> & more"

TABLE = Table(
    "Numbers", [ColumnHead("method", numeric=False), ColumnHead("recall", "what is found")], [["a", "1"], [NASTY, "2"]]
)


def figure(panels: int = 1) -> Figure:
    def draw(width: int) -> str:
        return row_chart([Row("a", 0.1)], title=f"chart of {width}", width=width)

    return Figure([Panel(draw, "left"), Panel(draw, "right")][:panels], "how to read it", TABLE)


PAGE = Page(
    title=NASTY,
    subtitle="about",
    notice="mind this",
    findings=["one", NASTY],
    sections=[Section("first", ["text"], figure()), Section("second", figure=figure(2)), Section("third", table=TABLE)],
    command="caged demo --out 'a b'",
    glossary=[("recall", "what is found")],
    facts=[("numpy", "2.0")],
)


def test_a_page_stands_alone() -> None:
    check_page(render(PAGE))


def test_everything_is_escaped_and_shown() -> None:
    page = render(PAGE)
    assert NASTY not in page
    assert page.count("&lt;script&gt;") == 6  # title twice, a finding, and a row of three tables
    for text in ("about", "mind this", "how to read it", "numpy", "caged demo --out &#39;a b&#39;"):
        assert text in page
    assert '<abbr title="what is found">recall</abbr>' in page


def test_tables_are_complete() -> None:
    walker = check_page(render(PAGE))
    assert len(walker.of("table")) == 3
    assert len(walker.of("th")) == 3 * 4  # two columns, two rows
    assert len(walker.of("td")) == 3 * 2


def test_a_single_chart_is_drawn_for_desk_and_phone_and_panels_once() -> None:
    labels = [attributes["aria-label"] for attributes in check_page(render(PAGE)).of("svg")]
    assert labels == ["chart of 720", "chart of 350", "chart of 348", "chart of 348"]


def test_a_missing_template_engine_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"jinja2.*caged-rec\[report\]"):
        render(PAGE)
