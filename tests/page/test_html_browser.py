"""Pages in a real browser: nothing is fetched, nothing fails, everything is there at desk, phone and in the dark."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from caged.products.audit.page import audit_html
from caged.products.demo.page import demo_html
from tests.page.browser import Browser, installed
from tests.products.audit.audits import made_up, with_further_tests
from tests.products.demo.demos import with_all_methods

PROGRAM = installed()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome is installed (CHROMIUM may name one)")
VISIBLE = "[...document.querySelectorAll('svg')].filter(chart => chart.getBoundingClientRect().width > 0)"
LOOKS = {"desk": {"width": 1000}, "phone": {"width": 390}, "dark": {"width": 1000, "dark": True}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    contents = {
        "audit": audit_html(with_further_tests()),
        "without a test": audit_html(made_up(test=False)),
        "demo": demo_html(with_all_methods(), "caged demo"),
    }
    paths = {name: folder / f"{name}.html" for name in contents}
    for name, content in contents.items():
        paths[name].write_text(content, encoding="utf-8")
    return paths


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["audit", "without a test", "demo"])
def test_a_page_opens_without_complaint_and_without_the_network(
    browser: Browser, pages: dict[str, Path], name: str, look: str
) -> None:
    browser.open(pages[name], **LOOKS[look])  # type: ignore[arg-type]
    browser.evaluate("document.fonts.ready && document.body.offsetHeight")
    by_method = {event["method"] for event in browser.events}
    assert not by_method & {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
    requested = [
        event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"
    ]
    assert requested == [pages[name].resolve().as_uri()]
    # Nothing sticks out sideways.
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("look", ["desk", "phone"])
def test_plots_are_drawn_and_say_their_values(browser: Browser, pages: dict[str, Path], look: str) -> None:
    browser.open(pages["audit"], **LOOKS[look])  # type: ignore[arg-type]
    drawn = browser.evaluate(
        VISIBLE
        + """.map(chart => ({
            name: chart.getAttribute('aria-label'),
            height: chart.getBoundingClientRect().height,
            marks: chart.querySelectorAll('.mark').length,
            said: [...chart.querySelectorAll('.mark title')].filter(one => /[0-9]/.test(one.textContent)).length}))"""
    )
    assert len(drawn) == 4 + 2 * 2  # each figure once: the drawing for this width, or both panels
    for chart in drawn:
        assert chart["height"] > 80, chart
        assert chart["marks"] == chart["said"] > 0, chart


@pytest.mark.parametrize("look", ["desk", "phone"])
def test_words_stay_inside_their_drawing(browser: Browser, pages: dict[str, Path], look: str) -> None:
    browser.open(pages["audit"], **LOOKS[look])  # type: ignore[arg-type]
    outside = browser.evaluate(
        VISIBLE
        + """.flatMap(chart => {
            const box = chart.getBoundingClientRect();
            return [...chart.querySelectorAll('text')].filter(text => {
                const word = text.getBoundingClientRect();
                return word.left < box.left - 2 || word.right > box.right + 2 || word.bottom > box.bottom + 2;
            }).map(text => text.textContent)})"""
    )
    assert outside == []


def test_the_numbers_of_the_demo_fit_at_desk_width(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["demo"], **LOOKS["desk"])  # type: ignore[arg-type]
    boxes = "[...document.querySelectorAll('main > section > .scroll')].map(box => [box.scrollWidth, box.clientWidth])"
    ((needed, room),) = browser.evaluate(boxes)
    assert needed <= room


def test_definitions_open_by_keyboard_and_by_tap(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["audit"], **LOOKS["phone"])  # type: ignore[arg-type]
    opened = "[...document.querySelectorAll(':popover-open')].map(box => box.textContent.replace(/\\s+/g, ' ').trim())"
    assert browser.evaluate(opened) == []
    browser.evaluate("document.querySelector('.tiles .term').focus()")
    browser.press("Enter", 13)
    (said,) = browser.evaluate(opened)
    assert "recall@10: Share of a user's relevant items" in said
    browser.press("Escape", 27)
    assert browser.evaluate(opened) == []
    box = browser.evaluate(
        """(() => {const term = document.querySelectorAll('.tiles .term')[2];
        term.scrollIntoView({block: 'center'});
        const box = term.getBoundingClientRect(); return [box.x + 5, box.y + 5]})()"""
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
    (said,) = browser.evaluate(opened)
    assert "tail_share@10" in said
    inside = "(() => {const b = document.querySelector(':popover-open').getBoundingClientRect();"
    inside += "return b.left >= 0 && b.right <= innerWidth && b.bottom <= innerHeight && b.width > 200})()"
    assert browser.evaluate(inside)


def test_text_can_be_read_in_light_and_dark(browser: Browser, pages: dict[str, Path]) -> None:
    grounds = {}
    for look in ("desk", "dark"):
        browser.open(pages["audit"], **LOOKS[look])  # type: ignore[arg-type]
        style = "getComputedStyle(document.querySelector('{}')).{}"
        ground = _luminance(browser.evaluate(style.format("figure", "backgroundColor")))
        grounds[look] = ground
        for selector in ("figcaption", "h2", ".tiles .below", ".tag", ".tag.marked", "summary"):
            ink = _luminance(browser.evaluate(style.format(selector, "color")))
            lighter, darker = max(ink, ground), min(ink, ground)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (look, selector)
    assert grounds["dark"] < 0.05
    assert grounds["desk"] > 0.9


def test_a_screen_reader_finds_names_for_charts_and_tables(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["audit"], **LOOKS["desk"])  # type: ignore[arg-type]
    browser.evaluate("document.querySelectorAll('details').forEach(details => {details.open = true})")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]

    def names(role: str) -> list[str]:
        return [node["name"]["value"] for node in nodes if not node["ignored"] and node["role"]["value"] == role]

    assert len(names("image")) == 8
    assert all(names("image"))
    assert len(names("table")) == 7
    assert all(names("table"))
    assert names("heading")[0].startswith("Popularity audit")


def test_it_prints_on_a_few_sheets(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["audit"], **LOOKS["desk"])  # type: ignore[arg-type]
    printed = base64.b64decode(browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.7)["data"])
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 14


def _luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, after WCAG 2."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
