"""Two metrics against each other: one point per method, and the front of those that nobody beats in both."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import quantiles
from typing import Literal

from caged.page import svg
from caged.page.numbers import Format, decimal
from caged.page.svg import Scale, colour, label, tag, text_width

_MARK = 9.0  # distance between a point and its name
_LINE = 16.0  # height of a name
_INTO = 5.0  # how much nearer a name stands in the corner between two intervals
_HIDDEN = 2  # lines that a name moves away rather than hide something
_FURTHEST = 9  # lines between a point and its name, where points are crowded
_BOLD = 1.1  # how much wider the names of the front are
_WIDEST = 0.6  # of the width between the axes, for a name in one line
_SHARES = (0.45, 0.3, 0.2)  # of that width, for a name in several lines
_MOST_LINES = 3
FEWEST = 6  # points of which some may be far from the others


@dataclass(frozen=True)
class Box:
    """The place of a name on the drawing."""

    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


Bounds = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """Two values, and the interval of each where one is known."""

    x: float
    y: float
    x_interval: Bounds | None = None
    y_interval: Bounds | None = None


def scatter(
    points: Mapping[str, Point],
    front: Sequence[str],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    written: Format = decimal,
    looks: Mapping[str, int] | None = None,
    width: int = 720,
    height: int = 400,
) -> str:
    """Points with their names beside them; a stepped line joins the front. Both axes show where the points are.

    Points that are `far_left` may stand at the left edge, with an arrow and their value beside the name.
    """
    far = far_left({name: point.x for name, point in points.items()}, front)
    near = {name: point for name, point in points.items() if name not in far}
    plot = framed(
        _reached(near, "x"), _reached(points, "y"), x_label, y_label, written=written, width=width, height=height
    )
    places = {name: plot.place(point.x, point.y) for name, point in points.items()}
    reaches = {name: _reach(point, plot) for name, point in points.items()}
    looks = looks or {name: index for index, name in enumerate(points)}
    shown = {
        name: f"← {name} {written(point.x)}" if plot.is_beyond(point.x) else name for name, point in points.items()
    }
    drawn = [*plot.drawn, front_line([places[name] for name in front], plot)]
    # Names lie below the marks: their rims would erase intervals.
    hidden = [one for reach in reaches.values() for one in reach]
    drawn += names_beside({shown[name]: place for name, place in places.items()}, front, plot.box, hidden)
    for name, (x, y) in places.items():
        point = points[name]
        said = [f"{x_label} {_said(point.x, point.x_interval, written)}"]
        said += [f"{y_label} {_said(point.y, point.y_interval, written)}"]
        bars = [_bar(one, colour(looks[name])) for one in reaches[name]]
        mark = tag("g", tag("circle", cx=x, cy=y, r=11, fill="transparent"), *bars, svg.marker(looks[name], x, y))
        drawn.append(tag("g", svg.hover(f"{name}: {', '.join(said)}"), mark, class_="mark"))
    return svg.drawing(drawn, title, description, width, height)


def far_left(xs: Mapping[str, float], kept: Container[str] = ()) -> list[str]:
    """Names of values so far to the left that the others would crowd if the axis reached them; never of those `kept`.

    As in a box plot: further from the middle half of all than one and a half times its width.

    >>> far_left({"a": 1, "b": 10, "c": 11, "d": 12, "e": 13, "f": 14})
    ['a']
    """
    if len(xs) < FEWEST:
        return []
    low, _, high = quantiles(xs.values(), method="inclusive")
    return [name for name, x in xs.items() if x < low - 1.5 * (high - low) and name not in kept]


@dataclass(frozen=True)
class Plot:
    """Axes with their numbers, and the scales between them."""

    box: Box
    across: Scale
    upward: Scale
    drawn: Sequence[str]

    def is_beyond(self, x: float) -> bool:
        """Whether a value lies further left than the axis reaches."""
        return self.across(x) < self.box.left

    def place(self, x: float, y: float) -> tuple[float, float]:
        """On the drawing; what the axis does not reach stands at its beginning."""
        return max(self.across(x), self.box.left), self.upward(y)


def framed(
    xs: Sequence[float],
    ys: Sequence[float],
    x_label: str,
    y_label: str,
    *,
    written: Format,
    width: int,
    height: int,
    top: float = 30.0,
) -> Plot:
    """Both axes show where the values are; above `top` there is the name of the vertical one, and room."""
    x_levels, y_levels = zoomed_ticks(xs, 3 if width < 500 else 5), zoomed_ticks(ys, 5)
    left, right = max(map(text_width, svg.tick_texts(y_levels, written))) + 14, width - 16
    bottom = height - 48.0
    across = Scale(x_levels[0], x_levels[-1], left + 4, right - 4)
    upward = Scale(y_levels[0], y_levels[-1], bottom - 4, top + 4)
    drawn = [label(y_label, 0, top - 16, faint=True), label(x_label, right, height - 8, anchor="end", faint=True)]
    for level, text in zip(y_levels, svg.tick_texts(y_levels, written), strict=True):
        drawn += [svg.rule(left, upward(level), right, upward(level))]
        drawn += [label(text, left - 8, upward(level) + 4.5, anchor="end", faint=True)]
    for level, text in zip(x_levels, svg.tick_texts(x_levels, written), strict=True):
        drawn += [svg.rule(across(level), top, across(level), bottom)]
        drawn += [label(text, across(level), bottom + 19, anchor="middle", faint=True)]
    return Plot(Box(left, top, right, bottom), across, upward, drawn)


def zoomed_ticks(values: Sequence[float], count: int = 5) -> list[float]:
    """Round numbers around the values, with some room; zero is shown only where it is near.

    >>> zoomed_ticks([0.31, 0.33, 0.34])
    [0.3, 0.31, 0.32, 0.33, 0.34, 0.35]
    >>> zoomed_ticks([0.2, 0.2])
    [0.1, 0.15, 0.2, 0.25, 0.3]
    """
    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 0.5 * abs(high) or 0.5
    start, end = low - room, high + room
    if low >= 0 and start < 0.25 * (high - low):
        start = 0.0
    return svg.round_steps(start, end, count)


def _reached(points: Mapping[str, Point], axis: Literal["x", "y"]) -> list[float]:
    """Everything that the axis has to show."""
    return [
        value
        for point in points.values()
        for value in (getattr(point, axis), *(getattr(point, f"{axis}_interval") or ()))
    ]


def _said(value: float, interval: Bounds | None, written: Format) -> str:
    return written(value) + (f" ({written(interval[0])} to {written(interval[1])})" if interval else "")


def _reach(point: Point, plot: Plot) -> list[Box]:
    """The intervals as lines through the point, boxes without a height or a width; none beyond the axis."""
    if plot.is_beyond(point.x):
        return []
    (x, y), found = plot.place(point.x, point.y), []
    if point.x_interval:
        left, right = (plot.place(value, point.y)[0] for value in point.x_interval)
        found.append(Box(left, y, right, y))
    if point.y_interval:
        bottom, top = map(plot.upward, point.y_interval)
        found.append(Box(x, top, x, bottom))
    return found


def _bar(reach: Box, stroke: str) -> str:
    style = f"stroke:{stroke};stroke-width:1.25"
    return tag("line", x1=reach.left, y1=reach.top, x2=reach.right, y2=reach.bottom, style=style)


def front_line(places: Sequence[tuple[float, float]], plot: Plot) -> str:
    """The edge of what is reached: whatever lies below or left of it is beaten by somebody."""
    if not places:
        return ""
    path = [f"M{plot.box.left:.1f},{places[0][1]:.1f}", f"H{places[0][0]:.1f}"]
    path += [f"V{y:.1f} H{x:.1f}" for _, (x, y) in pairwise(places)]
    path.append(f"V{plot.box.bottom:.1f}")
    style = f"fill:none;stroke:{colour(svg.REFERENCE)};stroke-width:1.5;stroke-dasharray:{svg.dash(svg.REFERENCE)}"
    return tag("path", d=" ".join(path), style=style)


def names_beside(
    places: Mapping[str, tuple[float, float]],
    front: Sequence[str],
    plot: Box,
    hidden: Sequence[Box] = (),
) -> Iterator[str]:
    """Each name beside its point, where it touches no point with a name and no other name.

    Of such places, on the side where it lies on fewest of what it would hide, unless that is further away. A thin line
    leads to a name that stands further away, across no other name if that can be; lines lie below all names. A name
    that fits nowhere is broken into lines, and at last cut off.
    """
    lines, names = [], []
    taken = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in places.values()]
    for index, (name, (x, y)) in enumerate(places.items()):
        wider = _BOLD if name in front else 1.0
        others = [*taken[:index], *taken[index + 1 :]]
        found = _placed(name, (x, y), wider, plot, others, hidden)
        taken.append(found.box)
        if found.away:
            lines.append(_leader(x, y, found.box))
        # A rim in the colour of the page keeps the name readable where a line passes behind it.
        rim = f"paint-order:stroke;stroke:{svg.SURFACE};stroke-width:4px;stroke-linejoin:round"
        style = f"fill:{svg.INK};{rim}{';font-weight:600' if name in front else ''}"
        for below, line in enumerate(reversed(found.lines)):
            bottom = found.box.bottom - 4 - below * _LINE
            names.append(tag("text", svg.words(line), x=found.box.left, y=bottom, style=style))
    yield from (*lines, *names)


@dataclass(frozen=True)
class _Placed:
    """A name in lines, its place, and how many lines away from its point that is."""

    lines: Sequence[str]
    box: Box
    away: int


def _placed(
    name: str, point: tuple[float, float], wider: float, plot: Box, others: Sequence[Box], hidden: Sequence[Box]
) -> _Placed:
    """The cheapest place of the first form that has a free one; else where the last form hides least."""
    possible: list[_Placed] = []
    for lines in _forms(name, wider, plot.right - plot.left):
        size = wider * max(map(text_width, lines)), _LINE * len(lines)
        around = [_Placed(lines, box, away) for away, box in _sides(*point, *size)]
        possible = [one for one in around if _inside(one.box, plot)] or around[:1]
        free = [one for one in possible if _inside(one.box, plot) and not any(map(one.box.touches, others))]
        if free:
            reached = [one for one in free if not one.away or not _is_cut_off(point, one.box, others)]
            return _cheapest(reached or free, hidden)
    return _cheapest(possible, [*hidden, *others])


def _forms(name: str, wider: float, room: float) -> Iterator[list[str]]:
    """In one line where that leaves room for others, then in more and shorter lines."""
    if wider * text_width(name) <= _WIDEST * room:
        yield [name]
    for share in _SHARES:
        width = share * room / wider
        lines = svg.lines_within(name, width)
        kept = [*lines[: _MOST_LINES - 1], " ".join(lines[_MOST_LINES - 1 :])][: len(lines)]
        yield [svg.shortened(line, width) for line in kept]


def _cheapest(possible: Sequence[_Placed], hidden: Sequence[Box]) -> _Placed:
    """The first that hides fewest, unless that is further away."""
    return min(possible, key=lambda one: _HIDDEN * sum(map(one.box.touches, hidden)) + one.away)


def _is_cut_off(point: tuple[float, float], box: Box, others: Sequence[Box]) -> bool:
    """Whether the line from a point to its name would cross others; those at the point itself it cannot avoid."""
    crossed = [one for one in others if not one.touches(Box(*point, *point))]
    return _crosses(_leader_end(*point, box), point, crossed)


def _leader(x: float, y: float, box: Box) -> str:
    """From a point to its name."""
    end_x, end_y = _leader_end(x, y, box)
    return tag("line", x1=x, y1=y, x2=end_x, y2=end_y, style=f"stroke:{svg.FAINT_INK};stroke-width:.75")


def _leader_end(x: float, y: float, box: Box) -> tuple[float, float]:
    """The spot of a name that is nearest, less its rim: how wide a name is drawn is known roughly."""
    rim = min(8.0, (box.right - box.left) / 4)
    return min(max(x, box.left + rim), box.right - rim), min(max(y, box.top + 3), box.bottom - 3)


def _crosses(start: tuple[float, float], end: tuple[float, float], boxes: Sequence[Box]) -> bool:
    """Whether a straight line passes through one of the boxes."""
    steps = max(1, math.ceil(math.dist(start, end) / 3))
    spots = [
        (start[0] + (end[0] - start[0]) * step / steps, start[1] + (end[1] - start[1]) * step / steps)
        for step in range(steps + 1)
    ]
    return any(box.left < x < box.right and box.top < y < box.bottom for box in boxes for x, y in spots)


def _sides(x: float, y: float, width: float, height: float) -> Iterator[tuple[int, Box]]:
    """Right, left, above, below and the corners between them, then further away; and how many lines away that is."""
    right, left, middle = x + _MARK, x - _MARK - width, x - width / 2
    above, beside, below = y - _MARK - height, y - height / 2, y + _MARK
    near = [(right, beside), (left, beside), (middle, above), (middle, below)]
    near += [(start, top) for top in (above + _INTO, below - _INTO) for start in (right - _INTO, left + _INTO)]
    spots = [(0, start, top) for start, top in near]
    for away in range(1, _FURTHEST):
        up, down = -_LINE * away, _LINE * away
        spots += [(away, right, beside + up), (away, left, beside + up), (away, middle, above + up)]
        spots += [(away, middle, below + down), (away, right, beside + down), (away, left, beside + down)]
    for away, start, top in spots:
        yield away, Box(start, top, start + width, top + height)


def _inside(box: Box, plot: Box) -> bool:
    """Within the axes, or nearly: the numbers of the axes begin a little further out."""
    across = plot.left <= box.left and box.right <= plot.right + 12
    return across and plot.top <= box.top and box.bottom <= plot.bottom + 6
