"""Training on a made-up log of up to a billion interactions on one device, with the package's own loop and options.

python -m benchmarks.billion --users 20M --items 2M --interactions 1B --k 64 --layers 2 --method lightgcn --epochs 3 \\
    --device cuda --folder runs/billion --minutes 9 --out billion.json

The log is generated on the device (`benchmarks.device_log`). Batches are `batch_size=auto`. After every epoch a sample
of the users is ranked exactly, over the whole catalogue, for what was held out of their rows. The record is written
after every epoch. With --folder training leaves a checkpoint and goes on from it in the next call; with --minutes it
stops, and leaves one, before an epoch that would not end in time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.billion_record import Record
from benchmarks.circumstances import circumstances
from benchmarks.device_log import DeviceLog, Shape, generate
from benchmarks.memory import peak_memory
from caged.arguments import counted
from caged.config import build
from caged.errors import CagedError
from caged.evaluation.evaluate import make_validator
from caged.graph import BipartiteGraph, make_sampler
from caged.models import Method, registered
from caged.models.contract import Metrics, Scorer
from caged.runs.environment import resolve_device
from caged.seeding import Generators
from caged.training import Interrupted, Loop, TrainConfig, load_checkpoint
from caged.training.loop import AUTO, Validate

METHODS = ("lightgcn", "softmax")
CHECKPOINT_SECONDS = 240.0
SLOW_DISK = 0.4e9  # bytes per second that a first checkpoint is expected to take
MARGIN = 1.1  # of the time of the longest epoch so far, before another one is begun


def count(text: str) -> int:
    """A number of things as people write it, for argparse.

    >>> count("20M"), count("1.5k"), count("300")
    (20000000, 1500, 300)
    """
    try:
        return counted("it", text)
    except CagedError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@dataclass
class Watch:
    """Seconds and peak memory of phases, and when to stop."""

    device: torch.device
    minutes: float | None
    begun: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        self.forget_peak()
        start = time.monotonic()
        yield
        self.synchronise()
        self.seconds[phase] = time.monotonic() - start
        self.peak_bytes[phase] = self.peak()

    def synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def forget_peak(self) -> None:
        """That of the process cannot be."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> int:
        on_cuda = self.device.type == "cuda"
        return torch.cuda.max_memory_allocated(self.device) if on_cuda else peak_memory()

    def reserved(self) -> int:
        """What the allocator took from the device, free blocks included; 0 where there is none."""
        return torch.cuda.max_memory_reserved(self.device) if self.device.type == "cuda" else 0

    def lacks(self, seconds: float) -> bool:
        """Whether so much time is no longer left."""
        return self.minutes is not None and time.monotonic() - self.begun + seconds > 60 * self.minutes


class Epochs:
    """Tells the record about every epoch, and the loop when to stop: before an epoch that would not end in time."""

    def __init__(self, record: Record, watch: Watch, epochs: int, checkpoint_s: float) -> None:
        self._record, self._watch, self._epochs = record, watch, epochs
        self._checkpoint_s = checkpoint_s
        self._longest = 0.0
        self._done = 0
        self._last = time.monotonic()

    def epoch(self, line: dict[str, Any]) -> None:
        now = time.monotonic()
        own = sum(line["seconds"].values())
        # Before the first epoch of a call, its tables and layout, and the checkpoint that it goes on from.
        before = now - self._last - own
        self._last, self._done, self._longest = now, line["epoch"], max(self._longest, own)
        self._record.add(
            {
                "epoch": line["epoch"],
                "seconds": own,
                "phases_s": line["seconds"],
                "before_s": before,
                "loss": line["loss"],
                "validation": line["validation"],
                "peak_bytes": self._watch.peak(),
                "reserved_bytes": self._watch.reserved(),
            },
            circumstances("benchmarks.billion", self._watch.device),
        )
        self._watch.forget_peak()

    def stop(self) -> bool:
        needed = MARGIN * self._longest + self._checkpoint_s
        return self._done < self._epochs and self._watch.lacks(needed)


def sampled_validation(log: DeviceLog, device: torch.device, k: int = 20) -> Validate:
    """Recall and NDCG of the sampled users over the whole catalogue, what they have in training masked."""
    rows = torch.from_numpy(log.sample).to(device)
    measure = make_validator(log.sample_training(), log.held_out, device, k)

    def validate(scorer: Scorer) -> Metrics:
        def of_sample(users: Tensor) -> Tensor:
            return scorer(rows.index_select(0, users))

        return measure(of_sample)

    return validate


