"""Many trials in two metrics: a small dot each, the front that nobody beats in both, and names for a few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caged.page import svg
from caged.page.numbers import Format, decimal
from caged.page.scatter import Box, Plot, far_left, framed, front_line, names_beside
from caged.page.svg import colour, label, tag, text_width

_LINE_HEIGHT = 20
_KEY_WIDTH = 16


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    look: int
    said: str  # on hover
    name: str = ""  # of a dot that stands out


def far_dots(dots: Sequence[Dot], front: Sequence[Dot]) -> list[Dot]:
    """Dots so far to the left that they stand at the edge; those with a name and those on the front never do."""
    named = {str(index): dot for index, dot in enumerate(dots)}
    kept = [index for index, dot in named.items() if dot.name or dot in front]
    return [named[index] for index in far_left({index: dot.x for index, dot in named.items()}, kept)]


def cloud(
    dots: Sequence[Dot],
    front: Sequence[Dot],
    legend: Mapping[str, int],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    x_limit: tuple[float, str] | None = None,
    written: Format = decimal,
    width: int = 720,
    height: int = 420,
) -> str:
    """`front` by x, ascending; `x_limit` is a value that a constraint sets, and what to call it.

    Those of `far_dots` stand at the left edge.
    """
    lines, keys = _legend(legend, width)
    far = far_dots(dots, front)
    xs = [dot.x for dot in dots if dot not in far] + ([x_limit[0]] if x_limit else [])
    top = 34.0 + lines * _LINE_HEIGHT
    plot = framed(xs, [dot.y for dot in dots], x_label, y_label, written=written, width=width, height=height, top=top)
    drawn = [*keys, *plot.drawn]
    if x_limit is not None:
        drawn += _limit(*x_limit, plot)
    drawn.append(front_line([(plot.across(dot.x), plot.upward(dot.y)) for dot in front], plot))
    ordered = sorted(dots, key=lambda dot: bool(dot.name))  # what stands out lies on top
    drawn += [_drawn(dot, plot) for dot in ordered]
    named = {dot.name: (plot.across(dot.x), plot.upward(dot.y)) for dot in dots if dot.name}
    others = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in (plot.place(dot.x, dot.y) for dot in dots if not dot.name)]
    drawn += names_beside(named, list(named), plot.box, others)
    return svg.drawing(drawn, title, description, width, height)


def _drawn(dot: Dot, plot: Plot) -> str:
    x, y = plot.place(dot.x, dot.y)
    ring = f"fill:none;stroke:{colour(dot.look)};stroke-width:1.75"
    parts = [tag("circle", cx=x, cy=y, r=9, fill="transparent"), svg.marker(dot.look, x, y)]
    parts += [tag("circle", cx=x, cy=y, r=7, style=ring)] if dot.name else []
    return tag("g", svg.hover(dot.said), *parts, class_="mark")


def _limit(value: float, words: str, plot: Plot) -> list[str]:
    x, box = plot.across(value), plot.box
    room = box.right - x > text_width(words) + 6
    return [
        svg.rule(x, box.top, x, box.bottom, strong=True),
        label(words, x + (5 if room else -5), box.top + 12, anchor="start" if room else "end", faint=True),
    ]


def _legend(looks: Mapping[str, int], width: int) -> tuple[int, list[str]]:
    """Markers with names in as many lines as they need, and the number of these lines."""
    drawn, x, line = [], 0.0, 1
    for name, look in looks.items():
        needed = _KEY_WIDTH + text_width(name) + 16
        if x and x + needed > width:
            x, line = 0.0, line + 1
        y = 14.0 + (line - 1) * _LINE_HEIGHT
        drawn += [svg.marker(look, x + 6, y - 4), label(name, x + _KEY_WIDTH, y)]
        x += needed
    return line, drawn
