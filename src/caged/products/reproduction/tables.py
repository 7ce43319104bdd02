"""The tables of a study: a row per method, printed value and protocols side by side, a block per group of items.

A table is one section of a plan on one dataset. Its rows are compared with LightGCN, or with the first row of a section
that has none. Every test of a table is in one family of Holm's correction.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from caged.config import value_text
from caged.data.known import dataset_title
from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import LEVEL, holm
from caged.products.reproduction.cells import (
    Cell,
    Gap,
    Outcome,
    Seeds,
    cell_of,
    gpu_minutes,
    has_lost_users,
    outcome_of,
)
from caged.products.reproduction.printed import Printed, printed_value, tries_what_is_printed
from caged.products.reproduction.titles import data_name, titles_of, varied_key
from caged.products.study import Plan, PlannedRun, Recorded, specification
from caged.runs.catalogue import method_options
from caged.runs.presets import tuned_on

K = 20  # of the paper
DIGITS = 4
BACKBONE = "lightgcn"
MAIN = "main"  # the section that the paper's main table is
GROUPS = ("all", "niche", "popular")
METRICS = ("recall", "ndcg")
PRINTED = "printed"
Content = Cell | Gap | Printed


@dataclass(frozen=True)
class Column:
    metric: str  # recall | ndcg
    source: str  # printed, or a protocol

    def key(self, group: str) -> str:
        """Of the metric in records. The printed NDCG is that of the released code, which `paper` reports."""
        name = "ndcg_hits100" if self.metric == "ndcg" and self.source == "paper" else self.metric
        return MetricKey(name, K, None if group == "all" else group)


@dataclass(frozen=True)
class Row:
    name: str  # in the plan
    title: str
    seeds: Mapping[str, int]  # finished ones, by protocol


@dataclass(frozen=True)
class StudyTable:
    section: str
    about: str
    data: str  # the name of the dataset, of one's own data that in the plan
    protocols: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    base: str  # the title of the row that the others are compared with
    blocks: Mapping[str, tuple[tuple[Content, ...], ...]]  # by group of items: cells of each row
    tests: Mapping[str, int]  # how many were over users, and over seeds
    untested: Mapping[str, tuple[str, ...]]  # by protocol: titles of rows with a change and no test of it
    not_counted: Mapping[str, str]  # records that are there and not of these runs: why
    without_users: int  # records that have lost their values per user
    gpu_minutes: float
    planned: Mapping[str, bool]  # its runs, by the places of their records: whether they are finished
    tuning: str  # whether values are defaults or were tuned
    settings: Mapping[str, tuple[str, ...]]  # of rows, beyond what all rows of the table have

    @property
    def name(self) -> str:
        return f"{self.section}-{self.data}"

    @property
    def runs(self) -> tuple[int, int]:
        """Finished and planned."""
        return sum(self.planned.values()), len(self.planned)

    @property
    def dataset(self) -> str:
        return dataset_title(self.data)

    def to_json(self) -> dict[str, Any]:
        return {
            "section": self.section,
            "dataset": self.data,
            "rows": [vars(row) for row in self.rows],
            "base": self.base,
            "columns": [vars(column) for column in self.columns],
            "blocks": {
                group: [[_as_json(cell) for cell in cells] for cells in block] for group, block in self.blocks.items()
            },
            "tests": dict(self.tests),
            "untested": dict(self.untested),
            "not_counted": dict(self.not_counted),
            "without_users": self.without_users,
            "gpu_minutes": self.gpu_minutes,
            "runs": {"finished": self.runs[0], "planned": self.runs[1]},
            "tuning": self.tuning,
            "settings": dict(self.settings),
        }


def _as_json(cell: Content) -> dict[str, Any]:
    return cell._asdict() if isinstance(cell, Printed) else cell.to_json()


def study_tables(
    plan: Plan,
    records: Mapping[PlannedRun, Recorded],
    runs: Sequence[PlannedRun] | None = None,
    *,
    only: Sequence[str] = (),
    protocols: Collection[str] = (),
) -> list[StudyTable]:
    """One per section and dataset of these runs (by default all), in the order of the plan. `only` names sections,
    because a run may be in several; `protocols` those that may stand beside the one of a run, by default all."""
    wanted = plan.runs if runs is None else runs
    found = []
    for section, about in plan.sections.items():
        if only and section not in only:
            continue
        members = [records[run] for run in wanted if section in run.sections]
        with_printed = tries_what_is_printed(section, plan.of(section))
        for data in dict.fromkeys(data_name(one.run) for one in members):
            own = [one for one in members if data_name(one.run) == data]
            further = further_seeds(section, own, records.values(), protocols)
            found.append(_table(section, about, data, own, further, with_printed=with_printed))
    return found


def further_seeds(
    section: str, own: Sequence[Recorded], records: Iterable[Recorded], protocols: Collection[str] = ()
) -> list[Recorded]:
    """Finished runs of other sections that are more seeds of these rows, in the main table also under the other
    protocol: what is recorded is shown, unless protocols were chosen and its own is none of them."""
    places = {_place(one, section) for one in own}
    return [
        one
        for one in records
        if one.finished
        and one not in own
        and _place(one, section) in places
        and (not protocols or one.run.protocol in protocols)
    ]


def _place(one: Recorded, section: str) -> tuple[str, ...]:
    return (data_name(one.run), one.run.row, *(() if section == MAIN else (one.run.protocol,)))


def _table(
    section: str,
    about: str,
    data: str,
    own: Sequence[Recorded],
    further: Sequence[Recorded],
    *,
    with_printed: bool,
) -> StudyTable:
    records = [*own, *further]
    names, titles = _row_names(records), titles_of(one.run for one in records)
    protocols = tuple(sorted({one.run.protocol for one in records}, reverse=True))  # paper, then honest
    seeds = {
        (name, protocol): Seeds(tuple(one for one in records if (one.run.row, one.run.protocol) == (name, protocol)))
        for name in names
        for protocol in protocols
    }
    first = {name: next(one.run for one in records if one.run.row == name) for name in names}
    base = _base(names, records)
    groups = [group for group in GROUPS if group != "popular" or section == MAIN]
    has_printed = with_printed and any(printed_value(section, run, "all", f"recall@{K}") for run in first.values())
    sources = ((PRINTED,) if has_printed else ()) + protocols
    columns = tuple(Column(metric, source) for metric in METRICS for source in sources)
    blocks = {
        group: [[_content(section, first[name], seeds, base, column, group) for column in columns] for name in names]
        for group in groups
    }
    tests = _with_tests(blocks, names, columns, seeds, base)
    rows = tuple(Row(name, titles[name], {one: len(seeds[name, one].finished) for one in protocols}) for name in names)
    return StudyTable(
        section=section,
        about=about,
        data=data,
        protocols=protocols,
        columns=columns,
        rows=rows,
        base=titles[base],
        blocks={group: tuple(map(tuple, _with_best(block))) for group, block in blocks.items()},
        tests=tests,
        untested=_untested(blocks["all"], rows, columns, protocols),
        not_counted={str(one.run.place): one.reason or "" for one in records if one.state == "other"},
        without_users=sum(has_lost_users(one) for one in records),
        gpu_minutes=gpu_minutes(records),
        planned={str(one.run.place): one.finished for one in own},
        tuning=tuning_of([one.run for one in records]),
        settings={titles[name]: own for name, own in _own_settings([one.run for one in records], base).items()},
    )


def _row_names(records: Sequence[Recorded]) -> list[str]:
    """In the order of the plan; of a curve, by its values, behind a row that has none."""
    names = list(dict.fromkeys(one.run.row for one in records))
    setting = varied_setting(records)
    if setting is None:
        return names
    values = {name: value_of(setting, [one for one in records if one.run.row == name]) for name in names}
    return sorted(names, key=lambda name: (values[name] is not None, values[name] or 0.0))


def _base(names: Sequence[str], records: Sequence[Recorded]) -> str:
    """LightGCN; where values are tried, the row with that of the preset; else the first."""
    if BACKBONE in names:
        return BACKBONE
    as_preset = [one.run.row for one in records if one.run.group is None]
    return as_preset[0] if as_preset and _tried_setting(records) else names[0]


def varied_setting(records: Sequence[Recorded]) -> str | None:
    """The dotted setting of which a section tries numbers, beside one row with the value of the preset; else None."""
    setting = _tried_setting(records)
    varied = [one for one in records if one.run.group is not None]
    return None if setting is None or any(value_of(setting, [one]) is None for one in varied) else setting


def _tried_setting(records: Sequence[Recorded]) -> str | None:
    """The setting of which one row tries values of any kind, beside at most one other row."""
    varied = {(one.run.group, varied_key(one.run)) for one in records if one.run.group is not None}
    others = {one.run.row for one in records if one.run.group is None}
    return varied.pop()[1] if len(varied) == 1 and len(others) <= 1 else None


def value_of(setting: str, records: Sequence[Recorded]) -> float | None:
    """The number that a setting has in a row, as the plan varies it or its presets have it. None where it has none: its
    value is a word, or its method has no such setting."""
    run = records[0].run
    if run.value is not None:
        return _as_number(run.value)
    training = run.needs if run.kind == "adjust" and run.needs is not None else run
    section, _, key = setting.partition(".")
    return _as_number(specification(training).to_json()["config"].get(section, {}).get(key))


def _as_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _content(
    section: str,
    run: PlannedRun,
    seeds: Mapping[tuple[str, str], Seeds],
    base: str,
    column: Column,
    group: str,
) -> Content:
    if column.source == PRINTED:
        return printed_value(section, run, group, f"{column.metric}@{K}") or Gap("not planned")
    below = None if run.row == base else seeds[base, column.source]
    return cell_of(seeds[run.row, column.source], below, column.key(group))


# ---------------------------------------------------------------- marks


def _with_tests(
    blocks: Mapping[str, list[list[Content]]],
    names: Sequence[str],
    columns: Sequence[Column],
    seeds: Mapping[tuple[str, str], Seeds],
    base: str,
) -> dict[str, int]:
    """Put the outcome of every test into its cell; returns how many there were of each kind."""
    found: dict[tuple[str, int, int], Outcome] = {}
    for group in blocks:
        for row, name in enumerate(names):
            for place, column in enumerate(columns):
                if name != base and isinstance(blocks[group][row][place], Cell):
                    test = outcome_of(seeds[name, column.source], seeds[base, column.source], column.key(group))
                    if test is not None:
                        found[group, row, place] = test
    for ((group, row, place), test), p in zip(found.items(), holm([one.p for one in found.values()]), strict=True):
        cell = blocks[group][row][place]
        assert isinstance(cell, Cell)
        sign: Literal["better", "worse"] = "better" if test.difference > 0 else "worse"
        certain = p < LEVEL and test.difference != 0
        blocks[group][row][place] = replace(cell, over=test.over, p=p, sign=sign if certain else None)
    return {over: sum(test.over == over for test in found.values()) for over in ("users", "seeds")}


def _untested(
    block: Sequence[Sequence[Content]], rows: Sequence[Row], columns: Sequence[Column], protocols: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Without a sign these cells do not say that a change may be chance: nothing is known about it."""
    found = {
        protocol: tuple(
            row.title
            for row, cells in zip(rows, block, strict=True)
            if any(
                column.source == protocol and isinstance(cell, Cell) and cell.change is not None and cell.p is None
                for column, cell in zip(columns, cells, strict=True)
            )
        )
        for protocol in protocols
    }
    return {protocol: titles for protocol, titles in found.items() if titles}