def make_method(name: str, width: int, layers: int) -> Method[Any]:
    entry = registered(name)
    return entry.method(build(entry.config, {"embedding_size": width, "layers": layers}, "method"))


def train(chosen: argparse.Namespace) -> None:
    device = resolve_device(chosen.device)
    watch = Watch(device, chosen.minutes)
    shape = Shape(chosen.users, chosen.items, chosen.interactions)
    with watch("generate"):
        log = generate(shape, min(chosen.sampled_users, shape.users), device, chosen.seed)
    asked = {name: getattr(chosen, name) for name in ("method", "k", "layers", "seed", "learning_rate")}
    record = Record.opened(chosen.out, chosen.folder, {**asked, "log": log.facts})
    stored = None if chosen.folder is None else load_checkpoint(chosen.folder)
    record.go_on_from(0 if stored is None else stored.epochs)
    config = TrainConfig(
        batch_size=AUTO,
        epochs=chosen.epochs,
        patience=None,
        learning_rate=chosen.learning_rate,
        checkpoint_seconds=CHECKPOINT_SECONDS,
    )
    with watch("build"):
        graph = BipartiteGraph.from_rows(log.user_offsets, log.items, log.item_count, device, config.engine)
        validate = sampled_validation(log, device)
    del log
    with watch("sample"):
        steps = draw_an_epoch(graph, config, chosen.seed)
    record.begin_call(steps, watch.seconds, watch.peak_bytes)
    epochs = Epochs(record, watch, chosen.epochs, 0.0 if chosen.folder is None else checkpoint_seconds(graph, chosen.k))
    watch.forget_peak()
    loop = Loop(
        make_method(chosen.method, chosen.k, chosen.layers),
        graph,
        config,
        Generators(chosen.seed, device),
        validate,
        folder=chosen.folder,
        stored=stored,
        observers=(epochs,),
        stop_requested=epochs.stop,
    )
    try:
        loop.run()
    except Interrupted:
        kept = "nothing was kept" if chosen.folder is None else "call again to go on"
        sys.stderr.write(f"stopped: another epoch would not end within {chosen.minutes:g} minutes; {kept}\n")


def draw_an_epoch(graph: BipartiteGraph, config: TrainConfig, seed: int) -> dict[str, Any]:
    """Nobody trains on it: in the epochs themselves, the device is not asked when a draw ends and a step begins."""
    batch_size, learning_rate = config.batches(graph.edge_count)
    sampler = make_sampler(graph, batch_size)
    for _ in sampler.blocks(Generators(seed, graph.device)["bench"]):
        pass
    return {"batch_size": batch_size, "steps": sampler.steps, "scaled_learning_rate": learning_rate}


def checkpoint_seconds(graph: BipartiteGraph, width: int) -> float:
    """How long writing one may take: tables, two moments of each number, and the best tables."""
    return 4 * 4 * width * (graph.user_count + graph.item_count) / SLOW_DISK


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.billion", description=(__doc__ or "").split("\n")[0])
    for name, default in (("users", "20M"), ("items", "2M"), ("interactions", "1B")):
        made.add_argument(f"--{name}", type=count, default=count(default), help=f"such as {default}")
    made.add_argument("--k", type=int, default=64, help="columns of the tables")
    made.add_argument("--layers", type=int, default=2)
    made.add_argument("--method", choices=METHODS, default="lightgcn")
    made.add_argument("--epochs", type=int, default=3)
    made.add_argument("--learning-rate", type=float, default=1e-3, help="at a batch of 2048")
    made.add_argument("--sampled-users", type=count, default=10_000, help="whom validation ranks for, exactly")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    made.add_argument("--threads", type=int, help="on CPU")
    made.add_argument("--folder", type=Path, help="for a checkpoint, to stop and go on")
    made.add_argument("--minutes", type=float, help="stop in time for this")
    made.add_argument("--out", type=Path, required=True, help="the record, written after every epoch")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parser().parse_args(arguments)
    if chosen.threads is not None:
        torch.set_num_threads(chosen.threads)
    try:
        train(chosen)
    except CagedError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
