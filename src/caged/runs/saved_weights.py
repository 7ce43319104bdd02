"""Edge weights of a run over time: `weights/` in a run folder, written with `caged train --save-weights`.

    before.safetensors       LightGCN's, which training starts from
    update-<n>.safetensors   after update n, for n = 1, 2, 4, 8, ...: few files, however many updates there are
    after.safetensors        those of the model that the run ended with
    densities.json           how inverse item popularity is spread before, during and after, for the record of the run

A tensor file holds `to_user`, `to_item` (one number per training interaction, sorted by user and item) and `updates`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from caged.data import Interactions
from caged.errors import ConfigError, RunError
from caged.files import write_json
from caged.graph import BipartiteGraph, Weights, degree_weights
from caged.models import METHODS, LearnsWeights, Method, registered
from caged.models.contract import LearnedWeights
from caged.runs.densities import Moment, recorded_densities
from caged.runs.folder import DENSITIES, WEIGHTS
from caged.training.checkpoint import load_tensors, save_tensors

BEFORE, AFTER = "before", "after"


class SavedWeights(NamedTuple):
    name: str  # before | during | after
    to_user: Tensor  # (E,)
    to_item: Tensor  # (E,)
    updates: int


def check_learns_weights(method: str) -> None:
    """Refuse a method that has no edge weights of its own, before anything is written."""
    if not issubclass(registered(method).method, LearnsWeights):
        able = ", ".join(name for name, known in METHODS.items() if issubclass(known.method, LearnsWeights))
        raise ConfigError(
            f"--save-weights keeps edge weights that training changes, and method '{method}' changes none; leave it "
            f"out, or use one of: {able}"
        )


@dataclass
class WeightsWatch:
    """Writes the files while training goes on; as an observer it sees every epoch."""

    folder: Path
    method: Method[Any]
    train: Interactions

    def begin(self, graph: BipartiteGraph) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot create {self.folder}: {error.strerror}; choose another --out") from error
        self._save(BEFORE, degree_weights(graph), 0)

    def epoch(self, line: dict[str, Any]) -> None:
        update = line.get("diagnostics", {}).get("update", 0)
        if update and update & (update - 1) == 0:
            self._save(f"update-{update}", *self._learned())

    def end(self) -> None:
        """With the best state restored."""
        self._save(AFTER, *self._learned())
        saved = [Moment(one.name, one.updates, one.to_user.numpy()) for one in load_saved_weights(self.folder.parent)]
        write_json(self.folder / DENSITIES, recorded_densities(saved, self.train.users, self.train.user_count))

    def _learned(self) -> LearnedWeights:
        assert isinstance(self.method, LearnsWeights)  # as `check_learns_weights` saw to
        return self.method.learned_weights()

    def _save(self, name: str, weights: Weights, updates: int) -> None:
        tensors = {"to_user": weights.to_user, "to_item": weights.to_item, "updates": torch.tensor(updates)}
        save_tensors(self.folder / f"{name}.safetensors", tensors)


def load_saved_weights(run: Path) -> list[SavedWeights]:
    """Before, during and after; `during` is the file nearest to half of the updates, left out where there is none."""
    folder = run / WEIGHTS
    if not (folder / f"{AFTER}.safetensors").exists():
        raise RunError(f"{run} holds no weights of a finished run; train with --save-weights to keep them")
    before, after = _load(folder, BEFORE, BEFORE), _load(folder, AFTER, AFTER)
    numbers = [int(path.stem.removeprefix("update-")) for path in folder.glob("update-*.safetensors")]
    between = [number for number in numbers if 0 < number < after.updates]
    if not between:
        return [before, after]
    middle = min(between, key=lambda number: (abs(number - after.updates / 2), number))
    return [before, _load(folder, f"update-{middle}", "during"), after]


def _load(folder: Path, file: str, name: str) -> SavedWeights:
    path = folder / f"{file}.safetensors"
    tensors = load_tensors(path)
    missing = {"to_user", "to_item", "updates"} - tensors.keys()
    if missing:
        raise RunError(f"{path} lacks '{min(missing)}'; restore the file, or train again with --save-weights")
    return SavedWeights(name, tensors["to_user"], tensors["to_item"], int(tensors["updates"]))
