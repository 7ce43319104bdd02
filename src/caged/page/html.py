"""One self-contained HTML page from sections: no network, no script, no external font; light, dark, phone and print.

A figure is drawn twice, for a desk and for a phone, and always has its numbers in a table that unfolds below it.
A term with a meaning shows it on hover, and on Enter or a tap in a box of its own (HTML popovers need no script).
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from caged.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Template

# Widths in CSS pixels at which a chart is drawn one to one: the column of the page, half of it, and a phone.
WIDE, HALF, NARROW = 720, 348, 350

_FIT_A_PHONE = 3  # columns
_LONG_PAGE = 4  # sections from which on a page has a contents list

Draw = Callable[[int], str]  # a width in, SVG out


class Term(str):
    """Text with its definition; stands wherever text stands."""

    meaning: str

    def __new__(cls, text: str, meaning: str) -> Self:
        term = super().__new__(cls, text)
        term.meaning = meaning
        return term


class Strong(str):
    """Text in bold, such as the best value of a column."""

    strong: ClassVar[bool] = True


@dataclass(frozen=True)
class ColumnHead:
    """The head of a column; `meaning` appears on hover."""

    name: str
    meaning: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """Cells as text; the first of each row names the row."""

    caption: str
    columns: Sequence[ColumnHead]
    rows: Sequence[Sequence[str]]

    @property
    def is_wide(self) -> bool:
        """Probably too wide for a phone, where it then scrolls sideways."""
        return len(self.columns) > _FIT_A_PHONE


@dataclass(frozen=True)
class Panel:
    """One chart; the heading tells it from the other panels of its figure."""

    draw: Draw
    heading: str = ""


@dataclass(frozen=True)
class Figure:
    """Charts side by side (below each other on a phone), how to read them, and their numbers."""

    panels: Sequence[Panel]
    caption: str
    table: Table


@dataclass(frozen=True)
class Finding:
    """One sentence of the verdict: `lead` in bold, the evidence after it, and how it is measured."""

    lead: str
    text: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.lead}: {self.text}"


@dataclass(frozen=True)
class Headline:
    """The one thing to remember of a page, graded from 0 (fine) to `WORST` where there is something to grade."""

    sentence: str
    detail: str = ""  # a little smaller
    level: int = 0
    grade: str = ""  # the level in words; empty where there is nothing to grade
    meaning: str = ""  # how it is graded

    WORST: ClassVar[int] = 4

    def __str__(self) -> str:
        said = f"{self.sentence} {self.detail}".rstrip()
        return f"{self.grade}: {said[0].lower()}{said[1:]}" if self.grade else said


@dataclass(frozen=True)
class Tile:
    """One number large enough to be seen from across the room."""

    term: Term
    value: str
    below: str = ""
    key: str = ""


@dataclass(frozen=True)
class ShownItem:
    """One item in front of a person: `tag` in words and colour, `wanted` where the person turned out to want it."""

    title: str
    detail: str
    tag: str
    marked: bool = False
    wanted: bool = False


@dataclass(frozen=True)
class Listing:
    """A few entries under a heading; `more` says what was left out."""

    heading: str
    entries: Sequence[ShownItem]
    ordered: bool = False
    more: str = ""


@dataclass(frozen=True)
class Person:
    name: str
    about: str
    listings: Sequence[Listing]


@dataclass(frozen=True)
class Section:
    """One part of a page, with an entry in its contents list."""

    title: str
    paragraphs: Sequence[str] = ()
    figure: Figure | None = None
    table: Table | None = None
    tiles: Sequence[Tile] = ()
    people: Sequence[Person] = ()
    bullets: Sequence[str] = ()
    commands: Sequence[tuple[str, str]] = ()  # what one does, what to type
    folded: str = ""  # the table unfolds under these words
    tables: Sequence[Table] = ()  # further ones, below each other
    notes: Sequence[str] = ()  # at the end, smaller: what the tables rest on
    number: int = 0  # tells sections apart whose titles are somebody else's words

    @property
    def anchor(self) -> str:
        """What a link to this section ends in; titles of a page differ.

        >>> Section("Who gets the places?").anchor
        'who-gets-the-places'
        """
        words = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")
        return f"{words}-{self.number}" if self.number else words


@dataclass(frozen=True)
class Page:
    """What stands on a page, from top to bottom. Everything is plain text; `render` does the escaping."""

    title: str
    subtitle: str
    findings: Sequence[str | Finding]
    sections: Sequence[Section]
    command: str
    notice: str = ""
    headline: Headline | None = None
    glossary: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str]] = field(default=())
    links: Sequence[tuple[str, str]] = ()  # to pages beside this one: words, file name

    @property
    def has_contents(self) -> bool:
        return len(self.sections) >= _LONG_PAGE


class Definitions:
    """The boxes that terms of a page open, each meaning once, in the order of the page."""

    def __init__(self) -> None:
        self.boxes: dict[tuple[str, str], str] = {}

    def box(self, name: str, meaning: str) -> str:
        """The identifier of the box for this meaning."""
        return self.boxes.setdefault((name, meaning), f"definition-{len(self.boxes) + 1}")


def templates_are_there() -> bool:
    return importlib.util.find_spec("jinja2") is not None


def require_templates() -> None:
    """Fail where the template engine is missing; worth asking before anything expensive."""
    if not templates_are_there():
        raise ConfigError(
            "pages need jinja2, which is not installed here; install the extra 'report': "
            "pip install 'caged-rec[report]'"
        )


def render(page: Page) -> str:
    require_templates()
    widths = {"wide": WIDE, "half": HALF, "narrow": NARROW}
    return _template().render(page=page, widths=widths, definitions=Definitions())


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")
