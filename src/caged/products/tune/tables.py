"""The answer of a search as tables of text, the same for the terminal, Markdown, LaTeX and the page."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import stdev

from caged.config import value_text
from caged.page.numbers import UNDEFINED, compact, number, p_value, percent, percent_change, signed
from caged.page.text_table import TextTable
from caged.products.tune.answer import Answer
from caged.products.tune.choice import Chosen
from caged.products.tune.evidence import Margin
from caged.products.tune.finals import FinalRun
from caged.products.tune.importance import Effect
from caged.products.tune.journal import Trial
from caged.products.tune.words import between, relative

OVER_USERS, OVER_SEEDS = "95% over users", "95% over seeds"


def answer_tables(answer: Answer) -> list[TextTable]:
    """For a terminal."""
    tables = [tuned_table(answer), chosen_table(answer), lead_table(answer), cost_table(answer)]
    return [table for table in tables if table.rows]


def all_tables(answer: Answer) -> list[TextTable]:
    """For a document, which has room for what each option did."""
    effects = effect_table(answer)
    return [*answer_tables(answer), *([effects] if effects.rows else [])]


def tuned_table(answer: Answer) -> TextTable:
    """A row per method and metric: validation, and test where it was read."""
    headers = ["method", "metric", "default", "tuned", "change"]
    title = "tuned against default, on validation"
    if answer.tests.default:
        headers += ["default, test", "tuned, test", "change, test", OVER_USERS, OVER_SEEDS]
    elif answer.tested:
        headers += ["tuned, test"]
    if answer.tested:
        title += " (where tuned was chosen) and on test (mean ± standard deviation over seeds)"
    rows = [_tuned_row(answer, chosen, key) for chosen in answer.choice.methods for key in answer.choice.keys]
    return TextTable(title, headers, rows, keys=2, spare=(OVER_SEEDS, "change", OVER_USERS))


def _tuned_row(answer: Answer, chosen: Chosen, key: str) -> list[str]:
    before, after = answer.defaulted(chosen, key), answer.validated(chosen, key)
    row = [chosen.method, key, number(before), number(after), relative(after, before)]
    tuned, default = (found.get(chosen.method, []) for found in (answer.tests.tuned, answer.tests.default))
    if answer.tests.default:
        change = relative(answer.test_mean(chosen.method, key), answer.default_test_mean(chosen.method, key))
        gain = next((one for one in answer.gains if (one.name, one.key) == (chosen.method, key)), None)
        row += [_over_seeds(default, key), _over_seeds(tuned, key), change, *_intervals(gain)]
    elif answer.tested:
        row += [_over_seeds(tuned, key)]
    return row


def _over_seeds(runs: Sequence[FinalRun], key: str) -> str:
    values = [run.value(key) for run in runs]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return UNDEFINED
    mean = number(sum(known) / len(known))
    return mean if len(known) == 1 else f"{mean} ± {number(stdev(known))}"


def _intervals(margin: Margin | None) -> list[str]:
    users = UNDEFINED if margin is None or margin.users is None else between(margin.users[:2])
    seeds = UNDEFINED if margin is None or margin.seeds is None else between(margin.seeds)
    return [users, seeds]


def chosen_table(answer: Answer) -> TextTable:
    """Which setting each method has, the winner first."""
    ranked = [chosen.method for chosen in answer.choice.ranked]
    held = bool(answer.settings.constraints)
    rows = [
        [
            chosen.method,
            str(ranked.index(chosen.method) + 1) if chosen.method in ranked else UNDEFINED,
            *(["yes" if chosen.feasible else "no"] if held else []),
            UNDEFINED if chosen.trial is None else str(chosen.trial.number),
            _setting(chosen),
        ]
        for chosen in sorted(answer.choice.methods, key=lambda one: _place(one, ranked))
    ]
    headers = ["method", "place", *(["constraint kept"] if held else []), "trial", "chosen setting"]
    return TextTable("what was chosen, on validation", headers, rows)


def _place(chosen: Chosen, ranked: Sequence[str]) -> int:
    return ranked.index(chosen.method) if chosen.method in ranked else len(ranked)


def _setting(chosen: Chosen) -> str:
    if chosen.trial is None:
        return f"all {len(chosen.counted)} trials failed"
    return "defaults" if chosen.trial.number == 0 else setting_text(chosen.trial)


def setting_text(trial: Trial) -> str:
    return ", ".join(f"{name.partition('.')[2]}={value_text(value)}" for name, value in trial.values.items())


def lead_table(answer: Answer) -> TextTable:
    rows = [
        [one.name, one.key, signed(one.difference), percent_change(100 * one.relative), *_intervals(one)]
        for one in answer.leads
    ]
    winner = answer.winner.method if answer.winner else ""
    title = f"{winner} less each other method, on test (mean over seeds)"
    headers = ["against", "metric", "difference", "change", OVER_USERS, OVER_SEEDS]
    return TextTable(title, headers, rows, keys=2, spare=("change", OVER_SEEDS))


def cost_table(answer: Answer) -> TextTable:
    """Equal budgets, as the journal has them."""
    settings = answer.settings
    headers = ["method", "trials", "failed", *(["pruned", "saved"] if settings.prune else []), "epochs", "seconds"]
    if answer.tested:
        headers += ["tests", "epochs of tests", "seconds of tests"]
    rows = [_cost_row(answer, chosen) for chosen in answer.choice.methods]
    where = f", on {' and '.join(answer.devices)}" if answer.devices else ""
    title = (
        f"what each was given: {answer.choice.rounds} trials of at most {settings.epochs} epochs, seed {settings.seed}"
        f"{where}"
    )
    return TextTable(title, [*headers, "note"], rows, spare=("epochs of tests", "seconds of tests"))


def _cost_row(answer: Answer, chosen: Chosen) -> list[str]:
    finals = finals_of(answer, chosen.method)
    pruned = [str(chosen.pruned), str(chosen.saved)] if answer.settings.prune else []
    row = [chosen.method, str(len(chosen.counted)), str(chosen.failed), *pruned]
    row += [str(chosen.epochs), number(chosen.seconds, 1)]
    if answer.tested:
        epochs, seconds = sum(one.epochs for one in finals), sum(one.seconds for one in finals)
        row += [str(len(finals)), str(epochs), number(seconds, 1)]
    return [*row, _note(answer, chosen, finals)]


def finals_of(answer: Answer, method: str) -> list[FinalRun]:
    """The trainings that were tested, each once: where the defaults were chosen, one test is both."""
    tuned, default = (found.get(method, []) for found in (answer.tests.tuned, answer.tests.default))
    return tuned if tuned == default else [*tuned, *default]


def _note(answer: Answer, chosen: Chosen, finals: Sequence[FinalRun]) -> str:
    said = []
    if chosen.exhausted and len(chosen.counted) < answer.choice.rounds:
        said.append("all settings tried")
    said += [f"seed {one.seed}: {one.reason}" for one in finals if one.reason]
    return "; ".join(said)


def effect_table(answer: Answer) -> TextTable:
    """What each option did; the steps from the best to the worst."""
    rows = [
        [effect.method, effect.option, percent(effect.share), p_value(effect.p_adjusted), steps_text(answer, effect)]
        for effect in answer.effects
    ]
    title = f"what each option did to {answer.settings.objective.key}: its share of the differences between trials"
    return TextTable(title, ["method", "option", "share", "p (Holm)", "mean by value, best first"], rows, keys=2)


def steps_text(answer: Answer, effect: Effect) -> str:
    objective = answer.settings.objective
    steps = sorted(effect.steps, key=lambda step: objective.of({objective.key: step.mean}), reverse=True)
    return "; ".join(f"{step.label}: {compact(step.mean)}" for step in steps)
