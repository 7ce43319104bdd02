"""How datasets, rows and settings are called in tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from caged.data.known import DATASETS
from caged.models import display_name
from caged.models.registry import ADJUSTED
from caged.products.study import PlannedRun

SYMBOLS = {"method.lam": "lambda", "method.beta": "beta", "method.estimator_layers": "hidden layers of the estimator"}


def data_name(run: PlannedRun) -> str:
    """Of a known dataset its own; data that is a path is called as the plan calls it, because files are named so."""
    return run.data if run.data in DATASETS else run.dataset


def varied_key(run: PlannedRun) -> str | None:
    """The dotted setting of which the row tries a value; None where the plan does not vary it."""
    return run.settings[-1].partition("=")[0] if run.group is not None else None


def row_title(run: PlannedRun) -> str:
    """In one line: as the plan has it, else after the method."""
    title, key = " ".join(run.title.split()), varied_key(run)
    if key is not None and run.value is not None and title == " ".join(run.value.split()):  # it has no title of its own
        return f"{display_name(run.method)}, {SYMBOLS.get(key, key.rpartition('.')[2])} {title}"
    return title or display_name(run.method + ADJUSTED * (run.kind == "adjust"))


def titles_of(runs: Iterable[PlannedRun]) -> dict[str, str]:
    """The title of each row by its name; rows of one title have their names in brackets, so that none is another."""
    titles = {run.row: row_title(run) for run in runs}
    while repeated := {title for title, count in Counter(titles.values()).items() if count > 1}:
        titles = {row: f"{title} ({row})" if title in repeated else title for row, title in titles.items()}
    return titles
