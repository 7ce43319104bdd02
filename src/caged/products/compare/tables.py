"""A comparison as tables of text, the same for the terminal, Markdown, LaTeX and the page."""

from __future__ import annotations

import math

from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEVEL
from caged.page.definitions import BETTER
from caged.page.numbers import UNDEFINED, compact, p_value, percent_change, signed
from caged.page.text_table import TextTable, plain_lines
from caged.products.compare.comparison import Comparison, TradeOff
from caged.products.compare.differences import Difference
from caged.products.compare.groups import Group

LEAST_BASE = 0.001  # a share below it is no base for a relative change


def comparison_tables(comparison: Comparison) -> list[TextTable]:
    """Values, differences, and tests where there are any."""
    found = [value_table(comparison), difference_table(comparison)]
    if comparison.floors:
        found.insert(1, shown_table(comparison))
    if any(one.over_users for one in comparison.differences):
        found.append(user_test_table(comparison))
    if any(one.over_seeds for one in comparison.differences):
        found.append(seed_test_table(comparison))
    return found


def value_table(comparison: Comparison) -> TextTable:
    several = any(len(group.entries) > 1 for group in comparison.methods)
    spread = ": mean and standard deviation over runs" if several else ""
    rows = [
        [group.name, str(len(group.entries)), *(value(group, key) for key in comparison.metrics)]
        for group in comparison.methods
    ]
    return TextTable(f"{heading(comparison)}{spread}", ["method", "runs", *comparison.metrics], rows)


def shown_table(comparison: Comparison) -> TextTable:
    """What chance showed: the methods, and beside them what is no achievement."""
    keys = [key for key in comparison.metrics if key.metric.of_shown]
    methods = [[group.name, *(value(group, key) for key in keys)] for group in comparison.methods]
    floors = [[name, *(compact(of.get(key, math.nan)) for key in keys)] for name, of in comparison.floors.items()]
    return TextTable(f"{heading(comparison)}: what chance showed", ["ranked by", *keys], [*methods, *floors])


def difference_table(comparison: Comparison) -> TextTable:
    headers = ["method", "metric", "better", "difference", "95% interval", "change", "users"]
    rows = [
        [
            one.method,
            one.metric,
            better(one.metric),
            signed(one.difference),
            interval(one),
            change(one),
            UNDEFINED if one.users is None else f"{one.users:,}",
        ]
        for one in comparison.differences
    ]
    title = f"{heading(comparison)}: difference to {comparison.baseline.name}"
    return TextTable(title, headers, rows, keys=2, spare=("users", "better", "change"))


def user_test_table(comparison: Comparison) -> TextTable:
    """Without a verdict where seeds were tested: those decide."""
    decides = any(one.over_users and not one.over_seeds for one in comparison.differences)
    headers = ["method", "metric", "p (t)", "Holm (t)", "p (Wilcoxon)", "Holm (Wilcoxon)", "d_z", "rank-biserial"]
    rows = [
        [
            one.method,
            one.metric,
            p_value(test.p_t),
            p_value(one.p_t_adjusted),
            p_value(test.p_wilcoxon),
            p_value(one.p_wilcoxon_adjusted),
            signed(test.d_z, 3),
            signed(test.rank_biserial, 3),
            *([UNDEFINED if one.over_seeds else starred(one)] if decides else []),
        ]
        for one in comparison.differences
        if (test := one.over_users) is not None
    ]
    title = f"paired tests over users against {comparison.baseline.name}"
    marked = f"; * = t below {LEVEL} after Holm's correction" if decides else ""
    headers += ["verdict"] if decides else []
    spare = ("Holm (Wilcoxon)", "p (Wilcoxon)", "rank-biserial", "p (t)", "d_z")
    return TextTable(f"{heading(comparison)}: {title}{marked}", headers, rows, keys=2, spare=spare)


def seed_test_table(comparison: Comparison) -> TextTable:
    name = "Welch's t" if comparison.seed_test == "welch" else "paired t by split"
    headers = ["method", "metric", "t", "df", "p", "Holm", "Hedges' g", "verdict"]
    rows = [
        [
            one.method,
            one.metric,
            signed(test.t, 3),
            compact(test.df, 1),
            p_value(test.p),
            p_value(one.p_seeds_adjusted),
            signed(test.hedges_g, 3),
            starred(one),
        ]
        for one in comparison.differences
        if (test := one.over_seeds) is not None
    ]
    title = f"tests over seeds ({name}) against {comparison.baseline.name}; * = below {LEVEL} after Holm's correction"
    return TextTable(f"{heading(comparison)}: {title}", headers, rows, keys=2, spare=("df", "t", "p", "Hedges' g"))


def heading(comparison: Comparison) -> str:
    """What the numbers are about; the protocol goes wherever they go."""
    unstated = [group.name for group in comparison.methods if any(entry.protocol is None for entry in group.entries)]
    apart = f" ({', '.join(unstated)}: not stated)" if comparison.protocol and unstated else ""
    where = f", {comparison.dataset}" if comparison.dataset else ""
    return f"protocol {comparison.protocol or 'not stated'}{apart}{where}, test part"


def closing(comparison: Comparison) -> list[str]:
    """Sentences below the tables."""
    said = [f"{note[0].upper()}{note[1:]}." for note in comparison.notes]
    if comparison.trade_off is not None:
        found = comparison.trade_off
        said.append(_about_the_unbeaten(found))
    return said


def _about_the_unbeaten(found: TradeOff) -> str:
    both = f"both {found.x} and {found.y}"
    if len(found.unbeaten) == 1:
        return f"{found.unbeaten[0]} is best on {both}."
    return f"No other method surely beats these on {both}: {', '.join(found.unbeaten)}."


def as_text(comparison: Comparison) -> str:
    said = [f"warning: {warning}" for warning in comparison.warnings]
    said += [
        "\n".join([table.title, *plain_lines(table.headers, table.rows)]) for table in comparison_tables(comparison)
    ]
    return "\n\n".join([*said, "\n".join(closing(comparison))])


# -------------------------------------------------------------------- cells


def better(key: MetricKey) -> str:
    return BETTER[key.metric.direction]


def change(one: Difference) -> str:
    """In percent of the baseline; of a baseline near zero it would be a large number that means nothing."""
    tiny = one.metric.metric.unit == "share" and abs(one.baseline_value) < LEAST_BASE
    return UNDEFINED if tiny else percent_change(one.relative_change)


def interval(one: Difference) -> str:
    if one.interval is None:
        return UNDEFINED
    return f"{signed(one.interval.low)} to {signed(one.interval.high)}"


def starred(one: Difference) -> str:
    return one.verdict + ("" if one.verdict in ("unclear", "untested") else " *")


def value(group: Group, key: str) -> str:
    spread = group.spread(key)
    return compact(group.mean(key)) + ("" if math.isnan(spread) else f" ± {compact(spread)}")
