"""What the benchmarks share: where they run, what a prepared one is, and the reference side of them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch

from benchmarks import reference
from benchmarks.graphs import Log
from benchmarks.timing import Ceilings, Measurement, seconds
from caged.data import Interactions
from caged.graph import BipartiteGraph

Made = TypeVar("Made")
BATCH = 2048
REFERENCE_SHARE = 0.1  # of an epoch that the Python sampler draws; its time is proportional


@dataclass(frozen=True, eq=False)
class Setting:
    """Where and how thoroughly to measure."""

    device: torch.device
    threads: int
    quick: bool
    ceilings: Ceilings

    def seconds(self, work: Callable[[], object]) -> float:
        return seconds(work, self.device)

    def timed(self, work: Callable[[], object]) -> Measurement:
        return lambda: self.seconds(work)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A benchmark that is ready to be measured."""

    ours: Measurement
    reference: Measurement
    data: str
    fraction_of_ceiling: Callable[[float], float]  # from our seconds
    ceiling: str
    others: dict[str, Measurement] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    once: bool = False  # too long to repeat; warms itself up
    profile: Callable[[], dict[str, Any]] | None = None  # what a training step of ours is made of


class ReferenceSampling:
    def __init__(self, log: Log) -> None:
        self.positives = [part.tolist() for part in items_of_users(log.train)]
        self.item_count, self.triples = log.train.item_count, len(log.train)

    def draw(self, count: int) -> Any:
        return reference.sample_epoch(self.positives, self.item_count, count, seed=1)

    def epoch(self) -> float:
        """Seconds for an epoch of triples, from a part of it."""
        some = max(1, int(REFERENCE_SHARE * self.triples))
        return seconds(lambda: self.draw(some), torch.device("cpu")) * self.triples / some


def reference_model(log: Log, width: int, layers: int, setting: Setting) -> Any:
    train = log.train
    adjacency = reference.normalized_adjacency(train.users, train.items, train.user_count, train.item_count)
    return reference.LightGCN(adjacency.to(setting.device), train.user_count, train.item_count, width, layers)


def items_of_users(train: Interactions) -> list[Any]:
    return np.split(train.items, train.user_offsets[1:-1])


def sizes(graph: BipartiteGraph) -> dict[str, int]:
    return {"users": graph.user_count, "items": graph.item_count, "interactions": graph.edge_count}


def with_gpu_peak(make: Callable[[], Made], device: torch.device) -> tuple[Made, dict[str, int]]:
    """What `make` returns, and the most GPU memory that it took on top of what was there before; none on CPU."""
    if device.type != "cuda":
        return make(), {}
    gc.collect()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    made = make()
    return made, {"peak_gpu_bytes": torch.cuda.max_memory_allocated(device) - before}
