"""Numbers as people read them; what is not defined is `-` everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Format = Callable[[float], str]

UNDEFINED = "-"


def number(value: float | None, digits: int = 4) -> str:
    """A metric with a fixed number of decimals, from a thousand on with one.

    >>> number(0.12345), number(56.789, 1), number(1234.56), number(math.nan), number(None)
    ('0.1235', '56.8', '1,234.6', '-', '-')
    """
    if value is None or not math.isfinite(value):
        return UNDEFINED
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:,.1f}"


def compact(value: float, digits: int = 4) -> str:
    """Fewer decimals for larger values; infinity is told.

    >>> compact(0.12345), compact(56.789), compact(1234.56), compact(math.nan), compact(math.inf)
    ('0.1235', '56.79', '1,234.6', '-', 'inf')
    """
    if not math.isfinite(value):
        return UNDEFINED if math.isnan(value) else "inf"
    places = digits if abs(value) < 10 else 2 if abs(value) < 1000 else 1
    return f"{value:,.{min(places, digits)}f}"


def signed(value: float, digits: int = 4) -> str:
    """A difference, compact.

    >>> signed(0.01), signed(-12.5), signed(-1e-9), signed(math.nan)
    ('+0.0100', '-12.50', '0.0000', '-')
    """
    if math.isnan(value):
        return UNDEFINED
    size = compact(abs(value), digits)
    if not size.strip("0."):  # less than what is shown: no side
        return size
    return ("-" if value < 0 else "+") + size


def decimal(value: float) -> str:
    """Three digits, for the axes of charts.

    >>> decimal(0.5804), decimal(0.0762), decimal(12345.6), decimal(0.0)
    ('0.58', '0.0762', '12,346', '0')
    """
    if not math.isfinite(value):
        return UNDEFINED
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percent(share: float) -> str:
    """One decimal; shares below a tenth of a percent keep two digits, so that little is not taken for nothing.

    >>> percent(0.4038), percent(0.2), percent(0.000123), percent(0.0), percent(math.nan)
    ('40.4%', '20%', '0.012%', '0%', '-')
    """
    if not math.isfinite(share):
        return UNDEFINED
    if 0 < abs(share) < 0.001:
        return f"{float(f'{100 * share:.2g}'):.12f}".rstrip("0") + "%"
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def signed_percent(value: float) -> str:
    """
    >>> signed_percent(0.123), signed_percent(-0.5), signed_percent(0.0), signed_percent(math.nan)
    ('+12.3%', '-50%', '0%', '-')
    """
    return f"+{percent(value)}" if value > 0 else percent(value)


def alike(texts: Sequence[str]) -> list[str]:
    """Percentages that stand together with the same digits: one decimal where any of them has one.

    >>> alike(["41%", "40.7%"]), alike(["41%", "40%"]), alike(["41%", "0.012%"])
    (['41.0%', '40.7%'], ['41%', '40%'], ['41%', '0.012%'])
    """
    decimals = [len(text.rstrip("%").partition(".")[2]) for text in texts]
    percents = all(text.endswith("%") for text in texts if text != UNDEFINED)
    if not percents or max(decimals, default=0) != 1:  # more decimals are few significant digits already
        return list(texts)
    return [
        text if places or text == UNDEFINED else f"{text[:-1]}.0%" for text, places in zip(texts, decimals, strict=True)
    ]


def percent_change(percentage: float) -> str:
    """A relative change, given in percent; from ten times on in words that can be pictured.

    >>> percent_change(-3.14159), percent_change(1190.0), percent_change(-0.001), percent_change(math.nan)
    ('-3.1%', '13 times', '0.0%', '-')
    """
    if not math.isfinite(percentage):
        return UNDEFINED
    if abs(percentage) < 0.05:
        return "0.0%"
    return f"{1 + percentage / 100:,.0f} times" if percentage >= 900 else f"{percentage:+.1f}%"


def p_value(p: float) -> str:
    """
    >>> p_value(0.0321), p_value(1e-9), p_value(math.nan)
    ('0.0321', '<0.0001', '-')
    """
    if math.isnan(p):
        return UNDEFINED
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"
