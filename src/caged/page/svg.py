"""What the charts are drawn with: elements as strings, text widths, axis ticks, and the look of a series.

Colours are CSS variables, so that one drawing serves light and dark pages; each has a fallback for a page without
them. No series is told apart by colour alone: lines also differ in dash and marker, bars in pattern.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

REFERENCE = -1  # the look of what the series are compared with: grey, dashed, without a fill
FONT_SIZE = 13

INK, FAINT_INK, RULE, SURFACE = (
    f"var(--{name}, {fallback})"
    for name, fallback in (("ink", "#1c2330"), ("ink-2", "#5a6372"), ("rule", "#dfe3e9"), ("surface", "#fff"))
)
# Okabe and Ito's colours that stand out on white; the page replaces them on a dark ground.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "12 4", "4 2")
_MARKERS = ("circle", "square", "triangle", "diamond", "circle", "square")
_PATTERNS = ("", "M0,6 L6,0", "M0,3 L6,3", "M3,0 L3,6", "M0,0 L6,6", "M0,3 L6,3 M3,0 L3,6")
_NARROW, _WIDE = "fijlt.,:;!|'()[] I", "mwMW@%"


def tag(name: str, *children: str, **attributes: object) -> str:
    """An element; attributes are escaped (`stroke_width` becomes `stroke-width`), children are markup already.

    >>> tag("text", words("a < b"), x=1.25, class_="label")
    '<text x="1.2" class="label">a &lt; b</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def words(text: str) -> str:
    return escape(text, quote=False)


def label(text: str, x: float, y: float, *, anchor: str = "start", faint: bool = False, bold: bool = False) -> str:
    style = f"fill:{FAINT_INK if faint else INK}" + (";font-weight:600" if bold else "")
    return tag("text", words(text), x=x, y=y, text_anchor=anchor, style=style)


def hover(text: str) -> str:
    return tag("title", words(text))


def rule(x1: float, y1: float, x2: float, y2: float, *, strong: bool = False) -> str:
    style = f"stroke:{FAINT_INK if strong else RULE};stroke-width:1"
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, style=style)


def drawing(parts: Sequence[str], title: str, description: str, width: int, height: float) -> str:
    described = tag("desc", words(description)) if description else ""
    return tag(
        "svg",
        described,
        *parts,
        class_="chart",
        viewBox=f"0 0 {width} {height:.0f}",
        role="img",
        aria_label=title,
        font_size=FONT_SIZE,
        font_family="system-ui, sans-serif",
    )


def text_width(text: str) -> float:
    """Rough width at the font size of the charts; fonts differ, so layouts keep some room.

    >>> text_width("ill") < text_width("abc") < text_width("MWM")
    True
    """
    return FONT_SIZE * sum(map(_em, text))


def shortened(text: str, room: float) -> str:
    """As much of `text` as fits, with an ellipsis where something was cut off.

    >>> shortened("short", 100), shortened("a rather long name of a method", 100)
    ('short', 'a rather lon...')
    """
    if text_width(text) <= room:
        return text
    kept = next((end for end in range(len(text), 0, -1) if text_width(text[:end] + "...") <= room), 1)
    return text[:kept].rstrip() + "..."


def _em(letter: str) -> float:
    if letter in _NARROW:
        return 0.34
    if letter in _WIDE:
        return 0.95
    return 0.7 if letter.isupper() else 0.61


def _attribute(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- scales


@dataclass(frozen=True)
class Scale:
    """From values low..high to coordinates start..end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(values: Sequence[float], count: int = 5) -> list[float]:
    """Round numbers that enclose the finite values and zero, about `count` steps.

    >>> ticks([0.31, 0.58])
    [0.0, 0.2, 0.4, 0.6]
    >>> ticks([-0.02, 0.05])
    [-0.02, 0.0, 0.02, 0.04, 0.06]
    >>> ticks([math.nan])
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    if low == high:
        high = 1.0
    return round_steps(low, high, count)


def round_steps(low: float, high: float, count: int) -> list[float]:
    """Multiples of a round number from the last below `low` to the first above `high`, about `count` steps."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(nice for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


# ---------------------------------------------------------------- the look of a series


def colour(look: int) -> str:
    if look == REFERENCE:
        return "var(--reference, #6b7480)"
    index = look % len(_COLOURS)
    return f"var(--series-{index}, {_COLOURS[index]})"


def dash(look: int) -> str:
    return "3 4" if look == REFERENCE else _DASHES[look % len(_DASHES)]


def marker(look: int, x: float, y: float, *, title: str = "") -> str:
    """A point; its shape differs from look to look, hollow for a reference."""
    shape = "circle" if look == REFERENCE else _MARKERS[look % len(_MARKERS)]
    fill = SURFACE if look == REFERENCE else colour(look)
    style = f"fill:{fill};stroke:{colour(look)};stroke-width:1.5"
    inner = [hover(title)] if title else []
    if shape == "circle":
        return tag("circle", *inner, cx=x, cy=y, r=4, style=style)
    if shape == "square":
        return tag("rect", *inner, x=x - 3.5, y=y - 3.5, width=7, height=7, style=style)
    if shape == "triangle":
        return tag("path", *inner, d=f"M{x:.1f},{y - 4.6:.1f} l4.6,8 h-9.2 z", style=style)
    return tag("path", *inner, d=f"M{x:.1f},{y - 5:.1f} l5,5 l-5,5 l-5,-5 z", style=style)


def bar(look: int, x: float, y: float, width: float, height: float, prefix: str) -> str:
    """A filled rectangle with the pattern of its look; `patterns` has to stand in the same drawing."""
    box = {"x": float(x), "y": float(y), "width": float(width), "height": float(height)}
    if look == REFERENCE:
        style = f"fill:var(--reference-fill, #dfe2e6);stroke:{colour(look)};stroke-width:1"
        return tag("rect", **box, style=style)
    solid = tag("rect", **box, style=f"fill:{colour(look)}")
    if not _PATTERNS[look % len(_PATTERNS)]:
        return solid
    return solid + tag("rect", **box, fill=f"url(#{_pattern_id(prefix, look)})")


def patterns(looks: Sequence[int], prefix: str) -> str:
    """The definitions that `bar` refers to; `prefix` keeps them apart from those of other drawings of a page."""
    drawn = [
        tag(
            "pattern",
            tag("path", d=_PATTERNS[look % len(_PATTERNS)], style=f"stroke:{SURFACE};stroke-width:1.1;opacity:.55"),
            id=_pattern_id(prefix, look),
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for look in sorted(set(looks))
        if look != REFERENCE and _PATTERNS[look % len(_PATTERNS)]
    ]
    return tag("defs", *drawn) if drawn else ""


def _pattern_id(prefix: str, look: int) -> str:
    return f"{prefix}-pattern-{look % len(_PATTERNS)}"
