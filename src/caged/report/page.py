"""One self-contained HTML page from sections: no network, no script, no external font; light, dark, phone and print.

A figure is drawn twice, for a desk and for a phone, and always has its numbers in a table that unfolds below it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from caged.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Template

# Widths in CSS pixels at which a chart is drawn one to one: the column of the page, half of it, and a phone.
WIDE, HALF, NARROW = 720, 348, 350

Draw = Callable[[int], str]  # a width in, SVG out


@dataclass(frozen=True)
class Column:
    """The head of a column; `meaning` appears on hover."""

    name: str
    meaning: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """Cells as text; the first of each row names the row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


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
class Section:
    title: str
    paragraphs: Sequence[str] = ()
    figure: Figure | None = None
    table: Table | None = None


@dataclass(frozen=True)
class Page:
    """What stands on a page, from top to bottom. Everything is plain text; `render` does the escaping."""

    title: str
    subtitle: str
    notice: str
    findings: Sequence[str]
    sections: Sequence[Section]
    command: str
    glossary: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str]] = field(default=())


def require_templates() -> None:
    """Fail where the template engine is missing; worth asking before anything expensive."""
    if importlib.util.find_spec("jinja2") is None:
        raise ConfigError(
            "pages need jinja2, which is not installed here; install the extra 'report': pip install 'caged[report]'"
        )


def render(page: Page) -> str:
    require_templates()
    return _template().render(page=page, widths={"wide": WIDE, "half": HALF, "narrow": NARROW})


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
