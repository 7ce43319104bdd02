"""The page of the answer. Every statement is computed from the numbers of the search."""

from __future__ import annotations

import math

from caged.evaluation.metrics import MetricKey
from caged.models import METHODS, display_name
from caged.page import charts
from caged.page.definitions import glossary
from caged.page.html import ColumnHead, Figure, Headline, Page, Panel, Section, Table, Term, Tile, render
from caged.page.looks import looks_of
from caged.page.numbers import percent
from caged.page.scatter import Point, scatter
from caged.page.text_table import TextTable
from caged.page.units import in_words
from caged.products.best.answer import (
    AFTER,
    BEFORE,
    MODEL,
    Answer,
    answer_sentences,
    lost_share,
    methods_table,
    next_commands,
    pairs_of,
    rule,
    tested_table,
    time_sentence,
)
from caged.products.best.judgement import CHOSEN
from caged.products.best.shortlist import BASELINE, BESTSELLERS
from caged.products.tune import Objective, front
from caged.runs.versions import versions


def answer_html(answer: Answer) -> str:
    return render(_page(answer))


def _page(answer: Answer) -> Page:
    data, chosen = answer.dataset, answer.choice.chosen
    serve, *others = answer_sentences(answer)
    why = serve.partition(": ")[2]
    return Page(
        title=f"The best model for {data['name']}",
        subtitle=(
            f"{data['users']:,} people, {data['items']:,} items, {pairs_of(data):,} pairs; found "
            f"in {answer.total_seconds / 60:.1f} minutes."
        ),
        headline=Headline(f"Serve {chosen.display}.", why[:1].upper() + why[1:]),
        findings=others,
        notice=" ".join(f"{note[0].upper()}{note[1:].rstrip('.')}." for note in answer.notes),
        sections=_sections(answer),
        glossary=glossary([MetricKey.parse(key) for key in (answer.choice.recall, answer.choice.niche)]),
        command=answer.command,
        facts=[
            *versions().items(),
            ("seed", str(answer.wish.seed)),
            ("split", str(data["split"]["kind"])),
            ("data", data["split_fingerprint"][:16]),
        ],
        links=[("Audit before: bestsellers", BEFORE), ("Audit after: the chosen model", AFTER)],
    )


def _sections(answer: Answer) -> list[Section]:
    return [
        Section("What changes for your people", tiles=_tiles(answer), figure=_test_figure(answer)),
        Section("What was tried", _tried(answer), _candidates_figure(answer), bullets=_methods(answer)),
        Section("What to type next", commands=next_commands(answer)),
        Section("How this was done", _procedure(answer)),
    ]


def _tiles(answer: Answer) -> list[Tile]:
    found = []
    for key, name in ((answer.choice.recall, "found"), (answer.choice.niche, "niche items found")):
        metric = MetricKey.parse(key)
        said = [
            f"{row.name}: {in_words(metric)(row.values[key].value)}"
            for role in (BASELINE, BESTSELLERS)
            if (row := answer.row(role)) is not None
        ]
        meaning = dict(glossary([metric])).get(str(metric), str(metric))
        found.append(
            Tile(Term(name, meaning), in_words(metric)(answer.rows[0].values[key].value), "; ".join(said), key)
        )
    return found


def _test_figure(answer: Answer) -> Figure:
    looks = looks_of([answer.choice.chosen.name, *(row.role for row in answer.rows[1:])])

    def panel(key: str) -> Panel:
        rows = []
        for row, look in zip(answer.rows, looks, strict=True):
            low, high = row.values[key].interval or (None, None)
            name = row.name if row.role == CHOSEN else display_name(row.role)  # a short one: bars have little room
            rows.append(charts.Row(name, row.values[key].value, low, high, look))
        said = "; ".join(f"{row.name}: {percent(row.value)}" for row in rows)

        def draw(width: int) -> str:
            return charts.row_chart(rows, title=key, description=f"{said}.", x_format=percent, width=width)

        return Panel(draw, key)

    panels = [
        panel(key)
        for key in (answer.choice.recall, answer.choice.niche)
        if all(math.isfinite(row.values[key].value) for row in answer.rows)
    ]
    caption = (
        "Measured once on the test part, after the choice; LightGCN at its defaults. The thin lines are 95% intervals "
        "over people."
    )
    return Figure(panels, caption, _as_table(tested_table(answer)))


def _tried(answer: Answer) -> list[str]:
    return [
        f"The rule: on validation, {rule(answer)}. Adjusted means that popularity was taken out of the scores after "
        "training."
    ]


def _methods(answer: Answer) -> list[str]:
    return [f"{display_name(method)}: {METHODS[method].plain}" for method in answer.seconds if METHODS[method].plain]


def _candidates_figure(answer: Answer) -> Figure:
    choice = answer.choice
    shown = [one for name in choice.names if (one := choice.best_of(name)) is not None]
    metrics = {one.display: one.metrics for one in shown}
    points = {
        name: Point(_known(values.get(choice.recall)), _known(values.get(choice.niche)))
        for name, values in metrics.items()
    }
    names = list(points)
    best = [
        names[place] for place in front(list(metrics.values()), [Objective(choice.recall), Objective(choice.niche)])
    ]
    looks = dict(zip(names, looks_of([one.name for one in shown]), strict=True))
    said = "; ".join(f"{name}: {percent(point.x)} and {percent(point.y)}" for name, point in points.items())

    def draw(width: int) -> str:
        return scatter(
            points,
            best,
            title="Accuracy against niche items, on validation",
            description=f"{choice.recall} and {choice.niche}. {said}.",
            x_label=choice.recall,
            y_label=choice.niche,
            written=percent,
            looks=looks,
            width=width,
        )

    caption = (
        f"Every method at its best by the rule, on the validation part. To be chosen, a model needs {choice.recall} of "
        f"at least {percent(choice.limit)}."
    )
    return Figure([Panel(draw)], caption, _as_table(methods_table(answer)))


def _known(value: float | None) -> float:
    """Where there is no niche item to find, none is found."""
    return value if value is not None and math.isfinite(value) else 0.0


def _procedure(answer: Answer) -> list[str]:
    parts, choice = answer.dataset["interactions"], answer.choice
    counts = ", ".join(f"{count:,} {name}" for name, count in parts.items())
    epochs = f"for at most {answer.epochs} epochs and " if answer.epochs else ""
    return [
        f"The log was split ({answer.dataset['split']['kind']}: {counts}). Methods took turns, a setting each, "
        f"{choice.rounds} times, {epochs}with the same seed; the defaults came first. Who has fewer settings than that "
        "tried all of them.",
        f"The choice rests on the validation part alone: {lost_share(answer)} of the best {choice.recall} may be lost "
        "for niche items. The test part was read once, after the choice, with models that had learned from the "
        "training part only. Intervals say how much the numbers vary with the people, not with another seed.",
        f"The model in {MODEL}/ learned from everything, with the settings and the number of epochs chosen before.",
        time_sentence(answer),
    ]


def _as_table(table: TextTable) -> Table:
    heads = [ColumnHead(header, numeric=index > 0) for index, header in enumerate(table.headers)]
    return Table(table.title, heads, table.rows)
