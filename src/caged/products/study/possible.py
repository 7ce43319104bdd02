"""Whether the runs of a plan can be made at all: found out before the first of them starts, not hours later."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from caged.errors import CagedError, ConfigError
from caged.products.study.plan import Plan, PlannedRun
from caged.products.study.records import adjustment_of, specification


def check_runs(plan: Plan, runs: Iterable[PlannedRun]) -> None:
    """Methods, presets and settings, starts from other runs, and adjustments; an error names the row."""
    for run in {(one.row, one.dataset, one.protocol): one for one in runs}.values():
        try:
            _check(run)
        except CagedError as error:
            where = f"row '{run.row}' on dataset '{run.dataset}' under '{run.protocol}'"
            raise ConfigError(f"plan {plan.path}: {where}: {error}") from error


def _check(run: PlannedRun) -> None:
    from caged.runs.initial import check_has_first_stage  # with torch

    if run.kind == "adjust":
        adjustment_of(run)
        return
    specification(run)
    if run.needs is not None:
        check_has_first_stage(run.method)


def check_folder(path: Path, option: str) -> None:
    """A place for a folder: one that is there, or that can be made."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        what = "is a file" if there == path else f"lies below {there}, which is a file"
        raise ConfigError(f"{option} {path} {what}; give a folder")
