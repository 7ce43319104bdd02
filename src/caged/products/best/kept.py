"""The models of trials, on disk until one is chosen: nothing is trained a second time to be adjusted or tested."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from caged.files import new_folder
from caged.models import Method
from caged.products.tune import SearchData, Trial
from caged.runs.artefact import Artefact, TrainedWith, load_artefact, save_model, save_training_data
from caged.runs.spec import ExperimentSpec
from caged.training import Decisions


@dataclass(frozen=True)
class Kept:
    folder: Path

    def place(self, trial: Trial) -> Path:
        return self.folder / f"{trial.method}-{trial.number}"

    def save(
        self, trial: Trial, spec: ExperimentSpec, data: SearchData, method: Method[Any], decisions: Decisions
    ) -> None:
        """Whole or not at all; what a killed process left of the same trial makes room."""
        shutil.rmtree(self.place(trial), ignore_errors=True)
        with new_folder(self.place(trial)) as temporary:
            training_data = save_training_data(temporary, data.train, data.valid)
            save_model(
                temporary,
                spec.method,
                method,
                {"decisions": decisions.to_json()},
                training_data=training_data,
                trained_with=TrainedWith(spec.seed, spec.train),
            )

    def load(self, trial: Trial, device: torch.device) -> Artefact:
        return load_artefact(self.place(trial), device)

    def drop_others(self, wanted: Iterable[Trial]) -> None:
        """Only these can still be needed."""
        places = {self.place(trial).name for trial in wanted}
        for found in self.folder.iterdir() if self.folder.is_dir() else ():
            if found.name not in places:
                shutil.rmtree(found, ignore_errors=True)
