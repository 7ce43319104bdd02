"""Pages in a real browser: nothing is fetched, nothing fails, everything is there at desk, phone and in the dark."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from caged.products.audit.page import audit_html
from caged.products.audit.result import GateOutcome
from caged.products.audit.run_sections import run_sections
from caged.products.compare import compare, comparison_html
from caged.products.demo.page import demo_html
from caged.runs.folder import RunFolder
from tests.page.browser import Browser, installed
from tests.page.contrast import SHORTFALLS
from tests.products.audit.audits import made_up, with_further_tests, with_values
from tests.products.audit.test_run_sections import epoch, write_trained
from tests.products.compare.compared import values, write_audit_folder, write_run
from tests.products.demo.demos import with_all_methods

PROGRAM = installed()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome is installed (CHROMIUM may name one)")
VISIBLE = "[...document.querySelectorAll('svg')].filter(chart => chart.getBoundingClientRect().width > 0)"
LOOKS = {
    "desk": {"width": 1280},
    "phone": {"width": 390},
    "dark desk": {"width": 1280, "dark": True},
    "dark phone": {"width": 390, "dark": True},
}
PAGES = ("audit", "without a test", "captured", "run", "compare", "demo")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    gates = (GateOutcome("tail_share@10<0.2", True, "tail_share@10 is 0, < 0.2"),)
    run = write_trained(folder / "run", "".join(map(epoch, range(1, 9))))
    compared = [
        write_run(folder / "a", "lightgcn"),
        write_run(folder / "b", "ips", per_user=values(7, 0.05)),
        write_audit_folder(folder / "c", "the lists of another system", per_user=values(7, -0.001)),
    ]
    contents = {
        "audit": audit_html(with_further_tests()),
        "without a test": audit_html(made_up(test=False)),
        "captured": audit_html(replace(with_values(made_up(), tail_share=0.0), gates=gates)),
        "run": audit_html(made_up(), further=run_sections(RunFolder.read(run))),
        "compare": comparison_html(compare(compared), "caged compare a b c"),
        "demo": demo_html(with_all_methods(), "caged demo", {"lightgcn": "audit-lightgcn.html"}),
    }
    paths = {name: folder / f"{name}.html" for name in contents}
    for name, content in contents.items():
        paths[name].write_text(content, encoding="utf-8")
    return paths


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_without_complaint_and_can_be_read(
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
    browser.evaluate("document.querySelectorAll('details').forEach(details => {details.open = true})")
    # Nothing sticks out sideways, also with every table unfolded; and everything has WCAG AA's contrast.
    assert browser.evaluate("document.body.scrollWidth <= window.innerWidth")
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.evaluate(SHORTFALLS) == []


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
    boxes = "[...document.querySelectorAll('main > section > .table > .scroll')]"
    boxes += ".map(box => [box.scrollWidth, box.clientWidth])"
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


def test_light_and_dark_differ(browser: Browser, pages: dict[str, Path]) -> None:
    grounds = []
    for look in ("desk", "dark desk"):
        browser.open(pages["audit"], **LOOKS[look])  # type: ignore[arg-type]
        grounds.append(browser.evaluate("getComputedStyle(document.querySelector('figure')).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(26, 31, 39)"]


def test_the_contrast_is_really_measured(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    pale = tmp_path / "pale.html"
    page = pages["audit"].read_text(encoding="utf-8").replace("--ink-2: #5a6372", "--ink-2: #aab2bd")
    pale.write_text(page.replace("--series-0: #0072b2", "--series-0: #bfe0f5"), encoding="utf-8")
    browser.open(pale, **LOOKS["desk"])  # type: ignore[arg-type]
    found = [short[0] for short in browser.evaluate(SHORTFALLS)]
    assert any(what.startswith("mark") for what in found)
    assert any(not what.startswith("mark") for what in found)


def test_every_entry_of_the_contents_leads_somewhere(browser: Browser, pages: dict[str, Path]) -> None:
    for name in PAGES:
        browser.open(pages[name], **LOOKS["phone"])  # type: ignore[arg-type]
        dead = """[...document.querySelectorAll('.contents a, .anchor')].map(link => link.getAttribute('href'))
            .filter(place => !document.querySelector(place))"""
        assert browser.evaluate(dead) == []
        assert browser.evaluate("document.querySelectorAll('.contents a').length") >= 4
        assert browser.evaluate("document.querySelectorAll('.contents a').length") == browser.evaluate(
            "document.querySelectorAll('main > section[id]').length"
        )


@pytest.mark.parametrize("name", ["audit", "compare"])
def test_on_a_phone_the_first_column_stays_and_a_cue_says_which_tables_scroll(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name], **LOOKS["phone"])  # type: ignore[arg-type]
    browser.evaluate("document.querySelectorAll('details').forEach(details => {details.open = true})")
    browser.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))", wait=True)
    tables = browser.evaluate(
        """[...document.querySelectorAll('.scroll')].map(box => {
            const cell = box.querySelector('tbody th'), last = box.querySelector('tbody tr > :last-child');
            const scrolls = box.scrollWidth > box.clientWidth, cue = box.parentElement.querySelector('.swipe');
            const told = cue !== null && cue.offsetHeight > 0;
            box.scrollLeft = 1000;
            const edge = box.getBoundingClientRect();
            return {name: box.ariaLabel, scrolls, told, first: cell.getBoundingClientRect().left - edge.left,
                shown: last.getBoundingClientRect().right <= edge.right + 1}})"""
    )
    assert sum(table["scrolls"] for table in tables) >= 3
    for table in tables:
        assert table["told"] == table["scrolls"], table
        assert 0 <= table["first"] <= 24, table
        assert table["shown"], table
    browser.open(pages[name], **LOOKS["desk"])  # type: ignore[arg-type]
    assert browser.evaluate("[...document.querySelectorAll('.swipe')].every(cue => cue.offsetHeight === 0)")


def test_a_screen_reader_finds_names_for_charts_and_tables(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["audit"], **LOOKS["desk"])  # type: ignore[arg-type]
    browser.evaluate("document.querySelectorAll('details').forEach(details => {details.open = true})")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]

    def names(role: str) -> list[str]:
        return [node["name"]["value"] for node in nodes if not node["ignored"] and node["role"]["value"] == role]

    assert len(names("image")) == 8
    assert all(names("image"))
    assert len(names("table")) == 8
    assert all(names("table"))
    assert names("heading")[0].startswith("Popularity audit")


def test_it_prints_on_a_few_sheets(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["audit"], **LOOKS["desk"])  # type: ignore[arg-type]
    printed = base64.b64decode(browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.7)["data"])
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 14
