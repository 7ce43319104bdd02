"""The page in a real browser: search, knob, new person, two artefacts; desk and phone, light and dark, by keyboard."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from caged.products.serve import Ask, Engine, ServedModel
from caged.products.serve.app import create_app
from caged.products.serve.served import serve_folders
from caged.products.serve.settings import Settings
from tests.page.browser import Browser, installed
from tests.page.contrast import SHORTFALLS
from tests.products.serve.explorer.shop import MARKUP, STRANGE, UNSEEN

PROGRAM = installed()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome is installed (CHROMIUM may name one)")
LOOKS = {"desk": (1280, False), "phone": (390, False), "dark desk": (1280, True), "dark phone": (390, True)}
KEY = "a key of many letters"
SECONDS = 30.0  # a loaded machine
IDS = "[...document.querySelectorAll('.column:nth-child(%d) .list bdi')].map(one => one.title)"
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40, "ArrowUp": 38, " ": 32}


class Explorer:
    """The page at an address, as somebody uses it."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address

    def open(self, look: str = "desk") -> None:
        width, dark = LOOKS[look]
        self.browser.open(self.address, width=width, dark=dark)

    def begin(self, look: str = "desk") -> None:
        """With the first person's lists on the page."""
        self.open(look)
        self.until("document.querySelectorAll('.list > li').length >= 20")

    def until(self, condition: str) -> None:
        end = time.monotonic() + SECONDS
        while not self.browser.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, (condition, self.text("body"))
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        text: str = self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")
        return text

    def click(self, selector: str) -> None:
        self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, words: str) -> None:
        """Into the search."""
        self.browser.evaluate("document.querySelector('#search').focus()")
        self.browser.evaluate("document.querySelector('#search').select()")
        self.browser.call("Input.insertText", text=words)

    def press(self, key: str, times: int = 1) -> None:
        for _ in range(times):
            self.browser.press(key, KEYS[key])

    def turn(self, value: float, place: int = 0) -> None:
        """The knob, as a drag does."""
        self.browser.evaluate(
            f"(() => {{const knob = document.querySelector('#knob-{place}'); knob.value = '{value}';"
            "knob.dispatchEvent(new Event('input', {bubbles: true}))})()"
        )

    def listed(self, place: int) -> list[str]:
        found: list[str] = self.browser.evaluate(IDS % (place + 1))
        return found

    def complaints(self) -> list[Any]:
        bad = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [event["params"] for event in self.browser.events if event["method"] in bad]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM) as running:
        yield running


