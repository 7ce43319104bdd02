"""Many trials in two metrics: a small dot each, the front that nobody beats in both, and names for a few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

from caged.page import svg
from caged.page.numbers import Format, decimal
from caged.page.scatter import Plot, framed, front_line, names_beside
from caged.page.svg import colour, label, tag, text_width

_LINE_HEIGHT = 20
_KEY_WIDTH = 16
FEWEST = 6  # dots of which some may be far from the others


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    look: int
    said: str  # on hover
    name: str = ""  # of a dot that stands out


def far_left(dots: Sequence[Dot], front: Sequence[Dot]) -> list[Dot]:
    """Dots so far to the left that the others would crowd if the axis reached them.

    As in a box plot: further from the middle half of all than one and a half times its width. Dots with a name and
    those on the front are never far.

    >>> [dot.x for dot in far_left([Dot(x, 0, 0, "") for x in (1, 10, 11, 12, 13, 14)], [])]
    [1]
    """
    if len(dots) < FEWEST:
        return []
    low, _, high = quantiles([dot.x for dot in dots], method="inclusive")
    return [dot for dot in dots if dot.x < low - 1.5 * (high - low) and not dot.name and dot not in front]


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

    Dots that are `far_left` stand at the left edge.
    """
    lines, keys = _legend(legend, width)
    far = far_left(dots, front)
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
    others = [_place(dot, plot) for dot in dots if not dot.name]
    drawn += names_beside(named, list(named), plot.box, others)
    return svg.drawing(drawn, title, description, width, height)


def _place(dot: Dot, plot: Plot) -> tuple[float, float]:
    """Those that the axis does not reach stand at its beginning."""
    return max(plot.across(dot.x), plot.box.left), plot.upward(dot.y)


def _drawn(dot: Dot, plot: Plot) -> str:
    x, y = _place(dot, plot)
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
