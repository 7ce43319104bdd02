"""What every rank but the first does in a run: the same training on columns of its own. It writes and says nothing.

It goes through what `runs.train` and `runs.execute` do on the first rank, message by message: a training, or two with
`train.refit`, the joined model, whole vectors, lists for a share of the tested users.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from caged.columns import Columns
from caged.data import Development
from caged.errors import RunError
from caged.evaluation.evaluate import rank_along
from caged.graph import BipartiteGraph
from caged.models import Method, registered
from caged.runs.environment import resolve_device, set_threads, share_threads
from caged.runs.folder import RunFolder
from caged.runs.loading import Loaded, load_data
from caged.runs.spec import ExperimentSpec
from caged.runs.train import chosen_parts, of_this_training, recorded_decisions, validator
from caged.seeding import Generators
from caged.training import Decisions, Interrupted, Loop, StoredCheckpoint, load_checkpoint


def follow(spec: ExperimentSpec, columns: Columns) -> None:
    """Train along in a new run."""
    set_threads(spec.threads)
    share_threads(columns.size)
    data = load_data(spec)
    _follow(_Following(data.spec, data, resolve_device(spec.device), columns, None), None)


def follow_resumed(folder: RunFolder, columns: Columns) -> None:
    """Train along in a run that goes on."""
    set_threads(folder.run.threads)
    share_threads(columns.size)
    data = folder.load_data("the run started; restore it, or start a new run")
    stored = load_checkpoint(folder.checkpoints)
    recorded = recorded_decisions(folder, stored) if folder.spec.train.refit else None
    device = resolve_device(folder.run.hardware["device"])
    _follow(_Following(folder.spec, data, device, columns, folder.checkpoints), recorded)


def _follow(work: _Following, recorded: Decisions | None) -> None:
    stored = work.stored()
    if stored is not None and stored.finished:
        return
    chosen, _ = chosen_parts(work.spec, work.data.split)
    try:
        if work.spec.train.refit:
            recorded = recorded or work.trained(chosen, stored).decisions
            chosen = chosen.whole()
        method = work.trained(chosen, of_this_training(work.stored(), recorded), recorded).method
    except Interrupted:
        return
    method.columns.joined(method.serving_state().tensors, method.by_columns or ())
    work.rank_along(method)


@dataclass(frozen=True, eq=False)
class _Following:
    spec: ExperimentSpec
    data: Loaded
    device: torch.device
    columns: Columns
    checkpoints: Path | None  # None: the run is new

    def stored(self) -> StoredCheckpoint | None:
        return None if self.checkpoints is None else load_checkpoint(self.checkpoints)

    def trained(self, parts: Development, stored: StoredCheckpoint | None, replay: Decisions | None = None) -> Loop:
        method = registered(self.spec.method).method(self.spec.config)
        method.columns = self.columns
        loop = Loop(
            method,
            BipartiteGraph.from_interactions(parts.train, self.device, self.spec.train.engine),
            self.spec.train,
            Generators(self.spec.seed, self.device),
            validator(self.spec, parts, self.device, self.columns),
            monitor=self.spec.eval.monitor,
            stored=stored,
            replay=replay,
        )
        loop.run()
        return loop

    def rank_along(self, method: Method[Any]) -> None:
        """For the test part, and then for the further ones, as `runs.execute.tested` does."""
        scorer, split = method.scorer(), self.data.split
        if split.test is None:
            raise RunError("this split has no test part; give one, or use a log that can be split")
        for relevant in (split.test, *self.data.extra_tests.values()):
            seen = split.seen_before(relevant)
            rank_along(
                scorer,
                train=seen.train,
                valid=seen.valid,
                relevant=relevant,
                device=self.device,
                columns=self.columns,
            )
