"""A plan: the runs of a study, each with what it depends on, how urgent it is and which sections it belongs to.

`reading` makes one from a TOML file. A run is one file below the results folder and one folder below the runs folder;
both names follow from the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from caged.data.source import source_name
from caged.errors import ConfigError, suggestion

Kind = Literal["train", "adjust"]


@dataclass(frozen=True)
class PlannedRun:
    """One run: `caged train`, or `caged adjust` on another run of the plan."""

    dataset: str  # as the plan calls it
    data: str  # as --data takes it; of a simulated market, the name of its folder
    protocol: str
    row: str
    method: str
    seed: int
    kind: Kind = "train"
    title: str = ""  # of its row in tables
    variant: str | None = None
    presets: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()  # as --set takes them; the last of a name wins
    options: tuple[str, ...] = ()  # further ones of the command: how to adjust, --save-weights
    device: str = "auto"
    threads: int | None = None
    needs: PlannedRun | None = None  # the run that it starts from
    market: tuple[tuple[str, Any], ...] | None = None  # parameters of the market that its data is
    group: str | None = None  # the row that was varied, where this is one of its values
    value: str | None = None  # and that value
    sections: tuple[str, ...] = field(default=(), compare=False)
    priority: int = field(default=0, compare=False)  # the smallest comes first

    @property
    def name(self) -> str:
        """Of its folder below the runs folder."""
        return f"{self.dataset}-{self.protocol}-{self.row}-{self.seed}"

    @property
    def folder_name(self) -> str:
        """Of its method and variant below the results folder."""
        return f"{self.method}-{self.variant}" if self.variant else self.method

    @property
    def place(self) -> PurePosixPath:
        """Of its record, below the results folder."""
        return PurePosixPath(self.source, self.protocol, self.folder_name, f"seed{self.seed}.json")

    @property
    def source(self) -> str:
        """What records call its data."""
        return self.data if self.market is not None else _source_name(self.data)

    @property
    def training(self) -> PlannedRun:
        """Itself, or the training that it adjusts."""
        return self.needs.training if self.kind == "adjust" and self.needs is not None else self


@cache
def _source_name(data: str) -> str:
    return source_name(data)


@dataclass(frozen=True)
class Plan:
    path: Path
    title: str
    results: Path  # where its records are
    runs: tuple[PlannedRun, ...]  # a run comes after the one that it needs
    datasets: tuple[str, ...]
    protocols: tuple[str, ...]
    sections: dict[str, str]  # name -> what it is about

    def of(self, section: str) -> list[PlannedRun]:
        return [run for run in self.runs if section in run.sections]


def ordered(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """The urgent ones first, and each after the run that it needs, which is as urgent as whatever waits for it."""
    given = dict.fromkeys(runs)
    urgent = {run: run.priority for run in given}
    for run in given:
        for needed in _chain(run):
            if needed in urgent:
                urgent[needed] = min(urgent[needed], urgent[run])
    found: dict[PlannedRun, None] = {}
    for run in sorted(given, key=lambda one: urgent[one]):
        found.update(dict.fromkeys([*(needed for needed in _chain(run) if needed in given), run]))
    known = {run: run for run in given}  # what a run needs is equal to its own entry, but knows no sections
    return [known[run] for run in found]


def _chain(run: PlannedRun) -> list[PlannedRun]:
    """What it needs, the first to be made first."""
    return [] if run.needs is None else [*_chain(run.needs), run.needs]


def chosen(plan: Plan, only: Sequence[str] = (), seeds: int | None = None) -> list[PlannedRun]:
    """The runs that every kind of word agrees on: `epinions,honest,main,lightgcn,softmax` are those of two rows of one
    section on one dataset under one protocol. `seeds` keeps the first so many of each row.
    """
    runs: Sequence[PlannedRun] = plan.runs
    for fits in _tests(plan, only):
        runs = [run for run in runs if fits(run)]
    if only and not runs:
        raise ConfigError(
            f"--only {','.join(only)} fits no run of {plan.path}: each kind of word (dataset, protocol, section, row) "
            f"narrows the choice; leave some out"
        )
    return ordered(runs if seeds is None else _first_seeds(runs, seeds))


def _tests(plan: Plan, only: Iterable[str]) -> list[Callable[[PlannedRun], bool]]:
    """One per kind of word that was given."""
    datasets, protocols, sections, rows = set[str](), set[str](), set[str](), set[str]()
    for word in only:
        if word in plan.datasets:
            datasets.add(word)
        elif word in plan.protocols:
            protocols.add(word)
        elif word in plan.sections:
            sections.add(word)
        else:
            rows |= _rows_called(plan, word)
    tests: list[tuple[set[str], Callable[[PlannedRun], bool]]] = [
        (datasets, lambda run: run.dataset in datasets),
        (protocols, lambda run: run.protocol in protocols),
        (sections, lambda run: not sections.isdisjoint(run.sections)),
        (rows, lambda run: run.row in rows),
    ]
    return [test for words, test in tests if words]


def _rows_called(plan: Plan, word: str) -> set[str]:
    """A row, the values of one that varies something, or else every row of a method."""
    for names in ({run.row for run in plan.runs if word in (run.row, run.group)}, _rows_of(plan, word)):
        if names:
            return names
    wide = [*plan.datasets, *plan.protocols, *plan.sections]
    rows = {name for run in plan.runs for name in (run.row, run.group, run.method) if name}
    raise ConfigError(
        f"unknown word in --only '{word}'; it takes datasets, protocols and sections ({', '.join(wide)}) and the rows "
        f"of the plan{suggestion(word, [*wide, *sorted(rows)])}"
    )


def _rows_of(plan: Plan, method: str) -> set[str]:
    return {run.row for run in plan.runs if run.method == method}


def _first_seeds(runs: Sequence[PlannedRun], count: int) -> list[PlannedRun]:
    of_row: dict[tuple[str, str, str], set[int]] = {}
    for run in runs:
        of_row.setdefault((run.dataset, run.protocol, run.row), set()).add(run.seed)
    return [run for run in runs if run.seed in sorted(of_row[run.dataset, run.protocol, run.row])[:count]]
