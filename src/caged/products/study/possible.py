"""Whether the runs of a plan can be made at all: found out before the first of them starts, not hours later."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from caged.data.source import check_max_id
from caged.errors import CagedError, ConfigError
from caged.products.study.plan import Plan, PlannedRun
from caged.products.study.records import adjustment_of, specification
from caged.runs.protocols import PAPER
from caged.runs.results import ResultPlace

if TYPE_CHECKING:
    from caged.runs.spec import ExperimentSpec


def check_runs(plan: Plan, runs: Iterable[PlannedRun]) -> None:
    """Methods, presets and settings, starts from other runs, and adjustments; an error names the row."""
    for run in {(one.row, one.dataset, one.protocol): one for one in runs}.values():
        try:
            _check(run)
        except CagedError as error:
            where = f"row '{run.row}' on dataset '{run.dataset}' under '{run.protocol}'"
            raise ConfigError(f"plan {plan.path}: {where}: {error}") from error


def _check(run: PlannedRun) -> None:
    from caged.runs.environment import check_threads  # with torch
    from caged.runs.saved_weights import check_learns_weights

    recorded_as = {"method": run.method, "protocol": run.protocol, "seed": run.seed}
    ResultPlace(Path(), run.variant).path(run.source, recorded_as)
    if run.needs is not None and run.needs.kind == "adjust":
        raise ConfigError(f"it starts from row '{run.needs.row}', which adjusts another; name a row that is trained")
    if run.kind == "adjust":
        assert run.needs is not None
        adjustment_of(run)
        _check_adjusted(run.needs)
        return
    spec = specification(run)
    if run.protocol == PAPER.name and run.market is None:
        check_max_id(run.data)
    check_threads(run.threads)
    if "--save-weights" in run.options:
        check_learns_weights(run.method)
    if run.needs is not None:
        _check_start(run.needs, spec)


def _check_adjusted(needed: PlannedRun) -> None:
    """The strength is chosen on a validation part that the model has not been trained on."""
    from caged.runs.execute import holds_back_validation  # with torch

    if needed.protocol == PAPER.name or not holds_back_validation(specification(needed)):
        raise ConfigError(
            f"row '{needed.row}' ({needed.method}) keeps no validation part, on which the strength would be chosen; "
            'adjust a row under honest that does: one that is trained, or one with set = ["train.validation=yes"]'
        )


def _check_start(needed: PlannedRun, spec: ExperimentSpec) -> None:
    """As `caged train --init` checks it with the finished run at hand."""
    from caged.runs.initial import check_first_stage, check_has_first_stage, check_no_refit, check_width  # with torch

    check_has_first_stage(spec.method)
    check_no_refit(spec)
    first, name = specification(needed), f"row '{needed.row}'"
    check_first_stage(name, first, spec)
    check_width(name, first.config.embedding_size, spec)


def check_folder(path: Path, option: str) -> None:
    """A place for a folder: one that is there, or that can be made."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        what = "is a file" if there == path else f"lies below {there}, which is a file"
        raise ConfigError(f"{option} {path} {what}; give a folder")
