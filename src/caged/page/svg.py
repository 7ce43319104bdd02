"""What the charts are drawn with: elements as strings, text widths, axis ticks, and the look of a series.

Colours are CSS variables, so that one drawing serves light and dark pages; each has a fallback for a page without
them. No series is told apart by colour alone: lines also differ in dash and marker, bars in pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

FONT_SIZE = 13
# The looks of what is not a method. A look is a number: colour, dash, marker and pattern in one.
REFERENCE = -1  # what the series are compared with: grey, dashed, without a fill
CATALOGUE = -2  # the whole catalogue: nearly the colour of text
LISTS, WANTED, NICHE, POPULAR = 0, 1, 2, 3

INK, FAINT_INK, RULE, SURFACE = (
    f"var(--{name}, {fallback})"
    for name, fallback in (("ink", "#1c2330"), ("ink-2", "#5a6372"), ("rule", "#dfe3e9"), ("surface", "#fff"))
)
# After Okabe and Ito, darkened to a contrast of 3 on white; the page replaces them on a dark ground.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#c4649a", "#a67c00", "#0f8f9c", "#7a5bbf", "#8a5a44")
COLOURS = len(_COLOURS)
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "12 4", "4 2", "10 3 2 3 2 3")
_MARKERS = ("circle", "square", "triangle", "diamond", "cross", "drop", "bar")
_PATTERNS = ("", "M0,6 L6,0", "M0,3 L6,3", "M3,0 L3,6", "M0,0 L6,6", "M0,3 L6,3 M3,0 L3,6", "M0,6 L6,0 M0,0 L6,6")
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


def lines_within(text: str, room: float) -> list[str]:
    """`text` in lines that fit, broken between words.

    >>> lines_within("two words", 1000), lines_within("two words", 60)
    (['two words'], ['two', 'words'])
    """
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


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


def tick_texts(levels: Sequence[float], written: Callable[[float], str]) -> list[str]:
    """The words of round numbers along an axis, all but zero with the same number of decimals; with more of them than
    `written` gives where it would round a level to another number.

    >>> tick_texts([0.0, 0.5, 1.0], str), tick_texts([0, 0.025, 0.05], lambda share: f"{100 * share:g}%")
    (['0', '0.5', '1.0'], ['0', '2.5%', '5.0%'])
    >>> tick_texts([0.1165, 0.117, 0.1175], lambda level: f"{level:.3g}")
    ['0.1165', '0.1170', '0.1175']
    >>> tick_texts([-0.1, 0, 0.1], lambda share: f"{100 * share:g}")
    ['-10', '0', '10']
    """
    unit = _as_number(written(1.0))
    texts = [_exact(written(level), level, unit) if level else "0" for level in levels]
    decimals = max(len(text.rstrip("%").partition(".")[2]) for text in texts)
    return [_padded(text, decimals) if level else text for level, text in zip(levels, texts, strict=True)]


def _exact(text: str, level: float, unit: float | None) -> str:
    """As it is, but for a number that is not the level in its unit, which is 100 for percents and percentage points."""
    said = _as_number(text)
    if unit is None or said is None or math.isclose(said, unit * level, rel_tol=1e-9):
        return text
    return f"{unit * level:,.10f}".rstrip("0").rstrip(".") + ("%" if text.endswith("%") else "")


def _as_number(text: str) -> float | None:
    try:
        return float(text.removesuffix("%").replace(",", ""))
    except ValueError:
        return None


def _padded(text: str, decimals: int) -> str:
    digits, percent = text.rstrip("%"), "%" if text.endswith("%") else ""
    whole, _, fraction = digits.partition(".")
    return (f"{whole}.{fraction:0<{decimals}}" if decimals else whole) + percent


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
    if look == CATALOGUE:
        return "var(--catalogue, #3d4656)"
    index = look % COLOURS
    return f"var(--series-{index}, {_COLOURS[index]})"


def dash(look: int) -> str:
    return "3 4" if look == REFERENCE else "1 3" if look == CATALOGUE else _DASHES[_shape(look)]


def marker(look: int, x: float, y: float, *, title: str = "") -> str:
    """A point; its shape differs from look to look, hollow for a reference."""
    shape = "circle" if look in (REFERENCE, CATALOGUE) else _MARKERS[_shape(look)]
    fill = SURFACE if look == REFERENCE else colour(look)
    style = f"fill:{fill};stroke:{colour(look)};stroke-width:1.5"
    inner = [hover(title)] if title else []
    if shape == "circle":
        return tag("circle", *inner, cx=x, cy=y, r=4, style=style)
    if shape == "square":
        return tag("rect", *inner, x=x - 3.5, y=y - 3.5, width=7, height=7, style=style)
    if shape == "bar":
        return tag("rect", *inner, x=x - 5.0, y=y - 2.0, width=10, height=4, style=style)
    outlines = {
        "triangle": f"M{x:.1f},{y - 4.6:.1f} l4.6,8 h-9.2 z",
        "diamond": f"M{x:.1f},{y - 5:.1f} l5,5 l-5,5 l-5,-5 z",
        "cross": f"M{x - 4.5:.1f},{y - 1.5:.1f} h3 v-3 h3 v3 h3 v3 h-3 v3 h-3 v-3 h-3 z",
        "drop": f"M{x:.1f},{y + 4.6:.1f} l4.6,-8 h-9.2 z",
    }
    return tag("path", *inner, d=outlines[shape], style=style)


def bar(look: int, x: float, y: float, width: float, height: float, prefix: str) -> str:
    """A filled rectangle with the pattern of its look; `patterns` has to stand in the same drawing."""
    box = {"x": float(x), "y": float(y), "width": float(width), "height": float(height)}
    if look == REFERENCE:
        style = f"fill:var(--reference-fill, #dfe2e6);stroke:{colour(look)};stroke-width:1"
        return tag("rect", **box, style=style)
    solid = tag("rect", **box, style=f"fill:{colour(look)}")
    if not _pattern(look):
        return solid
    return solid + tag("rect", **box, fill=f"url(#{_pattern_id(prefix, look)})")


def patterns(looks: Sequence[int], prefix: str) -> str:
    """The definitions that `bar` refers to; `prefix` keeps them apart from those of other drawings of a page."""
    shown = {_pattern_id(prefix, look): _pattern(look) for look in sorted(set(looks)) if _pattern(look)}
    drawn = [
        tag(
            "pattern",
            tag("path", d=lines, style=f"stroke:{SURFACE};stroke-width:1.1;opacity:.55"),
            id=identifier,
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for identifier, lines in shown.items()
    ]
    return tag("defs", *drawn) if drawn else ""


def _shape(look: int) -> int:
    """Looks with the same colour differ in shape: there are more colours than shapes, and one is not a multiple."""
    return look % len(_MARKERS)


def _pattern(look: int) -> str:
    return _PATTERNS[_shape(look)] if look >= 0 else ""


def _pattern_id(prefix: str, look: int) -> str:
    return f"{prefix}-pattern-{_shape(look)}"
