"""An adjustment in words and tables."""

from __future__ import annotations

from collections.abc import Sequence

from caged.page.numbers import compact, number, percent, percent_change, signed
from caged.page.text_table import TextTable
from caged.products.adjust.judge import Change, Outcome, Point

PARTS = {"valid": "validation", "test": "test"}


def sentences(outcome: Outcome) -> list[str]:
    """What was decided and what it does, most important first."""
    return [*_price(outcome), _rule(outcome)]


def _rule(outcome: Outcome) -> str:
    chosen, how = outcome.chosen, outcome.adjustment
    if chosen is None:
        return f"Form {how.form} with the strength you asked for, {how.strength:g}."
    kept = percent(chosen.keep)
    if how.is_neutral:
        return (
            f"Every strength costs more than {percent(1 - chosen.keep)} of the recall on validation, so nothing is "
            f"adjusted; allow more with a smaller --keep, or try another --form."
        )
    end = " (the end of the grid: a stronger one may be cheap, too)" if chosen.reaches_the_end else ""
    return (
        f"Form {how.form}, strength {how.strength:g}{end}: the largest that keeps {kept} of the recall on validation, "
        f"as do all smaller ones. The test part was not looked at for this."
    )


def _price(outcome: Outcome) -> list[str]:
    part = "test" if "test" in outcome.changes else "valid"
    if part not in outcome.changes or outcome.adjustment.is_neutral:
        return []
    recall, niche, *_ = outcome.changes[part].values()
    return [
        f"On {PARTS[part]}, recall@{outcome.k} of niche items goes {_from_to(niche)}; recall@{outcome.k} of all items "
        f"goes {_from_to(recall)}."
    ]


def _from_to(change: Change) -> str:
    """Before and after; relative to what was there before, where there was anything."""
    said = [] if not change.before else [percent_change(change.percent)]
    if change.interval is not None:
        said.append(
            f"difference {signed(change.difference)} [{signed(change.interval.low)}, {signed(change.interval.high)}]"
        )
    aside = f" ({', '.join(said)})" if said else ""
    return f"from {number(change.before)} to {number(change.after)}{aside}"


def change_table(outcome: Outcome) -> TextTable:
    """A row per part and metric."""
    rows = [
        [PARTS[part], key, number(change.before), number(change.after), _signed(change), _interval(change)]
        for part, found in outcome.changes.items()
        for key, change in found.items()
    ]
    headers = ["part", "metric", "before", "after", "change", "95% interval of the difference"]
    return TextTable(f"{outcome.adjustment}: before and after", headers, rows, keys=2)


def curve_table(outcome: Outcome, part: str) -> TextTable:
    """A row per strength."""
    points = outcome.curve[part]
    keys = list(points[0].metrics)
    rows = [[f"{point.strength:.2f}{_mark(point, outcome)}", *(_cell(point, key) for key in keys)] for point in points]
    return TextTable(f"{outcome.adjustment.form} on {PARTS[part]}, every strength", ["strength", *keys], rows)


def curve_tables(outcome: Outcome) -> Sequence[TextTable]:
    return [curve_table(outcome, part) for part in outcome.curve]


def _mark(point: Point, outcome: Outcome) -> str:
    return " *" if point.strength == outcome.adjustment.strength else ""


def _cell(point: Point, key: str) -> str:
    value, interval = number(point.metrics[key]), point.intervals.get(key)
    return value if interval is None else f"{value} [{number(interval.low)}, {number(interval.high)}]"


def _signed(change: Change) -> str:
    return percent_change(change.percent)


def _interval(change: Change) -> str:
    if change.interval is None:
        return "-"
    return f"[{compact(change.interval.low)}, {compact(change.interval.high)}]"
