from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from caged.errors import ConfigError
from caged.page.charts import Row, row_chart
from caged.page.html import Column, Figure, Page, Panel, Section, Table, render

NASTY = "<script>alert('x')</script> & more"
TABLE = Table(
    "Numbers", [Column("method", numeric=False), Column("recall", "what is found")], [["a", "1"], [NASTY, "2"]]
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


class Walker(HTMLParser):
    """Collects the tags of a page, and fails where they are not nested properly."""

    VOID = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(page: str) -> Walker:
    """What every page has to fulfil."""
    walker = Walker(page)
    names = [name for name, _ in walker.tags]
    assert not {"script", "link", "img", "iframe"} & set(names)
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", page)
    assert walker.of("html") == [{"lang": "en"}]
    assert any(attributes.get("name") == "viewport" for attributes in walker.of("meta"))
    for attributes in walker.of("svg"):
        assert attributes["role"] == "img"
        assert attributes["aria-label"]
    identifiers = [attributes["id"] for _, attributes in walker.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    headings = [int(name[1]) for name in names if re.fullmatch(r"h[1-6]", name)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(headings))
    folded = [attributes for attributes in walker.of("div") if attributes.get("class") == "fold"]
    assert len(walker.of("figure")) + len(folded) == len(walker.of("details"))
    assert len(walker.of("table")) == len(walker.of("caption"))
    return walker


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
