"""`caged train --init RUN`: the first stage of a method, taken from a finished LightGCN run instead of trained again.

Both have the same ranking loss: for a method on the softmax it is a run with that loss.

The tables are copied into the new run as `init.safetensors`, so that it can be resumed whatever becomes of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from caged.errors import ConfigError, RunError
from caged.graph import Tables
from caged.models import METHODS, Method, StartsFromTables, registered
from caged.models.backbone_loss import loss_of
from caged.runs.artefact import load_artefact
from caged.runs.folder import RunFolder
from caged.runs.loading import Loaded
from caged.runs.spec import ExperimentSpec
from caged.training.checkpoint import load_tensors, save_tensors

FILE = "init.safetensors"
BACKBONES = ("lightgcn", "softmax")


@dataclass(frozen=True, eq=False)
class Initial:
    """Layer-0 tables of a run, and what `run.json` says about where they come from."""

    tables: dict[str, Tensor]
    described: dict[str, Any]

    def save(self, folder: Path) -> None:
        save_tensors(folder / FILE, self.tables)


def load_initial(given: RunFolder, spec: ExperimentSpec, data: Loaded) -> Initial:
    """The tables of the run in `given` for one of `spec` on `data`; whatever does not fit is an error."""
    folder, trained = given.path, given.spec
    check_has_first_stage(spec.method)
    _check_run(given, spec, data)
    stored = load_artefact(folder, torch.device("cpu"))
    ids = (stored.train.user_ids, stored.train.item_ids)
    if ids != (data.split.train.user_ids, data.split.train.item_ids):
        raise RunError(f"--init {folder} has another catalogue of users and items; give a run on the same data")
    tables = {name: stored.method.state().tensors[name] for name in ("users", "items")}
    check_width(f"--init {folder}", tables["users"].shape[1], spec)
    described = {
        "run": str(folder.resolve()),
        "method": trained.method,
        "seed": trained.seed,
        "config": trained.to_json()["config"],
        "training": given.run.training,
    }
    return Initial(tables, described)


def give_initial(method: Method[Any], folder: Path) -> None:
    """Let `method` start from the tables that the run in `folder` keeps."""
    tables = load_tensors(folder / FILE)
    assert isinstance(method, StartsFromTables)  # as `load_initial` saw to
    method.start_from(Tables(tables["users"], tables["items"]))


def check_has_first_stage(method: str) -> None:
    if not issubclass(registered(method).method, StartsFromTables):
        able = ", ".join(name for name, known in METHODS.items() if issubclass(known.method, StartsFromTables))
        raise ConfigError(
            f"--init stands for the first of two stages, and method '{method}' has no such stage; leave it out, or use "
            f"one of: {able}"
        )


def check_no_refit(spec: ExperimentSpec) -> None:
    if spec.train.refit:
        raise ConfigError(
            "--refit trains every stage once more, and --init stands for the first one; leave one of them out"
        )


def check_first_stage(name: str, first: ExperimentSpec, spec: ExperimentSpec) -> None:
    """Whether a run of `first`, called `name`, can be the first stage of one of `spec`."""
    if first.method not in BACKBONES:
        raise RunError(f"{name} is a run of '{first.method}'; give a run of {' or '.join(BACKBONES)}")
    losses = [loss_of(config) for config in (first.config, spec.config)]
    if losses[0] != losses[1]:
        raise RunError(
            f"{name} was trained with loss {losses[0]}, but this run has loss {losses[1]}; give a run with the same "
            f"loss, or set that of this one"
        )


def _check_run(given: RunFolder, spec: ExperimentSpec, data: Loaded) -> None:
    folder, run, trained = given.path, given.run, given.spec
    check_first_stage(f"--init {folder}", trained, spec)
    if run.status != "finished":
        raise RunError(
            f"--init {folder} is a run with status '{run.status}'; finish it with caged train --resume {folder}"
        )
    if trained.protocol != spec.protocol:
        raise RunError(
            f"--init {folder} was trained under protocol '{trained.protocol}', but this run uses "
            f"'{spec.protocol}'; give a run under the same protocol"
        )
    if run.dataset["split_fingerprint"] != data.split.fingerprint:
        raise RunError(
            f"--init {folder} was trained on another split (of {run.dataset['name']}, fingerprint "
            f"{run.dataset['split_fingerprint'][:12]} instead of {data.split.fingerprint[:12]}); give a run on the "
            f"same data with the same data.* values"
        )


def check_width(name: str, width: int, spec: ExperimentSpec) -> None:
    if width != spec.config.embedding_size:
        raise ConfigError(
            f"{name} has embedding_size {width}, but this run has {spec.config.embedding_size}; use "
            f"--set method.embedding_size={width}"
        )
