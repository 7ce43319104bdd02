"""The training of a run: from the parts that the protocol shows to a model in the run folder.

With `train.refit` a run is trained twice. The first time validation decides; what it decided goes into `run.json`, and
nothing else is kept. The second time the same is done on train and validation together, and that is the model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from caged.columns import WHOLE, Columns
from caged.data import Development, Interactions, Split
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph
from caged.models import Method, registered
from caged.runs.artefact import load_serving, save_model, save_training_data
from caged.runs.folder import WEIGHTS, RunFolder
from caged.runs.history import History, epochs_told
from caged.runs.initial import give_initial
from caged.runs.protocols import protocol_named, selection_parts
from caged.runs.saved_weights import WeightsWatch
from caged.runs.spec import ExperimentSpec
from caged.runs.validation import holds_out_validation, sample_told
from caged.seeding import Generators
from caged.training import Decisions, Interrupted, Loop, Observer, Progress, StoredCheckpoint, load_checkpoint
from caged.training.loop import Validate

KEPT_AS_THEY_ARE = ("stage", "stage_epochs", "decisions", "refit", "validation_users")


def train(
    folder: RunFolder,
    parts: Split,
    device: torch.device,
    observers: tuple[Observer, ...],
    stop_requested: Callable[[], bool],
    columns: Columns = WHOLE,
) -> Method[Any]:
    """The trained method, its best state restored. Only train and the deciding part get this far.

    Of the ranks of `columns` this is the first; the others are in `runs.follow`.
    """
    spec = folder.spec
    work = _Work(folder, device, observers, stop_requested, columns)
    chosen, validated = chosen_parts(spec, parts)
    if not spec.train.refit:
        return work.train(chosen, held_out=parts.valid if validated else None)
    stored = load_checkpoint(folder.checkpoints)
    decided = recorded_decisions(folder, stored) or work.decide(chosen, stored)
    return work.train(chosen.whole(), replay=decided)


def chosen_parts(spec: ExperimentSpec, parts: Split) -> tuple[Development, bool]:
    """What is trained on and decides, and whether a validation part is held out for that."""
    validated = holds_out_validation(registered(spec.method).method(spec.config), spec.train)
    return selection_parts(parts, protocol_named(spec.protocol), validated=validated), validated


def recorded_decisions(folder: RunFolder, stored: StoredCheckpoint | None) -> Decisions | None:
    """What a first training decided already: it ended before the run was interrupted."""
    if stored is not None and stored.finished:
        return Decisions.from_json(stored.meta["progress"]["decisions"])
    training = folder.run.training
    return None if training is None else Decisions.from_json(training["decisions"])


@dataclass(frozen=True, eq=False)
class _Work:
    """Where and how a run is trained."""

    folder: RunFolder
    device: torch.device
    observers: tuple[Observer, ...]
    stop_requested: Callable[[], bool]
    columns: Columns

    @property
    def spec(self) -> ExperimentSpec:
        return self.folder.spec

    def decide(self, parts: Development, stored: StoredCheckpoint | None) -> Decisions:
        """Train for what validation says about it; the model itself is left behind."""
        begun = time.perf_counter()
        folder, run = self.folder, self.folder.run
        history = History(folder.history, stored.epochs if stored else 0)
        method = self._method()
        loop = self._loop(method, parts, self._graph(parts), stored=stored, observers=(history, *self.observers))
        progress = _reached(loop, loop.run()) | sample_told(parts.valid, self.spec.train)
        run.training = _summary(self.spec, progress, method)
        run.seconds["decide"] = run.seconds.get("decide", 0.0) + time.perf_counter() - begun
        folder.store()  # from here on a resume goes on with the second training
        if self.stop_requested():
            raise Interrupted
        return loop.decisions

    def train(
        self, parts: Development, *, held_out: Interactions | None = None, replay: Decisions | None = None
    ) -> Method[Any]:
        """Train what the run keeps; `held_out` is stored with it as seen."""
        begun = time.perf_counter()
        folder, run = self.folder, self.folder.run
        lines = folder.history if replay is None else folder.refit_history
        method, graph = self._method(), self._graph(parts)
        stored = load_checkpoint(folder.checkpoints)
        if stored is not None and stored.finished:  # killed between training and evaluation
            epochs_told(lines, stored.meta["progress"].get("refit", stored.meta["progress"])["epochs"])
            method.columns = WHOLE  # the model is there, and the other ranks are not needed
            method.prepare(graph, Generators(self.spec.seed, self.device))
            load_serving(method, stored)
            run.training = _summary(self.spec, stored.meta["progress"], method)
            return method
        stored = of_this_training(stored, replay)
        training_data = save_training_data(folder.checkpoints, parts.train, held_out)
        history = History(lines, stored.epochs if stored else 0)
        observers: tuple[Observer, ...] = (history, *self.observers)
        watch = WeightsWatch(folder.path / WEIGHTS, method, parts.train) if run.save_weights else None
        if watch is not None:
            watch.begin(graph)
            observers = (history, watch, *self.observers)
        loop = self._loop(method, parts, graph, stored=stored, observers=observers, replay=replay)
        progress = _reached(loop, loop.run()) | sample_told(parts.valid, self.spec.train)
        if watch is not None:
            watch.end()
        if replay is not None:
            assert run.training is not None  # as `decide` left it
            again = {"epochs": progress["epochs"], "interactions": len(parts.train)}
            progress = {**_progress_of(run.training), "refit": again}
        save_model(folder.checkpoints, self.spec.method, method, progress, training_data=training_data)
        run.training = _summary(self.spec, progress, method)
        run.seconds["train"] = run.seconds.get("train", 0.0) + time.perf_counter() - begun
        return method

    def _method(self) -> Method[Any]:
        method = registered(self.spec.method).method(self.spec.config)
        method.columns = self.columns
        if self.folder.run.init is not None:
            give_initial(method, self.folder.path)
        return method

    def _graph(self, parts: Development) -> BipartiteGraph:
        return BipartiteGraph.from_interactions(parts.train, self.device, self.spec.train.engine)

    def _loop(
        self,
        method: Method[Any],
        parts: Development,
        graph: BipartiteGraph,
        *,
        stored: StoredCheckpoint | None,
        observers: tuple[Observer, ...],
        replay: Decisions | None = None,
    ) -> Loop:
        return Loop(
            method,
            graph,
            self.spec.train,
            Generators(self.spec.seed, self.device),
            validator(self.spec, parts, self.device, self.columns),
            monitor=self.spec.eval.monitor,
            folder=self.folder.checkpoints,
            stored=stored,
            observers=observers,
            stop_requested=self.stop_requested,
            replay=replay,
        )


def of_this_training(stored: StoredCheckpoint | None, replay: Decisions | None) -> StoredCheckpoint | None:
    """None for the last state of the first training where this is the second."""
    return None if stored is not None and stored.replays != (replay is not None) else stored


def validator(spec: ExperimentSpec, chosen: Development, device: torch.device, columns: Columns) -> Validate | None:
    if chosen.valid is None:
        return None
    k = spec.eval.k[0]
    return make_validator(
        chosen.train,
        chosen.valid,
        device=device,
        k=k,
        metrics=(spec.eval.monitor, f"ndcg@{k}"),
        users=spec.train.validation_users,
        columns=columns,
    )


def _reached(loop: Loop, progress: Progress) -> dict[str, Any]:
    """Where training ended. With several stages `best_epoch` is of the last, while `epochs` are of all."""
    stages, best = loop.method.stages(), progress.stopping.best
    return {
        "epochs": progress.epochs_in_total,
        "best_epoch": progress.stopping.best_epoch,
        "best": best if math.isfinite(best) else None,  # none: nothing was validated
        **({"stage": stages[-1].name, "stage_epochs": progress.epoch} if len(stages) > 1 else {}),
        "decisions": loop.decisions.to_json(),
    }


def _summary(spec: ExperimentSpec, progress: dict[str, Any], method: Method[Any]) -> dict[str, Any]:
    """What `run.json` says about training; `state` is what the method found beside its tensors, such as MACR's c."""
    found = method.serving_state().scalars
    return {
        "epochs": progress["epochs"],
        "best_epoch": progress["best_epoch"],
        "best_validation": progress["best"],
        "monitor": spec.eval.monitor,
        **{key: progress[key] for key in KEPT_AS_THEY_ARE if key in progress},
        **({"state": dict(found)} if found else {}),
    }


def _progress_of(training: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `_summary`, as far as it goes."""
    kept = {key: training[key] for key in ("epochs", "best_epoch", *KEPT_AS_THEY_ARE) if key in training}
    return {**kept, "best": training["best_validation"]}
