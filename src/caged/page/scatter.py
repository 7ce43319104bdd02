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
_SIDES = 6  # of a point, before a name moves further away
_FURTHEST = 9  # lines between a point and its name, where points are crowded
_BOLD = 1.1  # how much wider the names of the front are
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
    looks = looks or {name: index for index, name in enumerate(points)}
    drawn = list(plot.drawn)
    drawn.append(front_line([places[name] for name in front], plot))
    for name, (x, y) in places.items():
        point = points[name]
        said = [f"{x_label} {_said(point.x, point.x_interval, written)}"]
        said += [f"{y_label} {_said(point.y, point.y_interval, written)}"]
        reach = [] if plot.is_beyond(point.x) else _reach(point, x, y, plot, colour(looks[name]))
        mark = tag("g", tag("circle", cx=x, cy=y, r=11, fill="transparent"), *reach, svg.marker(looks[name], x, y))
        drawn.append(tag("g", svg.hover(f"{name}: {', '.join(said)}"), mark, class_="mark"))
    shown = {
        name: f"← {name} {written(point.x)}" if plot.is_beyond(point.x) else name for name, point in points.items()
    }
    drawn += names_beside({shown[name]: place for name, place in places.items()}, front, plot.box)
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


def _reach(point: Point, x: float, y: float, plot: Plot, stroke: str) -> list[str]:
    """The intervals as thin lines through the point."""
    ends = []
    if point.x_interval:
        start, end = (plot.place(value, point.y) for value in point.x_interval)
        ends.append((*start, *end))
    if point.y_interval:
        ends.append((x, plot.upward(point.y_interval[0]), x, plot.upward(point.y_interval[1])))
    style = f"stroke:{stroke};stroke-width:1.25"
    return [tag("line", x1=x1, y1=y1, x2=x2, y2=y2, style=style) for x1, y1, x2, y2 in ends]


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
    dots: Sequence[tuple[float, float]] = (),
) -> Iterator[str]:
    """Each name beside its point, on the first side where it touches no point with a name and no other name.

    Where there are `dots` without a name, on the side where it hides fewest of them, unless that is further away. A
    thin line leads to a name that stands further away, across no other name if that can be; lines lie below all names.
    """
    lines, names = [], []
    hidden = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in dots]
    taken = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in places.values()]
    for index, (name, (x, y)) in enumerate(places.items()):
        size = text_width(name) * (_BOLD if name in front else 1)
        others = [*taken[:index], *taken[index + 1 :]]
        boxes = list(_sides(x, y, size))
        free = [box for box in boxes if _inside(box, plot) and not any(box.touches(other) for other in others)]
        apart = [box for box in free if box in boxes[:_SIDES] or not _crosses(_leader_end(x, y, box), (x, y), others)]
        possible = apart or free or [box for box in boxes if _inside(box, plot)] or boxes[:1]
        box = _cheapest(possible, boxes, hidden)
        taken.append(box)
        if box not in boxes[:_SIDES]:
            lines.append(_leader(x, y, box))
        # A rim in the colour of the page keeps the name readable where a line passes behind it.
        rim = f"paint-order:stroke;stroke:{svg.SURFACE};stroke-width:4px;stroke-linejoin:round"
        style = f"fill:{svg.INK};{rim}{';font-weight:600' if name in front else ''}"
        names.append(tag("text", svg.words(name), x=box.left, y=box.bottom - 4, style=style))
    yield from (*lines, *names)


def _cheapest(possible: Sequence[Box], boxes: Sequence[Box], hidden: Sequence[Box]) -> Box:
    """The first that hides fewest; a step further away counts like a hidden dot."""
    if not hidden:
        return possible[0]
    return min(possible, key=lambda box: sum(map(box.touches, hidden)) + boxes.index(box) // _SIDES)


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


def _sides(x: float, y: float, size: float) -> Iterator[Box]:
    """Right, left, above, below, then further away."""
    for away in (_LINE * lines for lines in range(_FURTHEST)):
        for left, top in (
            (x + _MARK, y - _LINE / 2 - away),
            (x - _MARK - size, y - _LINE / 2 - away),
            (x - size / 2, y - _MARK - _LINE - away),
            (x - size / 2, y + _MARK + away),
            (x + _MARK, y - _LINE / 2 + away),
            (x - _MARK - size, y - _LINE / 2 + away),
        ):
            yield Box(left, top, left + size, top + _LINE)


def _inside(box: Box, plot: Box) -> bool:
    """Within the axes, or nearly: the numbers of the axes begin a little further out."""
    across = plot.left <= box.left and box.right <= plot.right + 12
    return across and plot.top <= box.top and box.bottom <= plot.bottom + 6
