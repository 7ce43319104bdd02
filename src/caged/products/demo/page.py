"""The page of `caged demo`. Every statement is computed from the numbers of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from caged.models import METHODS, display_name
from caged.page import charts
from caged.page.charts import Series
from caged.page.definitions import GROUP_NAMES
from caged.page.html import (
    ColumnHead,
    Figure,
    Listing,
    Page,
    Panel,
    Person,
    Section,
    ShownItem,
    Table,
    Term,
    render,
)
from caged.page.looks import looks_of
from caged.page.numbers import UNDEFINED, decimal, percent
from caged.page.svg import LISTS, REFERENCE
from caged.page.tenths import TENTHS, tenths_panel
from caged.page.units import share
from caged.products.demo.experiment import (
    ADJUSTED,
    BASELINE,
    TRAINING,
    WINDOW,
    Demo,
    Difference,
    Judged,
    K,
    Shown,
    Visitor,
)
from caged.products.demo.words import RECALL, points, random_recall, sentences
from caged.runs.versions import versions

NICHE_RECALL, TAIL_SHARE = f"{RECALL}/niche", f"tail_share@{K}"

_RANDOM = "Random list"
_LISTED = 8  # items of a list that a person's card shows

_MEANINGS = {
    "natural": f"Share of a person's later clicks in the same shop that are in the list of {K}; the average person.",
    "oracle": f"Share of the items drawn by a person's true taste alone that are in the list of {K}; "
    "the average person.",
    "difference": "Oracle recall minus that of LightGCN, for the average person, in percentage points (pp), with its "
    "95% interval: how much the difference would vary with other people of the same shop. It says nothing about "
    "another seed.",
    "niche": "The same, counting only niche items: all but the most clicked fifth.",
    "true preference": f"Share of the {K} listed items that a person truly likes; only a simulation knows it.",
    "tail share": f"Share of the {K} places that go to niche items.",
}


def demo_html(demo: Demo, command: str, audits: Mapping[str, str] | None = None) -> str:
    """The whole page; `command` is what the reader can type to get it again, `audits` are the pages of the methods."""
    links = [(f"Audit of {display_name(method)}", page) for method, page in (audits or {}).items()]
    return render(replace(_page(demo, command), links=links))


# ---------------------------------------------------------------- tables


def comparison(demo: Demo) -> Table:
    """Every method under both judges; the last line is the best that anybody could do."""
    columns = [
        ColumnHead("method", numeric=False),
        ColumnHead(f"natural recall@{K}", _MEANINGS["natural"]),
        ColumnHead("natural niche", _MEANINGS["niche"]),
        ColumnHead(f"oracle recall@{K}", _MEANINGS["oracle"]),
        ColumnHead(f"against {display_name(BASELINE)}", _MEANINGS["difference"]),
        ColumnHead("oracle niche", _MEANINGS["niche"]),
        ColumnHead(f"true preference@{K}", _MEANINGS["true preference"]),
        ColumnHead(f"tail share@{K}", _MEANINGS["tail share"]),
    ]
    rows = [
        [
            display_name(row.method),
            share(row.natural[RECALL]),
            share(row.natural[NICHE_RECALL]),
            share(row.oracle[RECALL]),
            _with_interval(demo.difference(row.method)),
            share(row.oracle[NICHE_RECALL]),
            share(row.true_preference),
            share(row.oracle[TAIL_SHARE]),
        ]
        for row in demo.rows
    ]
    best = ["best possible", "-", "-", "-", "-", "-", share(demo.best_true_preference), "-"]
    return Table("Each method, judged by the shop's later clicks and by the truth", columns, [*rows, best])


def _with_interval(found: Difference | None) -> str:
    if found is None or not math.isfinite(found.mean):
        return UNDEFINED
    interval = "" if found.low is None or found.high is None else f" [{points(found.low)}, {points(found.high)}]"
    return f"{points(found.mean)} pp{interval}"


def _on_its_side(table: Table) -> Table:
    """A line per number and a column per method: with four methods it fits into the page."""
    columns = [ColumnHead("number", numeric=False), *(ColumnHead(row[0]) for row in table.rows)]
    rows = [
        [Term(column.name, column.meaning), *(row[index] for row in table.rows)]
        for index, column in enumerate(table.columns[1:], start=1)
    ]
    return Table(table.caption, columns, rows)


# ---------------------------------------------------------------- figures


def _looks(demo: Demo) -> list[int]:
    return looks_of([row.method for row in demo.rows])


def _echo_figure(demo: Demo) -> Figure:
    last = [int(point["round"]) for point in demo.echo]
    names = [f"rounds {end - WINDOW + 1} to {end}" for end in last]
    here, at_random = ([point[key] for point in demo.echo] for key in ("gini", "gini_random"))
    series = [Series("This shop", here, look=LISTS), Series("Showing at random", at_random, look=REFERENCE)]
    description = (
        f"Gini index of how often items were shown, per {WINDOW} rounds: from {decimal(here[0])} to "
        f"{decimal(here[-1])} in this shop, {decimal(at_random[-1])} at the end when items are shown at random."
    )

    def draw(width: int) -> str:
        return charts.line_chart(
            last,
            series,
            title="How unequally the shop shows its items, over time",
            description=description,
            x_label="round",
            y_label="inequality (Gini): 0 = all items alike",
            x_names=names,
            x_ticks=[0, *last],
            width=width,
            height=330 if width > 500 else 300,
        )

    rows = [[name, f"{a:.3f}", f"{b:.3f}"] for name, a, b in zip(names, here, at_random, strict=True)]
    columns = [ColumnHead("rounds", numeric=False), ColumnHead("this shop"), ColumnHead("showing at random")]
    caption = (
        f"Each point covers {WINDOW} rounds. At 0 every item is shown equally often, at 1 a single item is shown all "
        "the time. The dashed line is the same shop choosing at random: even chance is not perfectly even, so this "
        "is the lowest you can expect."
    )
    return Figure([Panel(draw)], caption, Table(description, columns, rows))


def _exposure_figure(demo: Demo) -> Figure:
    series = [Series("Clicks so far", demo.training_mass_by_bucket, look=REFERENCE)]
    series += [
        Series(display_name(row.method), row.exposure_by_bucket, look=look)
        for row, look in zip(demo.rows, _looks(demo), strict=True)
    ]
    first = "; ".join(f"{one.name}: {percent(one.values[0])}" for one in series)
    description = f"Share that goes to the most clicked tenth of the items. {first}."

    panel = tenths_panel(
        series,
        title="Who gets the places in the lists, by popularity of the items",
        description=description,
        ordered_by="clicked",
        y_label="share of the clicks or list places",
        narrow_height=340,
    )
    columns = [ColumnHead("tenth of the items", numeric=False), *(ColumnHead(one.name) for one in series)]
    rows = [[tenth, *(share(one.values[index]) for one in series)] for index, tenth in enumerate(TENTHS)]
    caption = (
        "Items with clicks are sorted by them and cut into ten equal groups; items without any count in the last. A "
        "method whose bar rises above the clicks so far gives a group even more attention than it already had."
    )
    return Figure([panel], caption, Table(description, columns, rows))


def _judges_figure(demo: Demo) -> Figure:
    chance = random_recall(demo)

    def panel(heading: str, test: str) -> Panel:
        rows = [charts.Row(_RANDOM, chance, look=REFERENCE)]
        for row, look in zip(demo.rows, _looks(demo), strict=True):
            low, high = row.intervals.get(test, (None, None))
            rows.append(charts.Row(display_name(row.method), getattr(row, test)[RECALL], low, high, look))
        said = "; ".join(f"{row.name}: {percent(row.value)}" for row in rows)

        def draw(width: int) -> str:
            return charts.row_chart(
                rows,
                title=heading,
                description=f"{said}.",
                x_label=f"found within {K} items",
                x_format=percent,
                width=width,
            )

        return Panel(draw, heading)

    panels = [
        panel("Judged by the shop's later clicks", "natural"),
        panel("Judged by what people truly like", "oracle"),
    ]
    rows = [[_RANDOM, share(chance), share(chance)]]
    rows += [[display_name(row.method), *(_recall(row, test) for test in ("natural", "oracle"))] for row in demo.rows]
    columns = [
        ColumnHead("method", numeric=False),
        ColumnHead("natural", _MEANINGS["natural"]),
        ColumnHead("oracle", _MEANINGS["oracle"]),
    ]
    caption = (
        f"How much of what was to be found is among the {K} recommended items. The two scales differ, because there is "
        "more to like than anyone clicks in a few rounds: compare bars within a panel. The random list is chance, "
        "calculated rather than simulated. The thin lines are 95% intervals over people."
    )
    return Figure(panels, caption, Table(f"Recall@{K} under both judges, with 95% intervals", columns, rows))


def _recall(row: Judged, test: str) -> str:
    low, high = row.intervals.get(test, (math.nan, math.nan))
    between = f" ({share(low)} to {share(high)})" if math.isfinite(low) else ""
    return share(getattr(row, test)[RECALL]) + between


# ---------------------------------------------------------------- people


def _visitors(demo: Demo) -> Section | None:
    if not demo.visitors:
        return None
    words = (
        "One typical person of each taste, what they clicked, and what each method shows them first. Wanted marks what "
        "the person truly likes (an item of their oracle test)."
    )
    return Section("Three people and their lists", [words], people=[_person(visitor) for visitor in demo.visitors])


def _person(visitor: Visitor) -> Person:
    more = visitor.clicks - len(visitor.clicked)
    listings = [Listing("Clicked", _entries(visitor.clicked), more=f"and {more:,} more" if more > 0 else "")]
    listings += [
        Listing(display_name(method), _entries(shown[:_LISTED]), ordered=True)
        for method, shown in visitor.lists.items()
    ]
    taste = GROUP_NAMES.get(visitor.taste or "", "No clicks yet")
    liked = [f"{display_name(name)} {sum(item.liked for item in shown)}" for name, shown in visitor.lists.items()]
    about = f"{taste}. Wanted among the {K} shown: {', '.join(liked)}."
    return Person(f"Visitor {visitor.user_id}", about, listings)


def _entries(items: Sequence[Shown]) -> list[ShownItem]:
    return [
        ShownItem(
            item.title,
            f"{item.clicks:,} clicks",
            "popular" if item.popular else "niche",
            marked=not item.popular,
            wanted=item.liked,
        )
        for item in items
    ]


# ---------------------------------------------------------------- the page


def _page(demo: Demo, command: str) -> Page:
    counts, parameters = demo.market["counts"], demo.market["parameters"]
    return Page(
        title="What a shop learns from its own echo",
        subtitle=(
            f"A simulated shop: {counts['users']:,} people, {counts['items']:,} items, {counts['train']:,} clicks in "
            f"{parameters['rounds']} rounds. Because it is simulated, we know what everybody truly likes."
        ),
        notice=(
            "This is a simulation. The shop, the items and the people are made up, and it was built so that the effect "
            "shows; it proves nothing about real shops."
        ),
        findings=sentences(demo),
        sections=[section for section in _sections(demo) if section is not None],
        glossary=[
            ("natural recall", _MEANINGS["natural"]),
            ("oracle recall", _MEANINGS["oracle"]),
            (f"against {display_name(BASELINE)}", _MEANINGS["difference"]),
            ("niche items", "All items but the most clicked fifth."),
            ("true preference", _MEANINGS["true preference"]),
            ("tail share", _MEANINGS["tail share"]),
            ("Gini index", "A measure of inequality: 0 when all get the same, near 1 when one gets everything."),
        ],
        command=command,
        facts=[
            *((name, version) for name, version in versions().items()),
            ("seed", str(demo.market["seed"])),
            ("seconds", f"{demo.seconds:.0f}"),
            ("market", demo.market["fingerprint"][:16]),
        ],
    )


def _sections(demo: Demo) -> list[Section | None]:
    plain = {row.method: METHODS[row.method].plain for row in demo.rows if row.method in METHODS}
    if any(row.method == ADJUSTED for row in demo.rows):
        plain[ADJUSTED] = "LightGCN as trained, with popularity taken out of its scores afterwards (caged adjust)."
    return [
        Section(
            "How unequal the shop's attention became",
            ["What is clicked is shown more often, and what is shown more often is clicked."],
            _echo_figure(demo),
        ),
        Section(
            "What each method does",
            [f"Each learns from the shop's clicks and then recommends {K} new items to everybody."],
            bullets=[f"{display_name(name)}: {words}" for name, words in plain.items() if words],
        ),
        Section("Who gets the places in the lists", figure=_exposure_figure(demo)),
        Section(
            "The same methods before two judges",
            [
                "A real shop can only check a method against its own later clicks, which repeat its habits. Here "
                "the same lists can also be checked against the truth."
            ],
            _judges_figure(demo),
        ),
        _visitors(demo),
        Section("All numbers", table=_on_its_side(comparison(demo))),
        Section("How this was done", _procedure(demo)),
    ]


def _procedure(demo: Demo) -> list[str]:
    parameters = demo.market["parameters"]
    shares = [f"{parameters[f'share_{source}']:.0%}" for source in ("popular", "model", "explore")]
    shop = (
        f"In every round a visitor sees {parameters['slots']} items: about {shares[0]} chosen by popularity, "
        f"{shares[1]} by a simple personalised model and {shares[2]} at random (exploration). The natural test is what "
        f"people click in the {parameters['test_rounds']} rounds after the training log; the oracle test is drawn from "
        "people's true taste alone, among what they have not clicked yet."
    )
    chosen = [
        f"{display_name(row.method)} kept epoch {row.best_epoch}" for row in demo.rows if row.best_epoch is not None
    ]
    epochs = (
        f"How long a method trains (at most {TRAINING['epochs']} epochs) was decided on {demo.explore_clicks:,} "
        "held-out clicks on items shown at random (explore clicks), not on clicks that the shop's own choice brought "
        f"about, and never on one of the two tests{': ' + ', '.join(chosen) if chosen else ''}."
    )
    caution = (
        "One market and one seed: small differences may be chance. Another --seed shows how much the numbers move. "
        "Intervals are percentile bootstraps of 1,000 draws of the people, each with both lists; they do not cover "
        "what another seed of market or training would change."
    )
    return [shop, epochs, caution]
