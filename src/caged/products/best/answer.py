"""The answer: what to serve, how good it is, and what to type next. For a terminal and as JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from caged.config import value_text
from caged.data.ids import IdMap
from caged.evaluation.metrics import MetricKey
from caged.models import display_name
from caged.page.numbers import UNDEFINED, percent
from caged.page.text_table import TextTable
from caged.page.units import in_words, of_difference, share, together
from caged.products.best.choice import Candidate, Choice
from caged.products.best.judgement import Bounds, Judged, Value
from caged.products.best.shortlist import BASELINE, BESTSELLERS
from caged.products.best.wish import Wish
from caged.runs.loading import DatasetFacts
from caged.runs.versions import versions

FILE, PAGE, MODEL = "best.json", "report.html", "model"
BEFORE, AFTER = "audit-before.html", "audit-after.html"
ARTEFACT = "artefact"
LOOKED_AT = 100  # users, for one whose id can be typed


@dataclass(frozen=True, eq=False)
class Answer:
    folder: Path
    wish: Wish
    command: str
    dataset: DatasetFacts
    example_user: str | None  # whose id can be typed
    epochs: int  # of a training, at most
    choice: Choice
    rows: tuple[Judged, ...]  # of the test part, the chosen model first
    users: int  # of the test part
    settings_tried: Mapping[str, int]  # by method, of those that count
    seconds: Mapping[str, float]  # by method
    total_seconds: float
    notes: tuple[str, ...]

    def row(self, role: str) -> Judged | None:
        return next((row for row in self.rows if row.role == role), None)

    @property
    def is_the_baseline(self) -> bool:
        """LightGCN at its defaults was chosen."""
        chosen = self.choice.chosen
        return (chosen.name, chosen.trial) == (BASELINE, 0)


def answer_json(answer: Answer) -> dict[str, Any]:
    return {
        "folder": str(answer.folder),
        "model": str(answer.folder / MODEL),
        "command": answer.command,
        "chosen": {**asdict(answer.choice.chosen), "name": answer.choice.chosen.name},
        "rule": rule(answer),
        "test": [row.to_json() for row in answer.rows],
        "test_users": answer.users,
        "validation": answer.choice.to_json(),
        "settings_tried": dict(answer.settings_tried),
        "most_epochs": answer.epochs,
        "seconds": {**answer.seconds, "total": answer.total_seconds},
        "notes": list(answer.notes),
        "next": [command for _, command in next_commands(answer)],
        "sentences": answer_sentences(answer),
        "wish": answer.wish.to_json(),
        "dataset": dict(answer.dataset),
        "versions": versions(),
    }


def pairs_of(facts: DatasetFacts) -> int:
    """Of the whole log; further tests of a dataset and what was not liked are no part of it."""
    return sum(facts["interactions"].get(part, 0) for part in ("train", "valid", "test"))


# ---------------------------------------------------------------- words


def lost_share(answer: Answer) -> str:
    """How much of the best recall may be lost."""
    return percent(1 - answer.wish.keep)


def rule(answer: Answer) -> str:
    choice = answer.choice
    return f"the highest {choice.niche} of all whose {choice.recall} is within {lost_share(answer)} of the best"


def answer_sentences(answer: Answer) -> list[str]:
    return [_about_the_choice(answer), _about_accuracy(answer), _about_niche(answer), _about_the_model(answer)]


def _about_the_choice(answer: Answer) -> str:
    chosen = answer.choice.chosen
    said = f"Serve {chosen.display} ({setting_of(chosen)})"
    if sum(one.within for one in answer.choice.candidates) == 1:
        return f"{said}: nothing else came within {lost_share(answer)} of its {answer.choice.recall} on validation."
    return f"{said}: on validation it has {rule(answer)}."


def setting_of(candidate: Candidate) -> str:
    """What differs from the defaults, in short.

    >>> setting_of(Candidate("softmax", 1, {"train.learning_rate": 0.005}, 0.1, {}, 9))
    'learning_rate=0.005, strength 0.1'
    """
    said = [f"{name.partition('.')[2]}={value_text(value)}" for name, value in candidate.values.items()]
    said += [] if candidate.strength is None else [f"strength {candidate.strength:g}"]
    return ", ".join(said) or "defaults"


def _about_accuracy(answer: Answer) -> str:
    key = answer.choice.recall
    k = MetricKey.parse(key).k
    return (
        f"Of what people went on to take in the test part, its lists of {k} find {_compared(answer, key)}. "
        "Brackets are 95% intervals over people."
    )


def _about_niche(answer: Answer) -> str:
    key = answer.choice.niche
    if not math.isfinite(answer.rows[0].values[key].value):
        return "The test part holds no niche item, so nothing can be said about them."
    found = _compared(answer, key)
    return f"Of the niche items among that (all but the most popular fifth), they find {found}."


def _compared(answer: Answer, key: str) -> str:
    said = [_with_interval(answer.rows[0].values[key], key)]
    for role in (BASELINE, BESTSELLERS):
        row = answer.row(role)
        if row is not None:
            value = row.values[key]
            said.append(f"{row.name} {in_words(MetricKey.parse(key))(value.value)} ({_gain(value, key)})")
        elif role == BASELINE and answer.is_the_baseline:
            said[0] += " (this is LightGCN at its defaults)"
    return "; ".join(said)


def _with_interval(value: Value, key: str) -> str:
    metric = MetricKey.parse(key)
    if value.interval is None:
        return in_words(metric)(value.value)
    mine, low, high = together(metric, value.value, *value.interval)
    return f"{mine} [{low}, {high}]"


def _gain(value: Value, key: str) -> str:
    """How much higher the chosen model is."""
    written = of_difference(MetricKey.parse(key))
    return f"{written(value.difference)}{_bounds(value.difference_interval)}"


def _bounds(bounds: Bounds | None) -> str:
    return "" if bounds is None else f" [{100 * bounds[0]:+.2f}, {100 * bounds[1]:+.2f}]"


def _about_the_model(answer: Answer) -> str:
    pairs = pairs_of(answer.dataset)
    chosen = answer.choice.chosen
    epochs = f" for {chosen.epochs} epochs" if chosen.epochs else ""
    return (
        f"{answer.folder / MODEL} was then trained{epochs} on the whole log ({pairs:,} pairs), so it knows everything, "
        "and only new data can test it."
    )


# ---------------------------------------------------------------- tables


def answer_tables(answer: Answer) -> list[TextTable]:
    return [tested_table(answer), methods_table(answer)]


def tested_table(answer: Answer) -> TextTable:
    choice = answer.choice
    headers = ["model", choice.recall, "chosen against it", choice.niche, "chosen against it, niche"]
    rows = []
    for row in answer.rows:
        cells = [row.name]
        for key in (choice.recall, choice.niche):
            value = row.values[key]
            low_high = "" if value.interval is None else f" [{share(value.interval[0])}, {share(value.interval[1])}]"
            cells += [share(value.value) + low_high, UNDEFINED if math.isnan(value.difference) else _gain(value, key)]
        rows.append(cells)
    return TextTable(f"the test part, {answer.users:,} people, read once", headers, rows)


def methods_table(answer: Answer) -> TextTable:
    choice = answer.choice
    headers = ["method", choice.recall, choice.niche, f"within {lost_share(answer)}", "setting", "tried", "seconds"]
    rows = [_method_row(answer, one) for name in choice.names if (one := choice.best_of(name)) is not None]
    title = f"every method at its best by the rule, on validation; {_settings(choice.rounds)} each"
    title += f", at most {answer.epochs} epochs" if answer.epochs else ""
    return TextTable(title, headers, rows, spare=("tried", "seconds", "setting"))


def _settings(count: int) -> str:
    return f"{count} setting{'' if count == 1 else 's'}"


def _method_row(answer: Answer, one: Candidate) -> list[str]:
    """What was adjusted was not trained again."""
    trained = one.strength is None
    return [
        one.display,
        *(share(_number(one.metrics.get(key))) for key in (answer.choice.recall, answer.choice.niche)),
        "yes" if one.within else "no",
        setting_of(one),
        str(answer.settings_tried.get(one.method, 0)) if trained else UNDEFINED,
        f"{answer.seconds.get(one.method, 0.0):.1f}" if trained else UNDEFINED,
    ]


def _number(value: float | None) -> float:
    return math.nan if value is None else value


# ---------------------------------------------------------------- what to type next


def next_commands(answer: Answer) -> list[tuple[str, str]]:
    """What one does, what to type."""
    model, artefact = str(answer.folder / MODEL), str(answer.folder / ARTEFACT)
    if answer.example_user is None:
        lists = ["caged", "recommend", model, "--all-users", "-o", "recs.csv"]
    else:
        lists = ["caged", "recommend", model, "--users", answer.example_user, "-k", "10"]
    return [
        ("See a list", shlex.join(lists)),
        (
            "Make the folder that a server answers from",
            shlex.join(["caged", "export", "artefact", model, "-o", artefact]),
        ),
        ("Serve it over HTTP", shlex.join(["caged", "serve", artefact])),
    ]


def typable(users: IdMap) -> str | None:
    """The first user whose id stands on a command line as it is: --users takes ids apart at commas."""
    first = map(str, users.values[:LOOKED_AT].to_pylist())
    return next((user for user in first if user == user.strip() and user.isprintable() and _is_plain(user)), None)


def _is_plain(user: str) -> bool:
    return bool(user) and user[0] != "-" and "," not in user


def time_sentence(answer: Answer) -> str:
    parts = ", ".join(f"{display_name(method)} {seconds:.0f} s" for method, seconds in answer.seconds.items())
    return f"{answer.total_seconds / 60:.1f} of {answer.wish.minutes:g} minutes: {parts}."
