"""Charts as accessible inline SVG: pure functions from numbers to a string, no dependency, no script.

    line_chart   values along a numeric axis, with optional bands
    bar_chart    groups of bars over ordered categories, with optional whiskers
    row_chart    one horizontal bar per row with its value beside it, with optional whiskers

A drawing has one width. Text does not shrink with it: draw a chart twice, at the width of a desk and of a phone, and
let the page show the one that fits. Values that are not finite are left out. Every mark says its value on hover; the
drawing as a whole has a name (`title`) and a description, and its numbers belong into a table beside it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from caged.page import svg
from caged.page.numbers import Format, alike, decimal
from caged.page.svg import Scale, colour, label, tag, text_width

_LINE_HEIGHT = 20
_KEY_WIDTH = 28
_WORD_GAP = 3  # between two words below an axis
_ROOMY = 520  # from this width on there is room for names beside the ends of lines
_ROW_HEIGHT = 36


@dataclass(frozen=True)
class Series:
    """A named sequence of values, with an interval around each where one is known.

    `look` chooses colour, marker and pattern, so that a method looks the same in every chart of a page; by default
    the place in the chart decides. `REFERENCE` is for what the others are compared with. `measured` is false for a
    level that goes all along the axis: it has no points.
    """

    name: str
    values: Sequence[float]
    lower: Sequence[float] | None = None
    upper: Sequence[float] | None = None
    look: int | None = None
    measured: bool = True

    @property
    def extremes(self) -> list[float]:
        return [*self.values, *(self.lower or ()), *(self.upper or ())]

    def interval(self, index: int) -> tuple[float, float] | None:
        if self.lower is None or self.upper is None:
            return None
        pair = self.lower[index], self.upper[index]
        return pair if all(map(math.isfinite, pair)) else None


@dataclass(frozen=True)
class Row:
    """One bar of a row chart."""

    name: str
    value: float
    lower: float | None = None
    upper: float | None = None
    look: int | None = None


@dataclass(frozen=True)
class _Plot:
    """The rectangle inside the axes."""

    left: float
    top: float
    right: float
    bottom: float


def line_chart(
    x: Sequence[float],
    series: Sequence[Series],
    *,
    title: str,
    description: str = "",
    x_label: str = "",
    y_label: str = "",
    x_names: Sequence[str] | None = None,
    x_ticks: Sequence[float] | None = None,
    x_format: Format = decimal,
    y_format: Format = decimal,
    y_levels: Sequence[float] | None = None,
    width: int = 720,
    height: int = 320,
    markers: bool = True,
    legend: bool = True,
    logarithmic: bool = False,
) -> str:
    """Lines over a shared numeric axis; `x_names` are the words for each place on hover, `x_ticks` the places that
    are written below the axis (by default all), which it reaches. `y_levels` are those of the vertical axis, which by
    default begins at zero.

    Without `markers` the points are seen only under the pointer: for smooth curves of many points. Without `legend`
    no line is named: for one that the title of the chart names. `logarithmic` is the horizontal axis of positive
    places, and `x_label` has to say so.
    """
    names = x_names or [x_format(place) for place in x]
    below = x_ticks or x
    words = svg.tick_texts(below, x_format) if x_ticks else [x_format(place) for place in x]
    if logarithmic:
        x, below = [math.log10(place) for place in x], [math.log10(place) for place in below]
    series = _with_looks(series)
    levels = list(y_levels or svg.ticks([value for one in series for value in one.extremes]))
    named_at_ends = legend and width >= _ROOMY and _ends_apart(series, Scale(levels[0], levels[-1], 0, height - 100))
    key = _line_key if markers else _bare_line_key
    heading, top = _heading(y_label, series if legend and not named_at_ends else (), width, key)
    right = 20 + (max((text_width(one.name) for one in series), default=0) + 12 if named_at_ends else 0)
    plot = _Plot(_gutter(levels, y_format), top, width - right, height - 48)
    low, high = min([*x, *below]), max([*x, *below])
    across = Scale(low, high if high > low else low + 1, plot.left + 10, plot.right - 10)
    upward = Scale(levels[0], levels[-1], plot.bottom, plot.top)
    drawn = [heading, *_level_lines(levels, upward, plot, y_format)]
    drawn += _places(list(zip(map(across, below), words, strict=True)), plot, x_label)
    for one in series:
        drawn += [_band(one, x, across, upward), _line(one, x, across, upward)]
    for one in series:
        drawn += _points(one, names, [across(place) for place in x], upward, y_format, seen=markers and one.measured)
    if named_at_ends:
        drawn += _names_at_ends(series, plot.right, upward)
    return svg.drawing(drawn, title, description, width, height)


def bar_chart(
    categories: Sequence[str],
    series: Sequence[Series],
    *,
    title: str,
    description: str = "",
    x_label: str = "",
    y_label: str = "",
    category_names: Sequence[str] | None = None,
    y_format: Format = decimal,
    width: int = 720,
    height: int = 340,
) -> str:
    """A group of bars per category, one bar per series; `category_names` are the words on hover."""
    series = _with_looks(series)
    prefix = _prefix(title, width)
    heading, top = _heading(y_label, series, width, lambda one, x, y: svg.bar(_look(one), x, y - 10, 20, 12, prefix))
    levels = svg.ticks([value for one in series for value in one.extremes])
    plot = _Plot(_gutter(levels, y_format), top, width - 8, height - 48)
    upward = Scale(levels[0], levels[-1], plot.bottom, plot.top)
    group = (plot.right - plot.left) / max(1, len(categories))
    thick = 0.82 * group / max(1, len(series))
    drawn = [svg.patterns([_look(one) for one in series], prefix), heading]
    drawn += _level_lines(levels, upward, plot, y_format)
    centres = [plot.left + (index + 0.5) * group for index in range(len(categories))]
    drawn += _places(list(zip(centres, categories, strict=True)), plot, x_label)
    for place, one in enumerate(series):
        for index, value in enumerate(one.values):
            if not math.isfinite(value):
                continue
            start = centres[index] - 0.41 * group + place * thick
            ends = sorted((upward(value), upward(0)))
            words_of_mark = f"{(category_names or categories)[index]}, {one.name}: {_said(one, index, y_format)}"
            # The whole column answers the pointer: bars near zero are too small to be hit.
            target = tag("rect", x=start, y=plot.top, width=thick, height=plot.bottom - plot.top, fill="transparent")
            painted = svg.bar(_look(one), start + 0.5, ends[0], thick - 1, ends[1] - ends[0], prefix)
            whisker = _whisker(one.interval(index), upward, start + thick / 2, vertical=True)
            drawn.append(tag("g", svg.hover(words_of_mark), target, painted, whisker, class_="mark"))
    return svg.drawing(drawn, title, description, width, height)


def row_chart(
    rows: Sequence[Row],
    *,
    title: str,
    description: str = "",
    x_label: str = "",
    x_format: Format = decimal,
    tick_format: Format | None = None,
    width: int = 350,
) -> str:
    """Horizontal bars from zero, the value written beside each; values may be negative (differences)."""
    series = _with_looks([_as_series(row) for row in rows])
    prefix = _prefix(title, width)
    names = min(max((text_width(one.name) for one in series), default=0) + 14, 0.45 * width)
    written = alike([x_format(row.value) for row in rows])
    values = max(map(text_width, written), default=0) + 10
    extremes = [value for one in series for value in one.extremes if math.isfinite(value)]
    lowest = min([0.0, *extremes])
    levels = [level for level in svg.ticks(extremes, count=3) if level >= lowest]
    bottom = 8 + _ROW_HEIGHT * len(rows)
    negative = any(row.value < 0 for row in rows)
    plot = _Plot(names + (values if negative else 0), 4, width - values, bottom)
    across = Scale(lowest, levels[-1], plot.left, plot.right)
    drawn = [svg.patterns([_look(one) for one in series], prefix)]
    drawn += [svg.rule(across(level), plot.top, across(level), plot.bottom, strong=level == 0) for level in levels]
    for level, text in _apart(levels, across, tick_format or x_format):
        drawn.append(label(text, across(level), plot.bottom + 18, anchor="middle", faint=True))
    for index, one in enumerate(series):
        middle = 8 + (index + 0.5) * _ROW_HEIGHT
        drawn.append(label(svg.shortened(one.name, names - 10), names - 10, middle + 4.5, anchor="end"))
        drawn.append(_row_mark(one, middle, across, x_format, written[index], prefix))
    if x_label:
        drawn.append(label(x_label, plot.left, bottom + 40, faint=True))
    return svg.drawing(drawn, title, description, width, bottom + (50 if x_label else 28))


# ---------------------------------------------------------------- parts


def _with_looks(series: Sequence[Series]) -> list[Series]:
    return [replace(one, look=index) if one.look is None else one for index, one in enumerate(series)]


def _look(one: Series) -> int:
    return 0 if one.look is None else one.look


def _as_series(row: Row) -> Series:
    lower = None if row.lower is None else [row.lower]
    upper = None if row.upper is None else [row.upper]
    return Series(row.name, [row.value], lower, upper, row.look)


def _prefix(title: str, width: int) -> str:
    """Identifiers that differ from those of other drawings of a page, and stay the same from run to run."""
    return f"c{zlib.crc32(title.encode()):08x}-{width}"


def _said(one: Series, index: int, written: Format) -> str:
    interval = one.interval(index)
    between = f" ({written(interval[0])} to {written(interval[1])})" if interval else ""
    return written(one.values[index]) + between


def _gutter(levels: Sequence[float], written: Format) -> float:
    return max(map(text_width, svg.tick_texts(levels, written))) + 14


def _heading(
    y_label: str, series: Sequence[Series], width: int, key: Callable[[Series, float, float], str]
) -> tuple[str, float]:
    """The name of the vertical axis, then the legend in as many lines as it needs; and where the plot may begin."""
    drawn, y = [], 14.0
    if y_label:
        drawn.append(label(y_label, 0, y, faint=True))
        y += _LINE_HEIGHT + 4
    x = 0.0
    for one in series:
        needed = _KEY_WIDTH + text_width(one.name) + 18
        if x and x + needed > width:
            x, y = 0.0, y + _LINE_HEIGHT
        drawn.append(key(one, x, y))
        drawn.append(label(one.name, x + _KEY_WIDTH, y))
        x += needed
    return "".join(drawn), y + (22 if series else 0)


def _bare_line_key(one: Series, x: float, y: float) -> str:
    return _stroke(f"M{x:.1f},{y - 4:.1f} h22", one)


def _line_key(one: Series, x: float, y: float) -> str:
    return _bare_line_key(one, x, y) + (svg.marker(_look(one), x + 11, y - 4) if one.measured else "")


def _level_lines(levels: Sequence[float], upward: Scale, plot: _Plot, written: Format) -> Iterator[str]:
    for level, text in zip(levels, svg.tick_texts(levels, written), strict=True):
        y = upward(level)
        yield svg.rule(plot.left, y, plot.right, y, strong=level == 0)
        yield label(text, plot.left - 8, y + 4.5, anchor="end", faint=True)


def _apart(levels: Sequence[float], across: Scale, written: Format) -> list[tuple[float, str]]:
    """Zero and every second (third, ...) level to both sides of it, so that their words do not touch."""
    texts = svg.tick_texts(levels, written)
    widest = max(map(text_width, texts)) + 10
    room = across(levels[1]) - across(levels[0])
    every = max(1, math.ceil(widest / room))
    zero = min(range(len(levels)), key=lambda place: abs(levels[place]))
    return [pair for place, pair in enumerate(zip(levels, texts, strict=True)) if (place - zero) % every == 0]


def _places(places: Sequence[tuple[float, str]], plot: _Plot, x_label: str) -> Iterator[str]:
    """The words below the horizontal axis; where they would touch, only every second (third, ...) is written, and of
    places that are not as far from each other as the others those that touch no word before them."""
    widest = max((text_width(text) for _, text in places), default=0) + 8
    room = (plot.right - plot.left) / max(1, len(places))
    every = max(1, math.ceil(widest / room))
    end = -math.inf
    for x, text in places[::every]:
        half = text_width(text) / 2
        if x - half < end:
            continue
        end = x + half + _WORD_GAP
        yield label(text, x, plot.bottom + 19, anchor="middle", faint=True)
    if x_label:
        yield label(x_label, (plot.left + plot.right) / 2, plot.bottom + 41, anchor="middle", faint=True)


def _stroke(path: str, one: Series) -> str:
    look = _look(one)
    dashed = f";stroke-dasharray:{svg.dash(look)}" if svg.dash(look) else ""
    style = f"fill:none;stroke:{colour(look)};stroke-width:2.25;stroke-linejoin:round{dashed}"
    return tag("path", d=path, style=style)


def _line(one: Series, x: Sequence[float], across: Scale, upward: Scale) -> str:
    """One path; a value that is not finite interrupts it."""
    path, pen = [], "M"
    for place, value in zip(x, one.values, strict=True):
        if math.isfinite(value):
            path.append(f"{pen}{across(place):.1f},{upward(value):.1f}")
        pen = "L" if math.isfinite(value) else "M"
    return _stroke(" ".join(path), one) if path else ""


def _band(one: Series, x: Sequence[float], across: Scale, upward: Scale) -> str:
    known = [(across(place), one.interval(index)) for index, place in enumerate(x)]
    edges = [(place, interval) for place, interval in known if interval]
    if not edges:
        return ""
    over = [f"{place:.1f},{upward(high):.1f}" for place, (_, high) in edges]
    under = [f"{place:.1f},{upward(low):.1f}" for place, (low, _) in reversed(edges)]
    return tag("polygon", points=" ".join(over + under), style=f"fill:{colour(_look(one))};fill-opacity:.18")


def _points(
    one: Series, names: Sequence[str], places: Sequence[float], upward: Scale, written: Format, *, seen: bool
) -> list[str]:
    return [
        tag(
            "g",
            "" if seen else tag("circle", cx=x, cy=upward(value), r=9, fill="transparent"),
            svg.marker(_look(one), x, upward(value), title=f"{name}, {one.name}: {_said(one, index, written)}"),
            **({"class_": "mark"} if seen else {"class_": "mark quiet", "opacity": 0}),
        )
        for index, (name, x, value) in enumerate(zip(names, places, one.values, strict=True))
        if math.isfinite(value)
    ]


def _last(one: Series) -> float | None:
    return next((value for value in reversed(one.values) if math.isfinite(value)), None)


def _ends_apart(series: Sequence[Series], upward: Scale) -> bool:
    """Whether names beside the ends of the lines would not touch."""
    ends = sorted(upward(value) for value in map(_last, series) if value is not None)
    return all(above - below >= _LINE_HEIGHT for below, above in pairwise(ends))


def _names_at_ends(series: Sequence[Series], x: float, upward: Scale) -> Iterator[str]:
    for one in series:
        value = _last(one)
        if value is not None:
            yield label(one.name, x + 4, upward(value) + 4.5)


def _whisker(interval: tuple[float, float] | None, scale: Scale, at: float, *, vertical: bool) -> str:
    if interval is None:
        return ""
    low, high = scale(interval[0]), scale(interval[1])
    if vertical:
        path = f"M{at - 3:.1f},{low:.1f} h6 M{at:.1f},{low:.1f} V{high:.1f} M{at - 3:.1f},{high:.1f} h6"
    else:
        path = f"M{low:.1f},{at - 4:.1f} v8 M{low:.1f},{at:.1f} H{high:.1f} M{high:.1f},{at - 4:.1f} v8"
    return tag("path", d=path, style=f"fill:none;stroke:{svg.INK};stroke-width:1.5")


def _row_mark(one: Series, middle: float, across: Scale, written: Format, beside_it: str, prefix: str) -> str:
    value = one.values[0]
    if not math.isfinite(value):
        return label("-", across(0) + 8, middle + 4.5, faint=True)
    interval = one.interval(0)
    start, end = sorted((across(0), across(value)))
    painted = svg.bar(_look(one), start, middle - 10, end - start, 20, prefix)
    reach = [across(edge) for edge in interval] if interval else []
    beside = max([end, *reach]) + 8 if value >= 0 else min([start, *reach]) - 8
    return tag(
        "g",
        svg.hover(f"{one.name}: {_said(one, 0, written)}"),
        painted,
        _whisker(interval, across, middle, vertical=False),
        label(beside_it, beside, middle + 4.5, anchor="start" if value >= 0 else "end", bold=True),
        class_="mark",
    )
