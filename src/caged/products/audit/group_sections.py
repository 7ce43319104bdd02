"""The groups that somebody chose, on the page and in the terminal: a section and a table for each family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from caged.evaluation.metrics import MetricKey
from caged.page.definitions import meaning
from caged.page.html import ColumnHead, Figure, Panel, Section, Table
from caged.page.numbers import UNDEFINED, number
from caged.page.text_table import TextTable
from caged.page.units import share
from caged.products.audit.charts import (
    has_test,
    interval_text,
    main_k,
    rows_panel,
    user_group_columns,
    whiskers,
    with_interval,
)
from caged.products.audit.result import AuditResult, ChosenFamily, ChosenGroup

MOST_BARS = 20  # of the largest groups; the table has all of them
_OF_ITEMS = ("recall", "ndcg", "pooled_recall", "exposure_rate", "coverage")
_OF_USERS = ("recall", "ndcg", "popularity_lift", "delta_gap", "tail_share", "upd")
_PARITY = {"rsp": "Statistical parity", "reo": "Equal opportunity"}


def group_sections(audit: AuditResult) -> list[Section]:
    """One for each family; none where nobody chose any."""
    made = [_of_users(audit, family) if family.of_users else _of_items(audit, family) for family in audit.families]
    return [replace(section, number=number) for number, section in enumerate(made, start=1)]


def group_tables(audit: AuditResult) -> list[TextTable]:
    """The same as text: a row per group, the parity of all of them below."""
    return [_text_table(audit, family) for family in audit.families]


# -------------------------------------------------------------------- on the page


def _of_items(audit: AuditResult, family: ChosenFamily) -> Section:
    k = main_k(audit)
    shown = ["exposure_rate", *(["recall"] if has_test(audit) else [])]
    test = has_test(audit)
    words = (
        f"{'Left: of' if test else 'Of'} all pairs of a user and an item of the group that is new to the user, the "
        f"share that is listed. {'Right: how much of the wanted items of the group is found. ' if test else ''}"
    )
    figure = Figure(
        [_panel(audit, family, name) for name in shown],
        f"{words}{_left_out(family)}{whiskers(audit)}",
        _items_table(audit, family),
    )
    parities = [f"{title} ({key}): {_parity(audit, key)}." for key, title in _parity_keys(audit, family, k).items()]
    words = f"{' '.join(parities)} 0 means that all groups are served alike."
    return Section(f"Items by {family.name}", [words, *_overlap(family)], figure)


def _of_users(audit: AuditResult, family: ChosenFamily) -> Section:
    shown = ["popularity_lift", *(["recall"] if has_test(audit) else [])]
    beside = " To the right, how much of what they wanted the lists find." if has_test(audit) else ""
    rows, columns = user_group_columns(audit, f"users by {family.name}", {one.key: one.name for one in family.groups})
    figure = Figure(
        [_panel(audit, family, name) for name in shown],
        "A lift of +100% means that the lists are twice as popular as the users' own history; 0 means as popular as it."
        f"{beside} {_left_out(family)}{whiskers(audit)}",
        Table(f"Users by {family.name}, with 95% intervals", columns, rows),
    )
    return Section(f"Users by {family.name}", ["What the lists do to each of these groups of users."], figure)


def _panel(audit: AuditResult, family: ChosenFamily, name: str) -> Panel:
    key = MetricKey(name, main_k(audit))
    kind = "users" if family.of_users else "items"
    title = f"{name.replace('_', ' ').capitalize()}@{key.k}, {kind} by {family.name}"
    return rows_panel(audit, key, title, {one.key: one.name for one in _largest(family)})


def _largest(family: ChosenFamily) -> list[ChosenGroup]:
    """Those that get a bar, in the order of their names."""
    chosen = sorted(family.groups, key=lambda one: -one.size)[:MOST_BARS]
    return [one for one in family.groups if one in chosen]


def _left_out(family: ChosenFamily) -> str:
    more = len(family.groups) - MOST_BARS
    return f"The {MOST_BARS} largest groups; the table has {more} more. " if more > 0 else ""


def _overlap(family: ChosenFamily) -> list[str]:
    places = [one.places for one in family.groups if math.isfinite(one.places)]
    if sum(places) <= 1 + 1e-9:
        return []
    return ["An item may be in several of these groups, so their shares add up to more than 100%."]


def _items_table(audit: AuditResult, family: ChosenFamily) -> Table:
    keys = _shown_keys(audit, _OF_ITEMS)
    columns = [
        ColumnHead(family.name, numeric=False),
        ColumnHead("items", "Items of the catalogue that are in the group."),
        ColumnHead("training", "The group's share of all training interactions."),
        ColumnHead("places", f"Share of the first {main_k(audit)} places of all lists that hold an item of the group."),
    ]
    columns += [ColumnHead("wanted", "The group's share of what people wanted in the test.")] * has_test(audit)
    columns += [ColumnHead(key, meaning(key, audit.share)) for key in keys]
    rows = [
        [
            one.name,
            f"{one.size:,}",
            share(one.history),
            share(one.places),
            *([share(one.wanted)] if has_test(audit) else []),
            *(with_interval(audit, key.of(one.key)) for key in keys),
        ]
        for one in family.groups
    ]
    return Table(f"Items by {family.name}, with 95% intervals", columns, rows)


def _shown_keys(audit: AuditResult, names: Sequence[str]) -> list[MetricKey]:
    keys = [MetricKey(name, main_k(audit)) for name in names]
    return [key for key in keys if has_test(audit) or not key.metric.needs_test]


def _parity_keys(audit: AuditResult, family: ChosenFamily, k: int) -> dict[MetricKey, str]:
    keys = {MetricKey(name, k, family.key): title for name, title in _PARITY.items()}
    return {key: title for key, title in keys.items() if has_test(audit) or not key.metric.needs_test}


def _parity(audit: AuditResult, key: MetricKey) -> str:
    if not math.isfinite(audit.metrics.get(key, math.nan)):
        return "undefined, because fewer than two groups have anything to count"
    return with_interval(audit, key)


# -------------------------------------------------------------------- as text


def _text_table(audit: AuditResult, family: ChosenFamily) -> TextTable:
    keys = _shown_keys(audit, _OF_USERS if family.of_users else _OF_ITEMS)
    first = keys[0]
    kind = "users" if family.of_users else "items"
    headers = [family.name, kind, *keys, f"95% interval of {first}"]
    rows = [
        [
            one.name,
            f"{one.size:,}",
            *(number(audit.metrics[key.of(one.key)]) for key in keys),
            interval_text(audit, first.of(one.key), number) or UNDEFINED,
        ]
        for one in family.groups
    ]
    parities = [] if family.of_users else _parity_keys(audit, family, main_k(audit))
    said = [f"{key} {number(audit.metrics[key])}" for key in parities]
    return TextTable(f"{kind.capitalize()} by {family.name}{': ' if said else ''}{', '.join(said)}", headers, rows)
