"""The page of a search. Every statement is computed from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from caged.evaluation.metrics import MetricKey
from caged.files import write_text
from caged.models import METHODS, display_name
from caged.page import charts
from caged.page.cloud import Dot, cloud, far_dots
from caged.page.definitions import INTERVAL, glossary
from caged.page.html import ColumnHead, Figure, Headline, Page, Panel, Section, Table, render
from caged.page.looks import looks_of
from caged.page.numbers import number, percent, signed
from caged.page.text_table import TextTable, is_figure
from caged.products.tune.answer import PAGE, Answer
from caged.products.tune.choice import Chosen
from caged.products.tune.importance import LEAST_TRIALS, too_few
from caged.products.tune.journal import Trial
from caged.products.tune.objective import Objective, front
from caged.products.tune.presets import preset_path
from caged.products.tune.tables import (
    OVER_SEEDS,
    OVER_USERS,
    chosen_table,
    cost_table,
    effect_table,
    lead_table,
    setting_text,
    tuned_table,
)
from caged.products.tune.words import chance, held, judged_again, lead_over_second, still_to_test

_STRONGEST = 10  # options in the chart
_TERMS = {
    OVER_USERS: INTERVAL,
    OVER_SEEDS: "95% interval over training runs (Welch's t): where the difference lies for other seeds. With two or "
    "three seeds it is wide.",
    "tests": "Trainings of the chosen setting (and of the defaults, where asked for), one for each seed.",
    "share": "Of the differences between the trials of the method, how much goes with this option alone (epsilon "
    "squared): 0% = it did nothing, 100% = it decided everything.",
    "p (Holm)": "How often shuffled trials show as large a share, with Holm's correction for the number of options in "
    "this table. Above 0.05 it may be chance.",
    "failed": "Trials that gave no numbers; the journal has the reason.",
    "pruned": "Trials that ended early because they were behind; they cannot be chosen.",
    "saved": "Epochs that pruned trials left of the cap; they might have ended by themselves before.",
}


def write_page(answer: Answer, command: str) -> Path:
    path = answer.folder / PAGE
    write_text(path, answer_html(answer, command))
    return path


def answer_html(answer: Answer, command: str) -> str:
    """The whole page; `command` is what the reader can type to get it again."""
    settings, keys = answer.settings, [MetricKey.parse(key) for key in answer.choice.keys]
    wish = "highest" if settings.objective.maximise else "lowest"
    subject = "".join(f", subject to {each}" for each in settings.constraints)
    return render(
        Page(
            title=f"{_who(settings.methods)} tuned on {answer.dataset}",
            subtitle=f"Which has the {wish} {settings.objective.key}{subject}? {_given(answer)}",
            headline=_headline(answer),
            notice=_notice(answer),
            findings=(),
            sections=_sections(answer),
            glossary=glossary(keys),
            command=command,
            facts=_facts(answer),
        )
    )


def _who(methods: Sequence[str]) -> str:
    return f"{len(methods)} methods" if len(methods) > 1 else display_name(methods[0])


def _given(answer: Answer) -> str:
    settings = answer.settings
    said = (
        f"Each method had {answer.choice.rounds} trials of at most {settings.epochs} epochs and seed {settings.seed}; "
        "its defaults were the first trial."
    )
    return said if answer.made_for is None else f"{said} {judged_again(answer.made_for)}"


def _notice(answer: Answer) -> str:
    if answer.tests.left:
        return still_to_test(answer)
    if not answer.tested:
        return "The search is not closed: nothing is tested yet, and what is chosen may change."
    return ""


def _headline(answer: Answer) -> Headline:
    winner, second, key = answer.winner, answer.second, answer.settings.objective.key
    kept = held(answer)
    if winner is None:
        return Headline(f"No method wins: no trial {kept or 'succeeded'}.")
    name = display_name(winner.method)
    said = f"{name} wins with {key} {number(answer.validated(winner, key))} on validation"
    said += f", the best of all that {kept}." if kept else "."
    if second is None:
        return Headline(said)
    behind = f"Next is {display_name(second.method)} with {number(answer.validated(second, key))}."
    return Headline(said, f"{behind} {_on_test(answer)}".rstrip())


def _on_test(answer: Answer) -> str:
    margin = lead_over_second(answer)
    if margin is None:
        return ""
    sides = [("these users", margin.users[:2] if margin.users else None), ("training runs", margin.seeds)]
    verdicts: dict[str, list[str]] = {}
    for whom, bounds in sides:
        if bounds is not None:
            verdicts.setdefault(chance(bounds), []).append(whom)
    said = [f"{verdict} for {' and '.join(whom)}" for verdict, whom in verdicts.items()]
    told = f" ({', '.join(said)})" if said else ""
    return f"On the test part the difference between the two is {signed(margin.difference)}{told}."


# ---------------------------------------------------------------- sections


def _sections(answer: Answer) -> list[Section]:
    found = []
    figure = _front_figure(answer)
    if figure is not None:
        found.append(Section("Accuracy and niche items, every trial", figure=figure))
    if answer.leads:
        sure = _without(lead_table(answer), "change")
        found.append(Section("How sure is the lead?", [_about_sure(answer)], table=_table(sure)))
    found += [
        Section(f"Tuned against default: {key}", [_about_tuned(answer)], table=_tuned_table(answer, key))
        for key in answer.choice.keys
    ]
    found.append(Section("What was chosen", table=_table(chosen_table(answer))))
    found.append(_importance_section(answer))
    found.append(Section("What it cost", [_about_cost(answer)], table=_table(cost_table(answer))))
    if answer.winner is not None:
        found.append(_use_section(answer, answer.winner))
    return found


def _about_sure(answer: Answer) -> str:
    winner = answer.winner
    assert winner is not None
    return (
        f"{display_name(winner.method)} less each other method, each with its chosen setting, on the test part. An "
        "interval that holds 0 leaves open who is ahead. The one over users resamples the users, paired, after each "
        "user's values were averaged over the seeds; the one over seeds asks what other training runs would give."
    )


def _about_tuned(answer: Answer) -> str:
    said = "On validation, tuned is at an advantage: it was chosen there."
    if answer.tests.default:
        return (
            f"{said} On test, both were trained with the same seeds and the same cap on epochs; the interval is that "
            "of their difference."
        )
    if answer.tested:
        return f"{said} On test only what was chosen was measured; --test-defaults measures the defaults, too."
    return said


def _about_cost(answer: Answer) -> str:
    on = "GPU" if answer.on_gpu else "CPU"
    return (
        f"Seconds are those that a training kept the {on} ({', '.join(answer.devices) or 'not recorded'}) busy, as "
        "measured around it. Trials and the cap on epochs are the same for all; early stopping, and settings that run "
        "out, make the epochs differ."
    )


def _use_section(answer: Answer, winner: Chosen) -> Section:
    preset = preset_path(answer.folder, winner.method)
    commands = [
        (f"Train {display_name(winner.method)} with the chosen setting ({preset} holds it):", answer.command(winner))
    ]
    return Section(
        "Train the chosen model",
        [f"A preset file for each method lies in {preset.parent}; --preset takes it."],
        commands=commands,
    )


# ---------------------------------------------------------------- the front


def _front_figure(answer: Answer) -> Figure | None:
    axes = answer.choice.trade_off
    if axes is None:
        return None
    x_key, y_key = axes
    trials = [trial for one in answer.choice.methods for trial in one.counted if _has(trial, axes)]
    if not trials:
        return None
    looks = dict(zip(answer.settings.methods, looks_of(answer.settings.methods), strict=True))
    chosen = {(one.method, one.trial.number) for one in answer.choice.methods if one.trial is not None}
    dots = [
        _dot(trial, axes, looks[trial.method], stands_out=(trial.method, trial.number) in chosen) for trial in trials
    ]
    places = front([{x_key: dot.x, y_key: dot.y} for dot in dots], [Objective(x_key), Objective(y_key)])
    edge = sorted((dots[place] for place in places), key=lambda dot: (dot.x, -dot.y))
    legend = {display_name(method): looks[method] for method in answer.settings.methods}
    on_front = list(dict.fromkeys(display_name(trials[place].method) for place in places))
    description = f"{y_key} over {x_key} on validation, a dot per trial; on the front: {', '.join(on_front)}."

    def draw(width: int) -> str:
        return cloud(
            dots,
            edge,
            legend,
            title=f"{y_key} over {x_key}, every trial",
            description=description,
            x_label=f"{x_key}, validation",
            y_label=f"{y_key}, validation",
            x_limit=_limit(answer, x_key),
            width=width,
            height=440 if width > 500 else 460,
        )

    caption = (
        "A dot is a trial; hover over it for its setting. Higher and further right is better. The dashed line is the "
        "front: no trial beats those on it in one metric without losing in the other. Ringed and named: what was "
        "chosen for each method. The axes show where the trials are and need not begin at zero."
    )
    if far := far_dots(dots, edge):
        least = number(max(dot.x for dot in far))
        caption += f" Trials with {x_key} of {least} or less ({len(far)}) stand at the left edge."
    on_edge = {(trials[place].method, trials[place].number) for place in places}
    return Figure([Panel(draw)], caption, _trials_table(trials, axes, on_edge))


def _has(trial: Trial, keys: Sequence[str]) -> bool:
    return trial.metrics is not None and all(trial.metrics.get(key) is not None for key in keys)


def _dot(trial: Trial, axes: tuple[str, str], look: int, *, stands_out: bool) -> Dot:
    x, y = (float((trial.metrics or {})[key] or 0.0) for key in axes)
    name = display_name(trial.method)
    written = [f"{key} {number(value)}" for key, value in zip(axes, (x, y), strict=True)]
    setting = "defaults" if trial.number == 0 else setting_text(trial)
    return Dot(x, y, look, f"{name}, trial {trial.number}: {setting}; {', '.join(written)}", name if stands_out else "")


def _limit(answer: Answer, key: str) -> tuple[float, str] | None:
    for limit in answer.choice.goal.limits:
        if limit.key == key:
            return limit.value, f"{'at least' if limit.sense == '>=' else 'at most'} {number(limit.value)}"
    return None


def _trials_table(trials: Sequence[Trial], axes: tuple[str, str], on_edge: set[tuple[str, int]]) -> Table:
    columns = [ColumnHead("method", numeric=False), ColumnHead("trial"), *map(ColumnHead, axes)]
    columns += [ColumnHead("on the front", numeric=False), ColumnHead("setting", numeric=False)]
    rows = [
        [
            display_name(trial.method),
            str(trial.number),
            *(number((trial.metrics or {})[key]) for key in axes),
            "yes" if (trial.method, trial.number) in on_edge else "no",
            "defaults" if trial.number == 0 else setting_text(trial),
        ]
        for trial in trials
    ]
    return Table("Every trial, on validation", columns, rows)


# ---------------------------------------------------------------- what each option did


def _importance_section(answer: Answer) -> Section:
    title, few = "What each option did", too_few(answer.choice)
    said = []
    if few:
        names = ", ".join(map(display_name, few))
        said.append(
            f"Fewer than {LEAST_TRIALS} trials with numbers say nothing about an option, so these are left out: "
            f"{names}."
        )
    if not answer.effects:
        return Section(title, said or ["No option was tried at enough values to tell."])
    return Section(title, said, figure=_effect_figure(answer))


def _effect_figure(answer: Answer) -> Figure:
    key, effects = answer.settings.objective.key, answer.effects
    looks = dict(zip(answer.settings.methods, looks_of(answer.settings.methods), strict=True))
    rows = [
        charts.Row(
            f"{effect.option.partition('.')[2]} ({display_name(effect.method)})",
            effect.share,
            look=looks[effect.method],
        )
        for effect in effects[:_STRONGEST]
    ]
    described = "; ".join(f"{row.name} {percent(row.value)}" for row in rows)

    def draw(width: int) -> str:
        return charts.row_chart(
            rows,
            title=f"Share of the differences in {key} that goes with an option",
            description=f"{described}.",
            x_format=percent,
            width=width,
        )

    sure = [effect for effect in effects if effect.p_adjusted < 0.05]
    lasting = f"{len(sure)} of {len(effects)} are more than chance (p below 0.05)." if sure else "All may be chance."
    pruned = " Pruned trials are not counted." if answer.settings.prune else ""
    caption = (
        f"Of the differences in {key} between the trials of a method, the share that goes with one option alone. "
        f"{lasting}{pruned} Options that only act together are not seen, and trials gather where values were good, so "
        f"this describes these trials rather than the option. The {len(rows)} largest of {len(effects)} are drawn."
    )
    return Figure([Panel(draw)], caption, _table(effect_table(answer)))


# ---------------------------------------------------------------- parts


def _table(table: TextTable) -> Table:
    """As in the terminal, with the names of the methods as people write them."""
    numeric = [all(is_figure(row[place]) for row in table.rows) for place in range(len(table.headers))]
    heads = [
        ColumnHead(name, _TERMS.get(name, ""), numeric=side) for name, side in zip(table.headers, numeric, strict=True)
    ]
    rows = [[display_name(row[0]) if row[0] in METHODS else row[0], *map(_unbroken, row[1:])] for row in table.rows]
    return Table(f"{table.title[0].upper()}{table.title[1:]}", heads, rows)


def _tuned_table(answer: Answer, key: str) -> Table:
    """Of one metric, so that it fits into the page."""
    table = _without(tuned_table(answer), "change", "change, test", OVER_SEEDS)
    place = table.headers.index("metric")
    rows = [row for row in table.rows if row[place] == key]
    return _table(_without(TextTable(f"{table.title}: {key}", table.headers, rows), "metric"))


def _without(table: TextTable, *headers: str) -> TextTable:
    kept = [place for place, header in enumerate(table.headers) if header not in headers]
    rows = [[row[place] for place in kept] for row in table.rows]
    return TextTable(table.title, [table.headers[place] for place in kept], rows)


def _unbroken(cell: str) -> str:
    return cell.replace(" ", "\u00a0") if is_figure(cell) else cell


def _facts(answer: Answer) -> list[tuple[str, str]]:
    calls = answer.calls
    if not calls:
        return []
    return [
        *((name, str(value)) for name, value in calls[-1]["versions"].items()),
        ("machine", ", ".join(answer.devices)),
    ]
