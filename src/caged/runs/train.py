"""The training of a run: from the parts that the protocol shows to a model in the run folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from caged.data import Development, Split
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph
from caged.models import Method, registered
from caged.runs.artefact import load_serving, save_model, save_training_data
from caged.runs.folder import RunFolder
from caged.runs.history import History, epochs_told
from caged.runs.initial import give_initial
from caged.runs.protocols import protocol_named, selection_parts
from caged.runs.saved_weights import FOLDER as WEIGHTS
from caged.runs.saved_weights import WeightsWatch
from caged.runs.spec import ExperimentSpec
from caged.runs.validation import holds_out_validation
from caged.seeding import Generators
from caged.training import Loop, Observer, Progress, load_checkpoint
from caged.training.loop import Validate


def train(
    folder: RunFolder,
    parts: Split,
    device: torch.device,
    observers: tuple[Observer, ...],
    stop_requested: Callable[[], bool],
) -> Method[Any]:
    """The trained method, its best state restored. Only train and the deciding part get this far."""
    begun = time.perf_counter()
    spec, run = folder.spec, folder.run
    method = registered(spec.method).method(spec.config)
    validated = holds_out_validation(method, spec.train)
    chosen = selection_parts(parts, protocol_named(spec.protocol), validated=validated)
    if run.init is not None:
        give_initial(method, folder.path)
    graph = BipartiteGraph.from_interactions(chosen.train, device, spec.train.engine)
    generators = Generators(spec.seed, device)
    stored = load_checkpoint(folder.checkpoints)
    if stored is not None and stored.finished:  # killed between training and evaluation
        epochs_told(folder.history, stored.meta["progress"]["epochs"])
        method.prepare(graph, generators)
        load_serving(method, stored)
        run.training = _summary(spec, stored.meta["progress"], method)
        return method
    training_data = save_training_data(folder.checkpoints, chosen.train, parts.valid if validated else None)
    history = History(folder.history, stored.epochs if stored else 0)
    watch = WeightsWatch(folder.path / WEIGHTS, method) if run.save_weights else None
    if watch is not None:
        watch.begin(graph)
        observers = (watch, *observers)
    loop = Loop(
        method,
        graph,
        spec.train,
        generators,
        _validator(spec, chosen, device),
        monitor=spec.eval.monitor,
        folder=folder.checkpoints,
        stored=stored,
        observers=(history, *observers),
        stop_requested=stop_requested,
    )
    progress = _reached(loop.run(), method)
    if watch is not None:
        watch.end()
    save_model(folder.checkpoints, spec.method, method, progress, training_data=training_data)
    run.training = _summary(spec, progress, method)
    run.seconds["train"] = run.seconds.get("train", 0.0) + time.perf_counter() - begun
    return method


def _validator(spec: ExperimentSpec, chosen: Development, device: torch.device) -> Validate | None:
    if chosen.valid is None:
        return None
    k = spec.eval.k[0]
    return make_validator(chosen.train, chosen.valid, device=device, k=k, metrics=(spec.eval.monitor, f"ndcg@{k}"))


def _reached(progress: Progress, method: Method[Any]) -> dict[str, Any]:
    """Where training ended. With several stages `best_epoch` is of the last, while `epochs` are of all."""
    stages = method.stages()
    return {
        "epochs": progress.epochs_in_total,
        "best_epoch": progress.stopping.best_epoch,
        "best": progress.stopping.best,
        **({"stage": stages[-1].name, "stage_epochs": progress.epoch} if len(stages) > 1 else {}),
    }


def _summary(spec: ExperimentSpec, progress: dict[str, Any], method: Method[Any]) -> dict[str, Any]:
    """What `run.json` says about training; `state` is what the method found beside its tensors, such as MACR's c."""
    found = method.serving_state().scalars
    return {
        "epochs": progress["epochs"],
        "best_epoch": progress["best_epoch"],
        "best_validation": progress["best"],
        "monitor": spec.eval.monitor,
        **{key: progress[key] for key in ("stage", "stage_epochs") if key in progress},
        **({"state": dict(found)} if found else {}),
    }