def _with_best(block: Sequence[Sequence[Content]]) -> list[list[Content]]:
    """The largest value of a column as it is shown; who is equal to the last digit shares the place."""
    marked = [list(cells) for cells in block]
    for place in range(len(marked[0])):
        cells = [cells[place] for cells in marked]
        shown = [round(cell.mean, DIGITS) for cell in cells if isinstance(cell, Cell)]
        for row, cell in enumerate(cells):
            if isinstance(cell, Cell) and len(shown) > 1 and round(cell.mean, DIGITS) == max(shown):
                marked[row][place] = replace(cell, best=True)
    return marked


# ---------------------------------------------------------------- settings


def tuning_of(runs: Sequence[PlannedRun]) -> str:
    """Whether rows have values that `caged tune` chose, as their presets say; rows without options need none."""
    tuned: dict[str, set[str | None]] = {}
    for run in runs:
        if method_options(run.method).options:
            tuned.setdefault(run.row, set()).add(_tuned_on(run))
    data = {one for of_row in tuned.values() for one in of_row if one is not None}
    if not data:
        return (
            "No row has values of caged tune: they are those of the dataset's preset, else defaults, apart from what "
            "the plan sets in single rows."
        )
    untuned = sorted(row for row, of_row in tuned.items() if None in of_row)
    if not untuned:
        return f"Every row has values that were tuned on the validation part of {', '.join(sorted(data))}."
    return f"Not comparable: values were tuned on validation, but not those of {', '.join(untuned)}."


