"""The page of `caged demo`, and what it says in words. Every statement is computed from the numbers of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from caged.page import charts
from caged.page.charts import Series
from caged.page.html import ColumnHead, Figure, Page, Panel, Section, Table, Term, render
from caged.page.numbers import decimal, number, percent
from caged.page.svg import REFERENCE
from caged.page.tenths import TENTHS, tenths_panel
from caged.products.demo.experiment import BASELINE, TRAINING, WINDOW, Demo, Difference, Judged, K
from caged.runs.versions import versions

RECALL, NICHE_RECALL, TAIL_SHARE = f"recall@{K}", f"recall@{K}/niche", f"tail_share@{K}"

_NAMES = {"mostpop": "Most popular", "lightgcn": "LightGCN", "ips": "IPS", "caged": "CAGED"}
_RANDOM = "Random list"
_SUBJECT = "caged"
# Two seeds of the same method differ by about 0.2 of 20 items; a smaller difference is not called one.
_NOTEWORTHY_ITEMS = 0.25
_NOTEWORTHY_SHARE = 0.02

_MEANINGS = {
    "natural": f"Share of a person's later clicks in the same shop that stand in the list of {K}; the average person.",
    "oracle": f"Share of the items drawn by a person's true taste alone that stand in the list of {K}; "
    "the average person.",
    "difference": "Oracle recall less that of LightGCN, for the average person, with its 95% interval: how much the "
    "difference would vary with other people of the same shop. It says nothing about another seed.",
    "niche": "The same, counting only niche items: all but the most clicked fifth.",
    "true preference": f"Share of the {K} listed items that a person truly likes; only a simulation knows it.",
    "tail share": f"Share of the {K} places that go to niche items.",
}


def demo_html(demo: Demo, command: str, audits: Mapping[str, str] | None = None) -> str:
    """The whole page; `command` is what the reader can type to get it again, `audits` are the pages of the methods."""
    links = [(f"Audit of {method_name(method)}", page) for method, page in (audits or {}).items()]
    return render(replace(_page(demo, command), links=links))


def method_name(method: str) -> str:
    return _NAMES.get(method, method)


# ---------------------------------------------------------------- in words


def sentences(demo: Demo) -> list[str]:
    """For somebody who runs a shop: the echo, the two judges, how good the lists truly are; and CAGED by the truth."""
    said = [_about_the_echo(demo), _about_the_judges(demo), _about_the_truth(demo)]
    found = demo.difference(_SUBJECT)
    return said if found is None else [*said, _about_the_difference(found)]


def random_recall(demo: Demo) -> float:
    """Expected recall of K items drawn at random among those a person has not clicked."""
    counts = demo.market["counts"]
    return float(min(1.0, K / (counts["items"] - counts["train"] / counts["users"])))


def _about_the_echo(demo: Demo) -> str:
    share = demo.market["top_fifth_share"]
    rounds = demo.market["parameters"]["rounds"]
    numbers = (
        f"after {rounds} rounds the most clicked fifth of the items has {share['log']:.0%} of all clicks, while the "
        f"best liked fifth would get {share['true_appeal']:.0%} if everybody saw everything"
    )
    if share["log"] > share["true_appeal"] + _NOTEWORTHY_SHARE:
        return f"This shop shows what sells and sells what it shows: {numbers}."
    return f"In this shop clicks are hardly more concentrated than people's taste: {numbers}."


def _about_the_judges(demo: Demo) -> str:
    row = _row(demo, "mostpop", 0)
    chance = random_recall(demo)
    natural, oracle = row.natural[RECALL] / chance, row.oracle[RECALL] / chance
    what = "showing everybody the same bestsellers" if row.method == "mostpop" else method_name(row.method)
    return (
        f"Judged by the shop's own later clicks, {what} finds {_compared(natural)}; judged by what people truly like, "
        f"it finds {_compared(oracle)}."
    )


def _compared(ratio: float) -> str:
    """
    >>> _compared(11.7), _compared(1.22), _compared(1.0), _compared(0.5)
    ('12 times as much as chance', '1.2 times as much as chance', 'no more than chance', 'less than chance')
    """
    if not math.isfinite(ratio):
        return "nothing that can be measured"
    if ratio < 1.05:
        return "less than chance" if ratio < 0.95 else "no more than chance"
    return f"{ratio:.0f} times as much as chance" if ratio >= 9.5 else f"{ratio:.1f} times as much as chance"


def _about_the_truth(demo: Demo) -> str:
    base = _row(demo, "lightgcn", -1)
    possible = K * demo.best_true_preference
    popular = [row for row in demo.rows if row.method == "mostpop" != base.method]
    aside = f" (bestsellers: {K * popular[0].true_preference:.1f})" if popular else ""
    start = (
        f"Of {K} items that {method_name(base.method)} recommends, people truly like {K * base.true_preference:.1f} "
        f"on average{aside}, where {possible:.1f} would be possible"
    )
    others = [row for row in demo.rows if row.method not in ("mostpop", base.method)]
    return "; ".join([start, *(_against(row, base) for row in others)]) + "."


def _against(row: Judged, base: Judged) -> str:
    liked = K * (row.true_preference - base.true_preference)
    if abs(liked) < _NOTEWORTHY_ITEMS:
        truth = f"{method_name(row.method)} changes this little ({K * row.true_preference:.1f})"
    else:
        change = "raises" if liked > 0 else "lowers"
        truth = f"{method_name(row.method)} {change} this to {K * row.true_preference:.1f}"
    found = row.natural[RECALL] / base.natural[RECALL] - 1 if base.natural[RECALL] else math.nan
    if not abs(found) >= _NOTEWORTHY_SHARE:
        return f"{truth} and finds about as many of the shop's later clicks"
    return f"{truth} and finds {abs(found):.0%} {'more' if found > 0 else 'fewer'} of the shop's later clicks"


def _about_the_difference(found: Difference) -> str:
    name, base = method_name(found.method), method_name(BASELINE)
    if found.low is None or found.high is None:
        return f"{name}'s oracle recall@{K} differs from that of {base} by {found.mean:+.4f}, and has no interval."
    if found.low > 0:
        verdict = f"{name} finds more of what people truly like than {base}"
    elif found.high < 0:
        verdict = f"{name} finds less of what people truly like than {base}"
    else:
        verdict = f"{name} cannot be told from {base} by what people truly like"
    return f"{verdict}: oracle recall@{K} differs by {_with_interval(found)}, the 95% interval over people in brackets."


def _with_interval(found: Difference | None) -> str:
    if found is None or not math.isfinite(found.mean):
        return "-"
    interval = "" if found.low is None or found.high is None else f" [{found.low:+.4f}, {found.high:+.4f}]"
    return f"{found.mean:+.4f}{interval}"


def _row(demo: Demo, method: str, otherwise: int) -> Judged:
    return next((row for row in demo.rows if row.method == method), demo.rows[otherwise])


# ---------------------------------------------------------------- tables


def comparison(demo: Demo) -> Table:
    """Every method under both judges; the last line is the best that anybody could do."""
    columns = [
        ColumnHead("method", numeric=False),
        ColumnHead(f"natural recall@{K}", _MEANINGS["natural"]),
        ColumnHead("natural niche", _MEANINGS["niche"]),
        ColumnHead(f"oracle recall@{K}", _MEANINGS["oracle"]),
        ColumnHead(f"against {method_name(BASELINE)}", _MEANINGS["difference"]),
        ColumnHead("oracle niche", _MEANINGS["niche"]),
        ColumnHead(f"true preference@{K}", _MEANINGS["true preference"]),
        ColumnHead(f"tail share@{K}", _MEANINGS["tail share"]),
    ]
    rows = [
        [
            method_name(row.method),
            number(row.natural[RECALL]),
            number(row.natural[NICHE_RECALL]),
            number(row.oracle[RECALL]),
            _with_interval(demo.difference(row.method)),
            number(row.oracle[NICHE_RECALL]),
            number(row.true_preference),
            number(row.oracle[TAIL_SHARE]),
        ]
        for row in demo.rows
    ]
    best = ["best possible", "-", "-", "-", "-", "-", number(demo.best_true_preference), "-"]
    return Table("Each method, judged by the shop's later clicks and by the truth", columns, [*rows, best])


def _on_its_side(table: Table) -> Table:
    """A line per number and a column per method: with four methods it fits into the page."""
    columns = [ColumnHead("number", numeric=False), *(ColumnHead(row[0]) for row in table.rows)]
    rows = [
        [Term(column.name, column.meaning), *(row[index] for row in table.rows)]
        for index, column in enumerate(table.columns[1:], start=1)
    ]
    return Table(table.caption, columns, rows)


# ---------------------------------------------------------------- figures


def _echo_figure(demo: Demo) -> Figure:
    last = [int(point["round"]) for point in demo.echo]
    names = [f"rounds {end - WINDOW + 1} to {end}" for end in last]
    here, at_random = ([point[key] for point in demo.echo] for key in ("gini", "gini_random"))
    series = [Series("This shop", here), Series("Showing at random", at_random, look=REFERENCE)]
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
            width=width,
            height=330 if width > 500 else 300,
        )

    rows = [[name, f"{a:.3f}", f"{b:.3f}"] for name, a, b in zip(names, here, at_random, strict=True)]
    columns = [ColumnHead("rounds", numeric=False), ColumnHead("this shop"), ColumnHead("showing at random")]
    caption = (
        f"Each point covers {WINDOW} rounds. At 0 every item is shown equally often, at 1 a single item is shown all "
        "the time. The dashed line is the same shop choosing at random: even chance is not perfectly even, so this "
        "is the lowest that can be expected."
    )
    return Figure([Panel(draw)], caption, Table(description, columns, rows))


def _exposure_figure(demo: Demo) -> Figure:
    series = [Series("Clicks so far", demo.training_mass_by_bucket, look=REFERENCE)]
    series += [Series(method_name(row.method), row.exposure_by_bucket, look=look) for look, row in enumerate(demo.rows)]
    first = "; ".join(f"{one.name}: {percent(one.values[0])}" for one in series)
    description = f"Share that goes to the most clicked tenth of the items. {first}."

    panel = tenths_panel(
        series,
        title="Who gets the places in the lists, by popularity of the items",
        description=description,
        ordered_by="clicked",
        y_label="share of the clicks (grey) or list places",
        narrow_height=340,
    )
    columns = [ColumnHead("tenth of the items", numeric=False), *(ColumnHead(one.name) for one in series)]
    rows = [[tenth, *(percent(one.values[index]) for one in series)] for index, tenth in enumerate(TENTHS)]
    caption = (
        "Items with clicks are sorted by them and cut into ten equal groups; items without any count in "
        "the last. Grey: the clicks that the methods learned "
        "from. A coloured bar above the grey one gives a group even more attention than it already had, one below "
        "gives it less."
    )
    return Figure([panel], caption, Table(description, columns, rows))


def _judges_figure(demo: Demo) -> Figure:
    chance = random_recall(demo)
    natural, oracle = ([getattr(row, part)[RECALL] for row in demo.rows] for part in ("natural", "oracle"))
    names = [method_name(row.method) for row in demo.rows]

    def panel(heading: str, values: Sequence[float]) -> Panel:
        rows = [charts.Row(_RANDOM, chance, look=REFERENCE)]
        rows += [
            charts.Row(name, value, look=look) for look, (name, value) in enumerate(zip(names, values, strict=True))
        ]
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

    panels = [panel("Judged by the shop's later clicks", natural), panel("Judged by what people truly like", oracle)]
    rows = [[_RANDOM, percent(chance), percent(chance)]]
    rows += [[name, percent(a), percent(b)] for name, a, b in zip(names, natural, oracle, strict=True)]
    columns = [
        ColumnHead("method", numeric=False),
        ColumnHead("natural", _MEANINGS["natural"]),
        ColumnHead("oracle", _MEANINGS["oracle"]),
    ]
    caption = (
        f"How much of what was to be found stands among the {K} recommended items. The two scales differ, because "
        "there is more to like than is clicked in a few rounds: compare bars within a panel. Grey is what a list "
        "drawn at random finds on average: chance (calculated, not simulated)."
    )
    return Figure(panels, caption, Table(f"Recall@{K} under both judges", columns, rows))


# ---------------------------------------------------------------- the page


def _page(demo: Demo, command: str) -> Page:
    counts, parameters = demo.market["counts"], demo.market["parameters"]
    return Page(
        title="What a shop learns from its own echo",
        subtitle=(
            f"A simulated shop: {counts['users']:,} people, {counts['items']:,} items, {counts['train']:,} clicks in "
            f"{parameters['rounds']} rounds. Because it is simulated, it is known what everybody truly likes."
        ),
        notice=(
            "This is a simulation. Shop, items and people are made up, and it was built so that the effect can be "
            "seen; it is no evidence about real shops."
        ),
        findings=sentences(demo),
        sections=[
            Section(
                "How unequal the shop's attention became",
                ["What is clicked is shown more often, and what is shown more often is clicked."],
                _echo_figure(demo),
            ),
            Section(
                "Who gets the places in the lists",
                [f"Each method learns from the shop's clicks and then recommends {K} new items to everybody."],
                _exposure_figure(demo),
            ),
            Section(
                "The same methods before two judges",
                [
                    "A real shop can only check a method against its own later clicks, which repeat its habits. Here "
                    "the same lists can also be checked against the truth."
                ],
                _judges_figure(demo),
            ),
            Section("All numbers", table=_on_its_side(comparison(demo))),
            Section("How this was done", _procedure(demo)),
        ],
        glossary=[
            ("natural recall", _MEANINGS["natural"]),
            ("oracle recall", _MEANINGS["oracle"]),
            (f"against {method_name(BASELINE)}", _MEANINGS["difference"]),
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
        f"{method_name(row.method)} kept epoch {row.best_epoch}" for row in demo.rows if row.best_epoch is not None
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
