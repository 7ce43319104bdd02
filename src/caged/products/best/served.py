"""The model that is served: what was chosen, trained once more on everything there is, with what validation decided."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from caged.data import Interactions, Split
from caged.data.source import ITEM_TABLE, item_titles
from caged.errors import CagedError
from caged.files import new_folder
from caged.products.best.choice import Candidate
from caged.products.best.clock import Clock, EpochsOf
from caged.products.best.kept import Kept
from caged.products.tune import Trial
from caged.runs.loading import Loaded
from caged.runs.recommender import Recommender, load
from caged.training import Interrupted


def write_model(
    chosen: Candidate,
    kept: Kept,
    data: Loaded,
    out: Path,
    *,
    device: str,
    clock: Clock,
    stop_requested: Callable[[], bool],
) -> None:
    """All files or no folder; one that is there already is whole."""
    if out.is_dir():
        return
    clock.tell(f"training {chosen.display} on the whole log")
    model = load(kept.place(Trial(chosen.method, chosen.trial, chosen.values)), device=device)
    if chosen.adjustment is not None:
        model = model.adjusted(strength=chosen.adjustment.strength, form=chosen.adjustment.form)
    watch = _Stoppable(EpochsOf(clock, f"{chosen.display} on the whole log"), stop_requested)
    again: Recommender = model.refit(everything(data.split), observers=(watch,))
    if stop_requested():
        raise Interrupted
    with new_folder(out) as temporary:
        again.save(temporary)
        described = item_table(data)
        if described is not None:
            pq.write_table(described, temporary / ITEM_TABLE)


def everything(split: Split) -> Interactions:
    """Every pair that somebody chose; what was shown and not liked is no part of it."""
    return Interactions.joined([part for part in (split.train, split.valid, split.test) if part is not None])


def item_table(data: Loaded) -> pa.Table | None:
    """What the data says about its items, by item_id. A courtesy, so no reason to fail."""
    try:
        if data.path.is_dir() and (data.path / ITEM_TABLE).is_file():
            return pq.read_table(data.path / ITEM_TABLE)
        return item_titles(data.facts["name"])
    except (CagedError, pa.ArrowInvalid, OSError):
        return None


def remove_half_written(folder: Path) -> None:
    """Folders that a killed process did not finish."""
    for leftover in folder.glob(".*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)


class _Stoppable:
    """An observer that ends training when somebody asks for it: a refit has no checkpoint to leave behind."""

    def __init__(self, watch: EpochsOf, stop_requested: Callable[[], bool]) -> None:
        self.watch, self.stop_requested = watch, stop_requested

    def epoch(self, line: dict[str, object]) -> None:
        self.watch.epoch(line)
        if self.stop_requested():
            raise Interrupted
