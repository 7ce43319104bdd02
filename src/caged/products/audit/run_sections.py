"""What the page of a run adds to an audit: how training went, and what the run was set to."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from caged.config import value_text
from caged.errors import CagedError
from caged.evaluation.metrics import MetricKey
from caged.models import METHODS
from caged.page import charts, svg
from caged.page.charts import Series
from caged.page.definitions import meaning
from caged.page.html import ColumnHead, Draw, Figure, Panel, Section, Table, Term
from caged.page.numbers import Format, decimal, number
from caged.page.units import in_table, in_words
from caged.runs.catalogue import Described, method_options, training_options
from caged.runs.folder import RunFolder

_LOSS = "Training loss"
_ABOUT_LOSS = "What training makes smaller, the mean over the steps of an epoch. Its size says nothing about the lists."


def run_sections(folder: RunFolder) -> list[Section]:
    """The learning curve, where the method has one, and the settings."""
    return [*_learning(folder), _settings(folder)]


def _learning(folder: RunFolder) -> Iterator[Section]:
    epochs = _history(folder)
    if len(epochs) < 2:
        return
    known = METHODS.get(folder.spec.method)
    look = known.look if known is not None else svg.LISTS
    monitored = _monitored(epochs)
    numbers = list(range(1, len(epochs) + 1))  # over all stages
    loss = [_value(line["loss"].get("total")) for line in epochs]
    panels = [Panel(_curve(numbers, loss, _LOSS, look, decimal), Term(_LOSS, _ABOUT_LOSS))]
    columns = [ColumnHead("epoch", numeric=False), ColumnHead("loss", _ABOUT_LOSS)]
    rows = [[str(epoch), number(value)] for epoch, value in zip(numbers, loss, strict=True)]
    words = "One point per epoch."
    if monitored is not None:
        found = [_value((line.get("validation") or {}).get(monitored)) for line in epochs]
        heading = f"{monitored} on the validation part"
        panels.insert(
            0, Panel(_curve(numbers, found, heading, look, in_words(monitored)), Term(heading, meaning(monitored)))
        )
        columns.append(ColumnHead(f"validation {monitored}", meaning(monitored)))
        rows = [[*row, in_table(monitored)(value)] for row, value in zip(rows, found, strict=True)]
        words += _chosen(folder)
    caption = "A validation curve that falls while the loss still shrinks means that more training only memorises."
    table = Table("Every epoch", columns, rows)
    yield Section("How training went", [words], Figure(panels, caption if monitored else "", table))


def _chosen(folder: RunFolder) -> str:
    trained = folder.run.training or {}
    if not trained.get("best_epoch"):
        if trained.get("best_validation") is None:
            return " No epoch was chosen: the last one counts."
        return " What the last stage started from was kept, because no epoch of it did better on the validation part."
    stage = f" of stage {trained['stage']}" if "stage" in trained else ""
    if "refit" in trained:
        return (
            f" Epoch {trained['best_epoch']}{stage} did best on the validation part, so the model on this page was "
            f"trained anew, for as long, on train and validation together."
        )
    return f" The model of epoch {trained['best_epoch']}{stage} was kept, because it did best on the validation part."


def _curve(epochs: Sequence[int], values: Sequence[float], title: str, look: int, written: Format) -> Draw:
    series = [Series(title, values, look=look)]
    finite = [value for value in values if math.isfinite(value)]
    said = f"From {written(finite[0])} in the first epoch to {written(finite[-1])} in the last." if finite else ""

    def draw(width: int) -> str:
        return charts.line_chart(
            epochs,
            series,
            title=title,
            description=said,
            x_label="epoch",
            x_ticks=_round_epochs(epochs[-1]),
            y_format=written,
            width=width,
            height=260,
            markers=len(epochs) <= _MARKED,
            legend=False,
        )

    return draw


_MARKED = 30  # epochs; more points than that would hide their line


def _round_epochs(last: int) -> list[float]:
    """
    >>> _round_epochs(12), _round_epochs(3)
    ([0, 5, 10, 15], [0, 1, 2, 3])
    """
    step = next(nice for nice in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**6) if last / nice <= 4)
    return [place * step for place in range(math.ceil(last / step) + 1)]


def _history(folder: RunFolder) -> list[dict[str, Any]]:
    """A courtesy: what cannot be read is left out."""
    try:
        lines = folder.history.read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if isinstance(line.get("loss"), dict)]
    except (OSError, ValueError, AttributeError):
        return []


def _monitored(epochs: Sequence[Mapping[str, Any]]) -> MetricKey | None:
    name = next((name for line in epochs for name in line.get("validation") or {}), None)
    return None if name is None else MetricKey.parse(name)


def _value(number_or_none: Any) -> float:
    return float(number_or_none) if isinstance(number_or_none, int | float) else math.nan


# ---------------------------------------------------------------- settings


def _settings(folder: RunFolder) -> Section:
    spec = folder.run.spec
    columns = [
        ColumnHead("setting", numeric=False),
        ColumnHead("value", numeric=False),
        ColumnHead("default", "If nothing else is said.", numeric=False),
    ]
    rows = [
        _setting(name, value, described)
        for section, described in _described(folder).items()
        for name, value in _named(section, spec["config"].get(section, {}))
    ]
    about = [f"seed {spec['seed']}", f"protocol {spec['protocol']}"]
    about += [f"preset {preset}" for preset in spec.get("presets", ())]
    about += [] if rows else ["no settings"]
    table = Table("Every setting of the method and of training", columns, rows) if rows else None
    return Section("Settings of this run", [f"{', '.join(about).capitalize()}."], table=table, folded="All settings")


def _described(folder: RunFolder) -> dict[str, Described | None]:
    try:
        own = method_options(folder.spec.method)
    except CagedError:  # a method that is not installed here
        own = None
    return {"method": own, **({} if own is not None and not own.trained else {"train": training_options()})}


def _named(section: str, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(f"{section}.{name}", value) for name, value in values.items()]


def _setting(name: str, value: Any, described: Described | None) -> list[str]:
    options = {info.name: info for info in described.options} if described is not None else {}
    info = options.get(name.partition(".")[2])
    default = "" if info is None else value_text(info.default)
    shown = value_text(value)
    return [
        Term(name, info.help) if info is not None and info.help else name,
        shown,
        default if default != shown else "the same",
    ]
