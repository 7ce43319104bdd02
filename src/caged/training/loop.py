"""The one training loop. Epoch order: train, validate, snapshot if best, `end_epoch`, checkpoint.

The loop is given a graph of the training part and a `validate` callable that returns numbers. It has no handle on a
test part and cannot get one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from caged.config import Range, option
from caged.errors import ConfigError, TrainingError
from caged.graph import BACKENDS, NEGATIVES, PRECISIONS, SAMPLERS, AnySampler, BipartiteGraph, Engine, make_sampler
from caged.models.contract import EpochContext, Method, Metrics, Scorer, Stage, State
from caged.optimiser import adam
from caged.seeding import Generators
from caged.training import checkpoint as files
from caged.training.checkpoint import Checkpoint, StoredCheckpoint
from caged.training.decisions import Decisions, StageDecisions
from caged.training.step import Steps, make_steps
from caged.training.stopping import EarlyStopping

Validate = Callable[[Scorer], Metrics]


AUTO = "auto"
AUTO_STEPS = 200  # per epoch, at most
AUTO_BATCH = 2048  # at least, and what the learning rate refers to
AUTO_MULTIPLE = 256  # batches are multiples of this


@dataclass(frozen=True)
class TrainConfig:
    learning_rate: float = option(
        1e-3,
        "Adam's step size",
        source="LightGCN paper, section 4.1.2",
        above=0,
        search=Range(1e-4, 1e-2, "log"),
    )
    batch_size: int | str = option(
        2048,
        "triples per step; auto: as many as keep an epoch within 200 steps, at least 2048, with the learning rate "
        "multiplied by sqrt(batch_size / 2048)",
        source="CAGED paper, section 4.1",
        minimum=1,
    )
    epochs: int = option(1000, "maximum number of epochs per stage", source="LightGCN paper, section 4.1.2", minimum=1)
    patience: int | None = option(
        20, "end a stage after this many validations in a row without improvement; none: never", minimum=1
    )
    validation: str = option(
        "auto",
        "yes: a validation part is held out; no: it is trained on, for all of train.epochs; auto: no for closed forms, "
        "which choose nothing, and yes for the others",
        choices=("auto", "yes", "no"),
    )
    refit: bool = option(
        False,
        "after validation has decided, train again on train and validation with the same decisions",
    )
    validate_every: int = option(1, "epochs between validations", minimum=1)
    validation_users: int | None = option(
        None,
        "validate on a random sample of this many users, the same in every run, each ranking the whole catalogue; "
        "none: all users with validation items",
        minimum=1,
    )
    sampler: str = option("interaction", "how triples are drawn", choices=tuple(SAMPLERS))
    negatives: str = option(
        "fresh",
        "fresh: negatives are drawn anew in every epoch; replayed: from the same short stream in all of them, only to "
        "reproduce the published AdvDrop loader",
        choices=NEGATIVES,
    )
    checkpoint_seconds: float = option(
        30.0, "seconds between checkpoints; 0: after every epoch", minimum=0, operational=True
    )

    backend: str = option(
        "auto",
        "propagation on CUDA: sparse or dense products; CPU is always sparse",
        choices=BACKENDS,
        operational=True,
    )
    precision: str = option(
        "auto",
        "number format of propagation on CUDA; sums are always float32",
        choices=PRECISIONS,
        operational=True,
    )
    capture: bool = option(True, "on CUDA, record a training step once and replay it", operational=True)

    def __post_init__(self) -> None:
        if isinstance(self.batch_size, str) and self.batch_size != AUTO:
            raise ConfigError(f"train.batch_size is '{self.batch_size}'; allowed are whole numbers and {AUTO}")

    @property
    def engine(self) -> Engine:
        return Engine(self.backend, self.precision)

    def batches(self, interactions: int) -> tuple[int, float]:
        """Triples per step and learning rate on a training part of this size.

        A step costs one propagation over all E interactions, so a fixed batch makes an epoch cost E^2. `auto` bounds
        the steps instead; Adam's step grows with the square root of the batch, as the noise of a gradient shrinks
        with it.

        >>> TrainConfig(batch_size="auto").batches(100_000)
        (2048, 0.001)
        >>> TrainConfig(batch_size="auto").batches(1_638_400)
        (8192, 0.002)
        """
        if not isinstance(self.batch_size, str):
            return self.batch_size, self.learning_rate
        needed = -(-interactions // AUTO_STEPS)
        size = max(AUTO_BATCH, -(-needed // AUTO_MULTIPLE) * AUTO_MULTIPLE)
        return size, self.learning_rate * math.sqrt(size / AUTO_BATCH)


class Observer(Protocol):
    """Whoever watches: progress on a terminal, the history file, a test."""

    def epoch(self, line: dict[str, Any], /) -> None:
        """One finished epoch, as it goes into the history."""


@dataclass
class Progress:
    """Where training stands; with the tensors beside it, all that a resumed run needs."""

    stage: int = 0
    epoch: int = 0  # finished epochs of the stage
    stopping: EarlyStopping = field(default_factory=lambda: EarlyStopping(None))
    best_scalars: dict[str, Any] | None = None
    epochs_in_total: int = 0
    improved: list[int] = field(default_factory=list)  # epochs of the stage
    decided: list[StageDecisions] = field(default_factory=list)  # of the stages before


class Interrupted(Exception):  # noqa: N818 - not an error
    """Training was asked to stop and left a checkpoint behind."""


@dataclass
class Loop:
    """Trains `method` on `graph`.

    `folder` is where checkpoints go; None keeps nothing on disk. Where several ranks train by columns, each has a loop,
    and only that of the first has a folder. `stored` is the one to go on from. With `replay` there
    is nothing to validate: every stage lasts as long, and counts as improved after the same epochs, as it says.
    """

    method: Method[Any]
    graph: BipartiteGraph
    config: TrainConfig
    generators: Generators
    validate: Validate | None
    monitor: str = "recall@20"
    folder: Path | None = None
    stored: StoredCheckpoint | None = None
    observers: tuple[Observer, ...] = ()
    stop_requested: Callable[[], bool] = lambda: False
    replay: Decisions | None = None
    decisions: Decisions = field(init=False)  # of validation, once it has run

    def run(self) -> Progress:
        """Train from scratch or from what is stored; on return the method holds its best state."""
        assert self.replay is None or self.validate is None
        self.method.prepare(self.graph, self.generators)
        stages = self.method.stages()
        if self.replay is not None:
            self.replay.check_fits(stages)
        self.progress = Progress(stopping=EarlyStopping(self.config.patience))
        self.best: State | None = None
        self.optimizer: torch.optim.Optimizer | None = None
        if not stages:
            self.method.fit_closed_form()
        if self.stored is not None:
            self._resume(self.stored, stages)
        self._last_checkpoint = time.monotonic()
        while self.progress.stage < len(stages):
            self._run_stage(stages[self.progress.stage])
            self._next_stage(stages)
        chosen = {} if self.replay is None else dict(self.replay.chosen)
        replayed = self.replay is not None
        ctx = EpochContext("finish", 0, 0, self.validate, monitor=self.monitor, replayed=replayed, decisions=chosen)
        self.method.finish(ctx)
        self.decisions = Decisions(tuple(self.progress.decided), ctx.decisions)
        return self.progress

    def _run_stage(self, stage: Stage) -> None:
        batch_size, _ = self.config.batches(self.graph.edge_count)
        sampler = make_sampler(self.graph, batch_size, stage.sampler or self.config.sampler, self.config.negatives)
        last_epoch = self._replayed.epochs if self._replayed else stage.epochs or self.config.epochs
        optimizer = self._ensure_optimizer(stage)
        start = self._consider_start() if stage.start_counts else None
        record = self.config.capture and self.method.columns.size == 1  # no message between ranks is recorded
        steps = make_steps(self.method, optimizer, self.generators, record=record)
        while self.progress.epoch < last_epoch and not self.progress.stopping.exhausted:
            self.progress.epoch += 1
            self.progress.epochs_in_total += 1
            line = self._run_epoch(stage, sampler, steps, last_epoch)
            if start is not None and self.progress.epoch == 1:
                line["start"] = start
            for observer in self.observers:
                observer.epoch(line)
            self._checkpoint()

    def _consider_start(self) -> dict[str, float] | None:
        """The state that a stage starts from is the first candidate for its best; its validation."""
        if self.validate is None or self.progress.epoch > 0:
            return None
        metrics = self.validate(self.method.scorer())
        self.progress.stopping.update(0, metrics[self.monitor])
        self._snapshot()
        return dict(metrics)

    def _run_epoch(self, stage: Stage, sampler: AnySampler, steps: Steps, last_epoch: int) -> dict[str, Any]:
        epoch = self.progress.epoch
        ctx = EpochContext(stage.name, epoch, sampler.steps, self.validate, monitor=self.monitor, sampler=sampler)
        clock = _Clock()
        with clock("begin_epoch"):
            self.method.begin_epoch(ctx)
        with clock("train"):
            losses = steps.run(sampler.blocks(self.generators["sampling"]))
        ctx.losses = losses
        self._check_finite(losses, stage, epoch)
        due = epoch % self.config.validate_every == 0 or epoch == last_epoch
        if self._replayed is not None:
            ctx.replayed, ctx.validated_there = True, due and bool(self._replayed.improved)
            ctx.improved = epoch in self._replayed.improved
        elif self.validate is not None and due:
            with clock("validate"):
                ctx.metrics = self.validate(self.method.scorer())
            ctx.improved = self.progress.stopping.update(epoch, ctx.metrics[self.monitor])
        if ctx.improved:
            self.progress.improved.append(epoch)
            if self._replayed is None or epoch == last_epoch:  # which state is kept is known before, then
                self._snapshot()
        with clock("end_epoch"):
            self.method.end_epoch(ctx)
        return {
            "stage": stage.name,
            "epoch": epoch,
            "epochs": last_epoch,
            "loss": losses,
            "validation": None if ctx.metrics is None else dict(ctx.metrics),
            "improved": ctx.improved,
            "best": None if self.best is None or self.replay else self.progress.stopping.best,
            "best_epoch": self.progress.stopping.best_epoch,
            "seconds": clock.seconds,
            **({"diagnostics": ctx.log} if ctx.log else {}),
        }

    @property
    def _replayed(self) -> StageDecisions | None:
        """What is replayed in the stage that is running."""
        return None if self.replay is None else self.replay.stages[self.progress.stage]

    def _check_finite(self, losses: Mapping[str, float], stage: Stage, epoch: int) -> None:
        bad = [name for name, value in losses.items() if not math.isfinite(value)]
        if bad:
            raise TrainingError(
                f"the {bad[0]} loss became {losses[bad[0]]} in epoch {epoch} of stage '{stage.name}' at "
                f"train.learning_rate={self.config.learning_rate:g}; lower the learning rate or raise method.l2"
            )

    def _ensure_optimizer(self, stage: Stage) -> torch.optim.Optimizer:
        if self.optimizer is None:
            _, learning_rate = self.config.batches(self.graph.edge_count)
            self.optimizer = adam(self.method.parameters(stage), learning_rate, self.graph.device)
        return self.optimizer

    def _next_stage(self, stages: tuple[Stage, ...]) -> None:
        """Restore the best state of the stage that ended; the next one starts from it."""
        if self.best is not None:
            self.method.load_state(self.best)
        stopping = self.progress.stopping
        validated = math.isfinite(stopping.best)  # where nothing was, all epochs are kept
        kept = stopping.best_epoch if validated else self.progress.epoch
        ended = StageDecisions(stages[self.progress.stage].name, kept, tuple(self.progress.improved))
        self.progress.decided.append(ended)
        done = self.progress.stage + 1
        if done == len(stages):
            self.progress.stage = done
            return
        if stages[done].fresh_optimizer:
            self.optimizer = None
        self.best = None
        self.progress = Progress(
            stage=done,
            stopping=EarlyStopping(self.config.patience),
            epochs_in_total=self.progress.epochs_in_total,
            decided=self.progress.decided,
        )

    def _snapshot(self) -> None:
        state = self.method.state()
        if self.best is None or self.best.tensors.keys() != state.tensors.keys():
            self.best = state.clone()
            return
        for name, value in state.tensors.items():
            self.best.tensors[name].copy_(value)
        self.best.scalars.clear()
        self.best.scalars.update(state.scalars)

    # ---------------------------------------------------------------- interruption and resume

    def _checkpoint(self) -> None:
        columns = self.method.columns
        stop = columns.any(self.stop_requested())
        if columns.told(lambda: self.folder is not None and (stop or self._checkpoint_is_due())):
            self._save()
            self._last_checkpoint = time.monotonic()
        if stop:
            raise Interrupted

    def _checkpoint_is_due(self) -> bool:
        return time.monotonic() - self._last_checkpoint >= self.config.checkpoint_seconds

    def _save(self) -> None:
        """With tables of all columns, whichever rank holds them; the first rank writes."""
        assert self.optimizer is not None
        current, columns = self.method.state(), self.method.columns
        by_columns = self.method.by_columns or ()
        moments = files.optimizer_state(self.optimizer)
        tensors = {
            **files.prefixed("method", columns.joined(current.tensors, by_columns)),
            **files.prefixed("best", columns.joined(self.best.tensors if self.best else {}, by_columns)),
            **files.prefixed("optimizer", columns.joined(moments, files.moments_in(moments))),
            **files.prefixed("generators", self.generators.state()),
        }
        if self.folder is None:
            return
        self.progress.best_scalars = None if self.best is None else self.best.scalars
        meta = {
            "finished": False,
            "replays": self.replay is not None,
            "progress": _progress_to_json(self.progress),
            "scalars": current.scalars,
        }
        files.save_checkpoint(self.folder, f"state-{self.progress.epochs_in_total}", Checkpoint(tensors, meta))

    def _resume(self, stored: StoredCheckpoint, stages: tuple[Stage, ...]) -> None:
        tensors = stored.tensors()
        with files.fitting(stored.file):
            self._take_over(stored, tensors, stages)

    def _take_over(self, stored: StoredCheckpoint, tensors: dict[str, Tensor], stages: tuple[Stage, ...]) -> None:
        self.progress = _progress_from_json(stored.meta["progress"])
        columns, by_columns = self.method.columns, self.method.by_columns or ()
        current = columns.parts(files.unprefixed("method", tensors), by_columns)
        self.method.load_state(State(current, stored.meta["scalars"]))
        best = columns.parts(files.unprefixed("best", tensors), by_columns)
        if self.progress.best_scalars is not None:
            on_device = {name: value.to(self.graph.device) for name, value in best.items()}
            self.best = State(on_device, self.progress.best_scalars)
        optimizer = self._ensure_optimizer(stages[self.progress.stage])
        moments = files.unprefixed("optimizer", tensors)
        files.load_optimizer_state(optimizer, columns.parts(moments, files.moments_in(moments)))
        self.generators.load_state(files.unprefixed("generators", tensors))


class _Clock:
    """Seconds per phase of an epoch."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Any:
        start = time.perf_counter()
        yield
        self.seconds[phase] = time.perf_counter() - start


def _progress_to_json(progress: Progress) -> dict[str, Any]:
    values = asdict(replace(progress, decided=[]))
    values["decided"] = Decisions(tuple(progress.decided)).to_json()["stages"]
    if not math.isfinite(progress.stopping.best):
        values["stopping"]["best"] = None  # JSON has no -inf
    return values


def _progress_from_json(values: dict[str, Any]) -> Progress:
    stopping = dict(values["stopping"])
    if stopping["best"] is None:
        stopping["best"] = -math.inf
    decided = [StageDecisions.from_json(stage) for stage in values["decided"]]
    return Progress(**{**values, "stopping": EarlyStopping(**stopping), "decided": decided})
