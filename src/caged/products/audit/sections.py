"""The sections of an audit's page, each from the result alone; one that has nothing to say is None.

`SECTIONS` is the page from top to bottom: a further section is a function and a line in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from caged.data.ids import Array
from caged.evaluation.metrics import MetricKey
from caged.page.definitions import GROUP_NAMES, INTERVAL, meaning, niche, popular
from caged.page.html import ColumnHead, Listing, Person, Section, ShownItem, Table, Term, Tile
from caged.page.numbers import UNDEFINED, percent
from caged.page.units import in_table, share, together
from caged.products.audit import charts as figures
from caged.products.audit.charts import has_test, interval_text, main_k, name_of
from caged.products.audit.evidence import TEXTS
from caged.products.audit.group_sections import group_sections
from caged.products.audit.ranges import range_of
from caged.products.audit.remedies import remedies
from caged.products.audit.result import AuditResult, ExampleItem, ExampleUser
from caged.products.audit.shown_section import shown_section

# The first six that are known are shown.
_TILES = (
    ("recall", None, "Share of wishes found"),
    ("recall", "niche", "Share of niche wishes found"),
    ("tail_share", None, "Places for niche items"),
    ("popularity_lift", None, "Popularity against history"),
    ("coverage", "niche", "Niche items reached"),
    ("gini", None, "Inequality of the places"),
    ("coverage", None, "Items reached"),
    ("popularity_lift", "niche-taste", "The same for niche taste"),
)
_TILES_SHOWN = 6
_MOST_SHOWN, _MOST_MISSED = 10, 10
_SHOWN = 10  # places of a list that an example shows
_MAIN_TEST = "test"


def shown_keys(audit: AuditResult) -> list[MetricKey]:
    """What the page has numbers of: accuracy only where there is a test."""
    return [key for key in audit.keys if has_test(audit) or not key.metric.needs_test]


def _gates(audit: AuditResult) -> Section | None:
    if not audit.gates:
        return None
    failed = sum(gate.failed for gate in audit.gates)
    words = f"{failed} of {len(audit.gates)} failed." if failed else f"All {len(audit.gates)} passed."
    columns = [ColumnHead(name, numeric=False) for name in ("fails if", "result", "why")]
    rows = [[gate.expression, "FAILED" if gate.failed else "passed", gate.reason] for gate in audit.gates]
    return Section("Gates", [words], table=Table("Conditions set for this audit", columns, rows))


def _glance(audit: AuditResult) -> Section:
    k = main_k(audit)
    tiles = []
    for name, group, title in _TILES:
        key = MetricKey(name, k, group)
        found = range_of(audit, key)
        if found is not None:
            value, low, high = together(key, *found[:3])
            between = f"{low} to {high}" if found.known else ""
            tiles.append(Tile(Term(title, f"{key}: {meaning(key, audit.share)}"), value, between, key))
    return Section("At a glance", tiles=tiles[:_TILES_SHOWN])


def _places(audit: AuditResult) -> Section:
    cut = f"Popular items are {popular(audit.share)}; niche items are {niche(audit.share)}."
    return Section(
        "Who gets the places in the lists",
        [f"{cut} The chart cuts finer, into tenths."],
        figures.exposure_figure(audit),
    )


def _most_shown(audit: AuditResult) -> Section | None:
    """What captured the lists: the items that people see most often."""
    exposure, listed = audit.exposure, audit.counts.get("users_listed", 0)
    shown = exposure.shown[main_k(audit)]
    rows = figures.top_rows(shown, shown > 0, _MOST_SHOWN)
    if not rows or not listed:
        return None
    users = audit.counts.get("users_trained", 0)
    columns = [
        ColumnHead("item", numeric=False),
        ColumnHead("in lists", f"Share of the lists that show this item among their first {main_k(audit)}."),
        ColumnHead("had it", "Share of the users who have this item in the training part.")
        if users
        else ColumnHead("training users", "Users who have this item in the training part."),
    ]
    cells = [
        [
            name_of(audit, row) + ("" if exposure.popular[row] else " (niche)"),
            share(shown[row] / listed),
            share(exposure.degrees[row] / users) if users else f"{int(exposure.degrees[row]):,}",
        ]
        for row in rows
    ]
    together = percent(float(shown[rows].sum() / shown.sum()))
    words = f"These {len(rows)} items alone fill {together} of all places."
    return Section("What people see most", [words], table=Table("The items in most lists", columns, cells))


def _served(audit: AuditResult) -> Section:
    return Section(
        "Whom it serves",
        ["The same recommender can do different things to people with different taste."],
        figures.group_figure(audit),
    )


def _wishes(audit: AuditResult) -> Section | None:
    if not has_test(audit):
        return None
    return Section(
        "Popular and niche wishes",
        ["How much of what people wanted is found, depending on how popular the wanted item was."],
        figures.accuracy_figure(audit),
    )


def _several_tests(audit: AuditResult) -> Section | None:
    if not audit.further:
        return None
    tests = {_MAIN_TEST: audit, **audit.further}
    words = [f"{name}: {TEXTS[test.evidence]}" for name, test in tests.items()]
    return Section(
        "The same lists against several tests",
        ["A number depends on where its test comes from."],
        figures.tests_figure(tests),
        bullets=words,
    )


def _inequality(audit: AuditResult) -> Section:
    return Section(
        "How unequal it is over the whole catalogue",
        ["The history and the lists, each sorted by its own counts."],
        figures.lorenz_figure(audit),
    )


def _long_tail(audit: AuditResult) -> Section:
    exposure = audit.exposure
    shown = exposure.shown[main_k(audit)]
    niche = ~exposure.popular
    reached = int(np.count_nonzero(niche & (shown > 0)))
    total = int(np.count_nonzero(niche))
    share = percent(reached / total) if total else "none"
    words = [
        f"Of {total:,} niche items, {reached:,} ({share}) are in at least one list; {total - reached:,} are shown to "
        "nobody."
    ]
    table = None
    if exposure.relevant is not None:
        missed = niche & (shown == 0) & (exposure.relevant > 0)
        count = int(np.count_nonzero(missed))
        words.append(
            f"Of those shown to nobody, {count:,} {'was' if count == 1 else 'were'} wanted by somebody in the test."
        )
        table = _missed_table(audit, missed) if count else None
    return Section("The long tail: reached and not reached", words, figures.reach_figure(audit), table=table)


def _missed_table(audit: AuditResult, missed: Array) -> Table:
    exposure = audit.exposure
    assert exposure.relevant is not None
    rows = figures.top_rows(exposure.relevant, missed, _MOST_MISSED)
    cells = [
        [name_of(audit, row), f"{int(exposure.relevant[row]):,}", f"{int(exposure.degrees[row]):,}"] for row in rows
    ]
    columns = [
        ColumnHead("item", numeric=False),
        ColumnHead("wanted by", "Users who have this item in the test part."),
        ColumnHead("training users", "Users who have this item in the training part."),
    ]
    return Table("The niche items wanted most among those that no list shows", columns, cells)


def _examples(audit: AuditResult) -> Section | None:
    """One user of each group."""
    first = {user.group: user for user in reversed(audit.examples)}
    chosen = [user for user in audit.examples if first[user.group] is user]
    if not chosen:
        return None
    return Section("Example users", _example_words(audit), people=[_person(user) for user in chosen])


def _example_words(audit: AuditResult) -> list[str]:
    wanted = " Wanted marks what the user turned out to choose in the test." if has_test(audit) else ""
    return [f"What a few users had, and what they are shown; beside each item, how many users had it.{wanted}"]


def _person(user: ExampleUser) -> Person:
    group = GROUP_NAMES.get(user.group or "", "No training history")
    niche = sum(not item.popular for item in user.shown)
    about = f"{group}; {user.profile_size:,} items in the history, {niche} of the {len(user.shown)} listed are niche."
    return Person(
        f"User {user.user_id}",
        about,
        [
            Listing("Had", _entries(user.profile), more=_more(user.profile_size - len(user.profile))),
            Listing("Is shown", _entries(user.shown[:_SHOWN]), ordered=True, more=_more(len(user.shown) - _SHOWN)),
        ],
    )


def _more(left_out: int) -> str:
    return f"and {left_out:,} more" if left_out > 0 else ""


def _entries(items: Sequence[ExampleItem]) -> list[ShownItem]:
    return [
        ShownItem(
            item.title or item.item_id,
            f"{item.degree:,} user{'' if item.degree == 1 else 's'}",
            "popular" if item.popular else "niche",
            marked=not item.popular,
            wanted=item.relevant,
        )
        for item in items
    ]


def _treatment(audit: AuditResult) -> Section | None:
    words = [*audit.notes]
    for name, other in audit.further.items():
        words += [f"{name}: {note}" for note in other.notes if note not in audit.notes]
    return Section("How the input was read", bullets=words) if words else None


def _number_table(audit: AuditResult) -> Table:
    columns = [
        ColumnHead("metric", numeric=False),
        ColumnHead("value"),
        ColumnHead("95% interval", INTERVAL),
        ColumnHead("users", "Users behind the value."),
    ]
    rows = [
        [
            Term(key, meaning(key, audit.share)),
            in_table(key)(audit.metrics[key]),
            interval_text(audit, key, in_table(key)) or UNDEFINED,
            f"{audit.users.get(key, 0):,}",
        ]
        for key in shown_keys(audit)
    ]
    return Table("Every metric of this audit", columns, rows)


def _all_numbers(audit: AuditResult) -> Section:
    return Section(
        "All numbers",
        [
            f"Every metric, with its definition on hover, Enter or tap. {INTERVAL} Numbers about all lists at once, "
            "such as coverage, Gini and personalisation, have no interval: drawing users anew would shift them."
        ],
        table=_number_table(audit),
        folded=f"All {len(shown_keys(audit))} numbers",
    )


SECTIONS: tuple[Callable[[AuditResult], Section | None], ...] = (
    _gates,
    _glance,
    _places,
    _most_shown,
    _served,
    _wishes,
    shown_section,
    _several_tests,
    _inequality,
    _long_tail,
    _examples,
    remedies,
    _treatment,
    _all_numbers,
)


def sections_of(audit: AuditResult) -> list[Section]:
    """All that have something to say; one for each family of chosen groups, before the further tests."""
    place = SECTIONS.index(_several_tests)
    before, after = (
        [section for build in builds if (section := build(audit)) is not None]
        for builds in (SECTIONS[:place], SECTIONS[place:])
    )
    return [*before, *group_sections(audit), *after]