def serving(folders: list[Path], settings: Settings | None = None) -> Iterator[str]:
    app = create_app(serve_folders(folders), settings, explorer=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/explorer/"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def address(shop: list[Path]) -> Iterator[str]:
    yield from serving(shop)


@pytest.fixture
def explorer(browser: Browser, address: str) -> Explorer:
    return Explorer(browser, address)


@pytest.fixture(scope="module")
def engines(shop: list[Path]) -> list[Engine]:
    return [Engine(ServedModel.load(folder)) for folder in shop]


def wanted(engine: Engine, **ask: Any) -> list[str]:
    """Titles and ids as the page shows them."""
    rows = engine.recommend(Ask(k=20, **ask)).items
    named = zip(engine.model.titles_at(rows), engine.model.items.at(rows), strict=True)
    return [f"{title} ({name})".replace("\u202e", "\\u202e").replace("\x1b", "\\u001b") for title, name in named]


@pytest.mark.parametrize("look", LOOKS)
def test_the_page_opens_without_complaint_fits_and_can_be_read(explorer: Explorer, look: str) -> None:
    explorer.begin(look)
    explorer.turn(0.6)
    explorer.until("document.querySelector('.left-out')")
    explorer.browser.evaluate("document.querySelectorAll('details').forEach(one => {one.open = true})")
    explorer.click(".list button")
    explorer.until("document.querySelector('.reasons li')")
    assert explorer.complaints() == []
    urls = {
        event["params"]["request"]["url"]
        for event in explorer.browser.events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert all(url.startswith((explorer.address, "data:,")) for url in urls), urls
    assert explorer.browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert explorer.browser.evaluate(SHORTFALLS) == []
    ground = explorer.browser.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
    assert ground == ("rgb(26, 31, 39)" if LOOKS[look][1] else "rgb(255, 255, 255)")


def test_two_artefacts_stand_side_by_side_with_their_own_lists(explorer: Explorer, engines: list[Engine]) -> None:
    explorer.begin()
    person = explorer.text("#subject-heading").removeprefix("Person ")
    for place, engine in enumerate(engines):
        assert explorer.listed(place) == wanted(engine, user_id=person)
    tops = explorer.browser.evaluate("[...document.querySelectorAll('.column')].map(one => one.offsetTop)")
    assert tops[0] == tops[1]
    both = set(explorer.listed(0)) & set(explorer.listed(1))
    assert explorer.text("#shared") == f"{len(both)} of 20 items stand in both lists."
    assert explorer.browser.evaluate("document.querySelectorAll('.list .tag').length") > 40  # popular or niche, each


def test_on_a_phone_a_swipe_leads_to_the_second_list(explorer: Explorer) -> None:
    explorer.begin("phone")
    explorer.browser.evaluate("document.querySelector('.columns').scrollTo({left: 400, behavior: 'instant'})")
    explorer.until("document.querySelector('.column:nth-child(2)').getBoundingClientRect().right <= innerWidth")
    small = """[...document.querySelectorAll('button, input[type=search], input[type=range]')]
        .filter(one => one.checkVisibility() && one.getBoundingClientRect().height < 30).length"""
    assert explorer.browser.evaluate(small) == 0


def test_the_knob_ranks_anew_and_says_what_is_gained_and_lost(explorer: Explorer, engines: list[Engine]) -> None:
    explorer.begin()
    person = explorer.text("#subject-heading").removeprefix("Person ")
    before = explorer.listed(0)
    explorer.turn(1)
    explorer.until("document.querySelector('.column:nth-child(1) .left-out')")
    assert explorer.listed(0) == wanted(engines[0], user_id=person, less_popular=1.0) != before
    assert explorer.listed(1) == wanted(engines[1], user_id=person, less_popular=1.0)  # both knobs move together
    gone = len(set(before) - set(explorer.listed(0)))
    assert f"{gone} item" in explorer.text(".left-out summary")
    assert explorer.browser.evaluate("document.querySelectorAll('.column:nth-child(1) .move.new').length") == gone
    model = engines[0].model
    rows = engines[0].recommend(Ask(user_id=person, k=20, less_popular=1.0)).items
    mean = round(float(model.degrees[rows].mean()))
    assert f"People per item\n{mean}" in explorer.text(".gains")
    curve = model.manifest.price["curve"]["valid"]
    for point in (curve[0], curve[-1]):
        assert f"{100 * point['metrics']['recall@20']:.1f}".removesuffix(".0") in explorer.text(".price")
    explorer.turn(0.43)
    explorer.until("document.querySelector('.price').textContent.includes('at 0.45: ')")  # the nearest one measured
    explorer.turn(1)
    explorer.until("!document.querySelector('.price').textContent.includes(' at ')")
    explorer.click("#together")
    explorer.turn(0)
    explorer.until("!document.querySelector('.column:nth-child(1) .left-out')")
    assert explorer.listed(0) == before
    assert explorer.listed(1) == wanted(engines[1], user_id=person, less_popular=1.0)


def test_a_fast_drag_ends_where_it_ends(explorer: Explorer, engines: list[Engine]) -> None:
    explorer.begin()
    person = explorer.text("#subject-heading").removeprefix("Person ")
    for step in range(20, -1, -1):
        explorer.turn(step / 20)
    explorer.turn(0.35)
    last = json.dumps(wanted(engines[0], user_id=person, less_popular=0.35))
    explorer.until(f"JSON.stringify({IDS % 1}) === JSON.stringify({last})")
    assert explorer.text(".knob output") == "0.35"


def test_a_person_is_searched_for_and_shown(explorer: Explorer, engines: list[Engine]) -> None:
    explorer.begin()
    explorer.type("onerror")
    explorer.until("document.querySelectorAll('.hit').length === 1")
    explorer.click(".hit")
    explorer.until(f"document.querySelector('#subject-heading').textContent === {json.dumps('Person ' + STRANGE)}")
    explorer.until(f"JSON.stringify({IDS % 1}) === JSON.stringify({json.dumps(wanted(engines[0], user_id=STRANGE))})")
    shown = explorer.browser.evaluate("document.querySelectorAll('#history .chip').length")
    assert shown == len(engines[0].model.seen(engines[0].model.users.row(STRANGE)))
    explorer.type("nothing like it")
    explorer.until("document.querySelector('#results').innerText.includes('Nothing found')")


def test_hostile_text_stays_text(explorer: Explorer) -> None:
    explorer.begin()
    explorer.type("<script")
    explorer.until("document.querySelectorAll('.hit').length === 1")
    explorer.click(".hit")
    explorer.until("document.querySelector('#subject-heading').textContent.startsWith('Item ')")
    assert MARKUP in explorer.text("#subject-about")
    explorer.type("Turned")
    explorer.until("document.querySelector('.hit')?.innerText.startsWith('Turned')")
    assert UNSEEN not in explorer.text("#results")
    assert "Turned\\u202e \\u001b[2Jaround" in explorer.text("#results")
    assert explorer.browser.evaluate("document.title") == "Explorer"
    assert explorer.browser.evaluate("document.querySelectorAll('main script, main img, main b').length") == 0
    assert explorer.complaints() == []


def test_an_item_shows_what_is_like_it_in_both(explorer: Explorer, engines: list[Engine]) -> None:
    explorer.begin()
    explorer.type("i12")
    explorer.until("document.querySelectorAll('.hit').length === 1")
    explorer.click(".hit")
    explorer.until("document.querySelector('#subject-heading').textContent.startsWith('Item ')")
    for place, engine in enumerate(engines):
        near = engine.model.items.at(engine.similar("i12", 10).items)
        assert [name.rpartition("(")[2].removesuffix(")") for name in explorer.listed(place)] == [
            name.rpartition("(")[2].removesuffix(")") for name in near
        ]
    assert explorer.browser.evaluate("document.querySelector('.knob').checkVisibility()") is False


def test_a_new_person_is_built_by_clicking_items(explorer: Explorer, engines: list[Engine]) -> None:
    explorer.begin()
    explorer.click("#starts button:last-child")
    explorer.until("document.querySelectorAll('#sample button').length === 12")
    assert "click items below" in explorer.text("#subject-about")
    explorer.click("#sample li:nth-child(4) button")
    explorer.until("document.querySelectorAll('#history button').length === 1")
    explorer.type("i31")
    explorer.until("document.querySelectorAll('.hit').length === 1")
    explorer.click("#results button[aria-label^='Add']")
    explorer.until("document.querySelectorAll('#history button').length === 2")
    explorer.until("document.querySelectorAll('.list > li').length === 40")
    explorer.click(".list button[aria-label^='Add']")
    explorer.until("document.querySelectorAll('#history button').length === 3")
    chips = "[...document.querySelectorAll('#history button')].map(one => one.title.match(/\\((.*)\\), /)[1])"
    history = explorer.browser.evaluate(chips)
    assert history[1] == "i31"
    for place, engine in enumerate(engines):
        last = json.dumps(wanted(engine, history=history))
        explorer.until(f"JSON.stringify({IDS % (place + 1)}) === JSON.stringify({last})")
    explorer.click("#history button")
    explorer.until("document.querySelectorAll('#history button').length === 2")
    explorer.until(f"{IDS % 1}.join() === {json.dumps(wanted(engines[0], history=history[1:]))}.join()")


def test_somebody_known_is_the_beginning_of_somebody_new(explorer: Explorer) -> None:
    explorer.begin()
    count = explorer.browser.evaluate("document.querySelectorAll('#history .chip').length")
    explorer.click("#subject-actions button")
    explorer.until(f"document.querySelectorAll('#history button').length === {count}")
    assert explorer.text("#subject-heading") == "New person"


def test_reasons_are_items_of_the_history(explorer: Explorer) -> None:
    explorer.begin()
    had = explorer.browser.evaluate("[...document.querySelectorAll('#history bdi')].map(one => one.textContent)")
    explorer.click(".list button[aria-expanded]")
    explorer.until("document.querySelector('.reasons li')")
    reasons = explorer.browser.evaluate("[...document.querySelectorAll('.reasons bdi')].map(one => one.textContent)")
    assert reasons
    assert set(reasons) <= set(had)
    explorer.click(".list button[aria-expanded]")
    assert explorer.browser.evaluate("document.querySelectorAll('.reasons').length") == 0


def test_everything_works_by_keyboard_alone(explorer: Explorer) -> None:
    explorer.begin()
    focus = "document.activeElement"
    explorer.press("Tab")
    assert explorer.browser.evaluate(f"{focus}.className") == "skip"
    explorer.press("Tab")
    assert explorer.browser.evaluate(f"{focus}.id") == "search"
    explorer.browser.call("Input.insertText", text="u17")
    explorer.until("document.querySelectorAll('.hit').length === 1")
    explorer.press("ArrowDown")
    assert explorer.browser.evaluate(f"{focus}.className") == "hit"
    explorer.press("ArrowUp")
    assert explorer.browser.evaluate(f"{focus}.id") == "search"
    explorer.press("ArrowDown")
    explorer.press("Enter")
    explorer.until("document.querySelector('#subject-heading').textContent === 'Person u17'")
    assert explorer.browser.evaluate(f"{focus}.id") == "subject-heading"
    for _ in range(8):
        explorer.press("Tab")
        if explorer.browser.evaluate(f"{focus}.id") == "knob-0":
            break
    assert explorer.browser.evaluate(f"{focus}.id") == "knob-0"
    explorer.press("ArrowRight", 3)
    explorer.until("document.querySelector('.knob output').textContent === '0.03'")
    assert explorer.browser.evaluate(f"{focus}.id") == "knob-0"  # still, after lists were drawn anew
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert explorer.browser.evaluate(outline) == "solid"


def test_whoever_adds_items_by_keyboard_stays_where_they_were(explorer: Explorer) -> None:
    explorer.begin()
    explorer.click("#starts button:last-child")
    explorer.until("document.querySelectorAll('#sample button').length === 12")
    explorer.browser.evaluate("document.querySelector('#sample li:nth-child(3) button').focus()")
    explorer.press("Enter")
    explorer.until("document.querySelectorAll('#history button').length === 1")
    at = "[...document.querySelectorAll('#sample button')].indexOf(document.activeElement)"
    assert explorer.browser.evaluate(at) == 2


def test_every_control_has_a_name_and_changes_are_said(explorer: Explorer) -> None:
    explorer.begin()
    tree = explorer.browser.call("Accessibility.getFullAXTree")["nodes"]
    controls = ("button", "searchbox", "slider", "checkbox", "link")
    found = [node for node in tree if node.get("role", {}).get("value") in controls and not node["ignored"]]
    assert len(found) > 40
    assert [node["role"] for node in found if not node.get("name", {}).get("value")] == []
    explorer.turn(0.5)
    explorer.until("document.querySelector('#status').textContent.includes('niche')")


def test_whoever_wants_no_motion_gets_none(explorer: Explorer) -> None:
    explorer.begin()
    quiet = {"name": "prefers-reduced-motion", "value": "reduce"}
    explorer.browser.call("Emulation.setEmulatedMedia", features=[quiet])
    explorer.browser.evaluate("document.querySelector('.columns').classList.add('busy')")
    duration = "getComputedStyle(document.querySelector('.columns')).transitionDuration"
    assert explorer.browser.evaluate(duration) == "0s"


def test_one_artefact_alone_has_one_list(browser: Browser, shop: list[Path]) -> None:
    for address in serving(shop[:1]):
        alone = Explorer(browser, address)
        alone.begin()
        assert browser.evaluate("document.querySelectorAll('.column').length") == 1
        assert browser.evaluate("document.querySelector('#together-label').checkVisibility()") is False
        assert alone.text("#shared") == ""


def test_the_page_asks_for_the_key_of_its_server(browser: Browser, shop: list[Path]) -> None:
    for address in serving(shop[:1], Settings(key=KEY)):
        guarded = Explorer(browser, address)
        guarded.open()
        guarded.until("document.querySelector('#key-form').checkVisibility()")
        assert "wants its API key" in guarded.text("#problem")
        for key in ("wrong", KEY):
            browser.evaluate("document.querySelector('#key').select()")
            browser.call("Input.insertText", text=key)
            guarded.press("Enter")
            if key == "wrong":
                guarded.until("document.querySelector('#problem').textContent.includes('wrong')")
        guarded.until("document.querySelectorAll('.list > li').length === 20")
        assert browser.evaluate("document.querySelector('#problem').hidden")


def test_a_server_that_is_gone_is_told(browser: Browser, shop: list[Path]) -> None:
    running = serving(shop[:1])
    left = Explorer(browser, next(running))
    left.begin()
    next(running, None)
    left.turn(0.5)
    left.until("document.querySelector('#problem').textContent.includes('does not answer')")
