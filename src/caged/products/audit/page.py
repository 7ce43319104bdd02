"""The page of an audit: what the lists of a recommender do to popular and niche items, on one page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from caged.data.ids import Array
from caged.evaluation.metrics import MetricKey
from caged.page.definitions import INTERVAL, NICHE, POPULAR, meaning
from caged.page.html import (
    ColumnHead,
    Listing,
    Page,
    Person,
    Section,
    ShownItem,
    Table,
    Term,
    Tile,
    render,
)
from caged.page.numbers import number, percent
from caged.products.audit import charts as figures
from caged.products.audit.charts import has_test, interval_text, main_k
from caged.products.audit.evidence import TEXTS
from caged.products.audit.result import AuditResult, ExampleItem, ExampleUser
from caged.products.audit.verdict import evidence_text, verdict
from caged.runs.versions import versions

_TILES = (
    ("recall", None, "Found of what was wanted"),
    ("recall", "niche", "Found of the niche wishes"),
    ("tail_share", None, "Places for niche items"),
    ("popularity_lift", None, "Popularity against history"),
    ("coverage", "niche", "Niche items reached"),
    ("gini", None, "Inequality of the places"),
)
_GROUPS = (("popular items", POPULAR), ("niche items", NICHE))
_MOST_MISSED = 10
_SHOWN = 10  # places of a list that an example shows
_MAIN_TEST = "test"


def audit_html(audit: AuditResult) -> str:
    """One self-contained page."""
    return render(audit_page(audit))


def audit_page(audit: AuditResult) -> Page:
    return Page(
        title=f"Popularity audit: {audit.name}",
        subtitle=_subtitle(audit),
        notice=_notice(audit),
        findings=verdict(audit),
        sections=[section for section in _sections(audit) if section is not None],
        command=audit.command or "a call of caged.audit in Python",
        glossary=_glossary(audit),
        facts=_facts(audit),
    )


def _subtitle(audit: AuditResult) -> str:
    listed = int(audit.counts.get("users_listed", 0))
    items, pairs = len(audit.exposure.degrees), int(audit.exposure.degrees.sum())
    protocol = f" Protocol: {audit.protocol}." if audit.protocol else ""
    return (
        f"The first {main_k(audit)} recommendations for {listed:,} users, out of a catalogue of {items:,} items, "
        f"beside {pairs:,} training interactions.{protocol}"
    )


def _notice(audit: AuditResult) -> str:
    return f"What the accuracy rests on: {audit.evidence}. {evidence_text(audit)}" if has_test(audit) else TEXTS["none"]


def _sections(audit: AuditResult) -> list[Section | None]:
    test = has_test(audit)
    return [
        Section("At a glance", tiles=_tiles(audit)),
        Section(
            "Who gets the places in the lists",
            [f"Popular items are {POPULAR}; niche items are {NICHE}. The chart cuts finer, into tenths."],
            figures.exposure_figure(audit),
        ),
        Section(
            "Whom it serves",
            ["The same recommender can do different things to people with different taste."],
            figures.group_figure(audit),
        ),
        Section(
            "Popular and niche wishes",
            ["How much of what people wanted is found, depending on how popular the wanted item was."],
            figures.accuracy_figure(audit),
        )
        if test
        else Section(
            "Popular and niche wishes",
            [
                "No test part was given, so there is nothing to measure accuracy against. Later interactions, given as "
                "the test part, add recall and NDCG of popular and niche items here."
            ],
        ),
        _several_tests(audit),
        Section(
            "How unequal it is over the whole catalogue",
            ["The catalogue, the history and the lists, each sorted by its own counts."],
            figures.lorenz_figure(audit),
        ),
        _long_tail(audit),
        _examples(audit),
        _treatment(audit),
        Section(
            "All numbers",
            [
                f"Every metric with its definition on hover, or on Enter and tap. {INTERVAL} No interval exists for "
                "coverage, Gini and entropy: drawing users anew would shift them."
            ],
            table=_all_numbers(audit),
            folded=f"All {len(audit.metrics)} numbers",
        ),
    ]


# ---------------------------------------------------------------- sections


def _tiles(audit: AuditResult) -> list[Tile]:
    k = main_k(audit)
    tiles = []
    for name, group, title in _TILES:
        key = MetricKey(name, k, group)
        value = audit.metrics.get(key, math.nan)
        written = figures.format_of(key)
        shown = written(value) if math.isfinite(value) else "not known"
        between = interval_text(audit, key, written)
        tiles.append(Tile(Term(title, f"{key}: {meaning(key)}"), shown, between or "no interval", key))
    return tiles


def _several_tests(audit: AuditResult) -> Section | None:
    if not audit.further:
        return None
    tests = {_MAIN_TEST: audit, **audit.further}
    words = [f"{name} ({test.evidence}): {TEXTS[test.evidence]}" for name, test in tests.items()]
    return Section(
        "The same lists before several tests",
        ["What is measured depends on what the test rests on."],
        figures.tests_figure(tests),
        bullets=words,
    )


def _long_tail(audit: AuditResult) -> Section:
    exposure = audit.exposure
    shown = exposure.shown[main_k(audit)]
    niche = ~exposure.popular
    reached = int(np.count_nonzero(niche & (shown > 0)))
    total = int(np.count_nonzero(niche))
    share = percent(reached / total) if total else "none"
    words = [
        f"Of {total:,} niche items, {reached:,} ({share}) stand in at least one list; {total - reached:,} are shown to "
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
    names = [str(exposure.item_ids.values[row].as_py()) for row in rows]
    cells = [
        [audit.titles.get(name, name), f"{int(exposure.relevant[row]):,}", f"{int(exposure.degrees[row]):,}"]
        for row, name in zip(rows, names, strict=True)
    ]
    columns = [
        ColumnHead("item", numeric=False),
        ColumnHead("wanted by", "Users who have this item in the test part."),
        ColumnHead("training users", "Users who have this item in the training part."),
    ]
    return Table("Niche items that most users wanted and no list shows", columns, cells)


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
    group = figures.GROUP_NAMES.get(user.group or "", "no training history")
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


def _all_numbers(audit: AuditResult) -> Table:
    columns = [
        ColumnHead("metric", numeric=False),
        ColumnHead("value"),
        ColumnHead("95% interval", INTERVAL),
        ColumnHead("users", "Users behind the value."),
    ]
    rows = [
        [
            Term(key, meaning(key)),
            number(audit.metrics[key]),
            interval_text(audit, key, number) or "-",
            f"{audit.users.get(key, 0):,}",
        ]
        for key in audit.keys
    ]
    return Table("Every metric of this audit", columns, rows)


def _glossary(audit: AuditResult) -> list[tuple[str, str]]:
    k = main_k(audit)
    shown = [key for key in audit.keys if key.k == k and key.group == (None if None in key.metric.groups else "niche")]
    terms = [(str(key.of(None)), meaning(key)) for key in shown]
    return [(name, f"{words[0].upper()}{words[1:]}.") for name, words in _GROUPS] + terms


def _facts(audit: AuditResult) -> list[tuple[str, str]]:
    facts = [("rests on", audit.evidence), *((name, version) for name, version in versions().items())]
    return facts + [(name, fingerprint[:16]) for name, fingerprint in audit.fingerprints.items()]
