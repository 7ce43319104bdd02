"""What an artefact is made of: a finished run, or a model that `Recommender.save` wrote. Needs torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from caged.data.source import ITEM_TABLE
from caged.evaluation.lists import usual_k
from caged.products.adjust import Outcome, RunToAdjust, adjust_model, adjust_run
from caged.products.audit import read_audit
from caged.runs.artefact import Artefact, load_artefact
from caged.runs.folder import RunFolder
from caged.runs.versions import versions

SUMMARY = ("recall", "ndcg", "tail_share", "coverage", "gini", "arp")  # of the metrics that a manifest repeats


@dataclass(frozen=True, eq=False)
class ModelSource:
    """A trained model, and what is known about it."""

    fitted: Artefact
    name: str  # the method, and that popularity was taken out of it where it was
    item_table: pa.Table | None  # by item_id, perhaps with title and attributes
    origin: Mapping[str, Any]
    audit: Mapping[str, Any]
    price: Callable[[], Outcome | None]  # of each notch of the knob; None where nothing can measure it


def source_of(folder: Path, device: torch.device) -> ModelSource:
    fitted = load_artefact(folder, device)
    return _of_run(RunFolder.read(folder), fitted) if RunFolder.is_one(folder) else _of_saved(folder, fitted)


def _of_run(folder: RunFolder, fitted: Artefact) -> ModelSource:
    run = folder.run
    stored = read_audit(folder.path, folder)
    metrics = {key: value for key, value in stored.metrics.items() if key.partition("@")[0] in SUMMARY}

    def price() -> Outcome | None:
        if not _has_the_knob(fitted):
            return None
        given = RunToAdjust(folder, folder.load_data("the run; restore it, or leave the price out"), fitted)
        return adjust_run(given, "degree", k=folder.spec.eval.k[0], strength=0.0, with_curve=True)

    origin = {
        "dataset": run.dataset["name"],
        "protocol": run.spec["protocol"],
        "seed": run.spec["seed"],
        "spec": run.spec,
        "fingerprints": run.dataset["fingerprints"],
        "command": run.command,
        "trained": run.ended,
        "versions": versions(),
        **({} if run.adjustment is None else {"adjustment": run.adjustment}),
    }
    audit = {"protocol": stored.protocol, "metrics": metrics}
    return ModelSource(fitted, run.method_name, folder.item_table(), origin, audit, price)


def _of_saved(folder: Path, fitted: Artefact) -> ModelSource:
    """Whoever saved the model may have put an item table beside it."""

    def price() -> Outcome | None:
        if not _has_the_knob(fitted) or fitted.valid is None:
            return None
        return adjust_model(fitted, "degree", k=usual_k(fitted.train.item_count), strength=0.0, with_curve=True)

    parts = {"train": fitted.train, "valid": fitted.valid}
    origin = {
        "dataset": None,
        "protocol": None,
        "seed": None if fitted.trained_with is None else fitted.trained_with.seed,
        "fingerprints": {name: part.fingerprint for name, part in parts.items() if part is not None},
        "versions": versions(),
        **({} if fitted.adjustment is None else {"adjustment": vars(fitted.adjustment)}),
    }
    name = fitted.name if fitted.adjustment is None else f"{fitted.name} adjusted"
    return ModelSource(fitted, name, _item_table(folder / ITEM_TABLE), origin, {}, price)


def _has_the_knob(fitted: Artefact) -> bool:
    """`norm` is in the vectors of the artefact already, so the curve of the trained model would not be its own."""
    return fitted.adjustment is None or fitted.adjustment.form == "degree"


def _item_table(path: Path) -> pa.Table | None:
    """A courtesy, so no reason to fail."""
    try:
        return pq.read_table(path)
    except (pa.ArrowInvalid, OSError):
        return None