def _tuned_on(run: PlannedRun) -> str | None:
    training = run.needs if run.kind == "adjust" and run.needs is not None else run
    return next((data for one in training.presets if (data := tuned_on(one, run.method)) is not None), None)


def _own_settings(runs: Sequence[PlannedRun], base: str) -> dict[str, tuple[str, ...]]:
    """By row, what is set in it otherwise than in the one that it is compared with: by the plan, or by a preset."""
    compared = {run.protocol: run for run in runs if run.row == base}
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        usual = compared.get(run.protocol)
        own = [text for text in run.settings if usual is None or text not in usual.settings]
        other = [] if usual is None else _other_values(run, usual)
        options = [" ".join(run.options)] if run.kind == "adjust" and run.options else []
        said = {text.partition("=")[0] for text in own}
        own += [text for text in other if text.partition("=")[0] not in said]
        found.setdefault(run.row, {}).update(dict.fromkeys([*own, *options]))
    return {row: tuple(own) for row, own in found.items() if own}


def _other_values(run: PlannedRun, usual: PlannedRun) -> list[str]:
    """Of options that both have. None is the value of an option that a method has for another of its losses."""
    if run.kind != "train" or not method_options(run.method).trained:
        return []
    mine, theirs = (specification(one).to_json()["config"] for one in (run, usual))
    return [
        f"{section}.{key}={value_text(value)}"
        for section in ("method", "train")
        for key, value in mine[section].items()
        if theirs[section].get(key) not in (None, value)
    ]
