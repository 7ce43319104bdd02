"""One shape of `benchmarks.plan`, measured in this process: memory by phase, and the seconds of an epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.billion import make_method, sampled_validation
from benchmarks.device_log import Shape, generate
from benchmarks.memory import peak_memory
from benchmarks.plan import VALIDATED_USERS
from caged.graph import AnySampler, BipartiteGraph, Epoch, make_sampler
from caged.models import Method
from caged.models.contract import EpochContext
from caged.optimiser import adam
from caged.runs.environment import hardware, keep_freed_memory
from caged.seeding import Generators
from caged.training.loop import AUTO, TrainConfig, Validate
from caged.training.step import Steps, make_steps

STEPS = 8  # taken on CPU, after one that is not counted; machines that others use, too, have slow moments


class Memory:
    """The most memory in each phase, with what is there already."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.phases: dict[str, int] = {}
        self._reserved = 0  # most that torch has taken from the GPU
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch.cuda.empty_cache()
        self._forget()

    def mark(self, phase: str) -> None:
        """The phase has ended: the most that was in use meanwhile."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            most = torch.cuda.max_memory_allocated(self._device)
            self._reserved = max(self._reserved, torch.cuda.max_memory_reserved(self._device))
        else:
            most = peak_memory()
        self.phases[phase] = max(most, self.phases.get(phase, 0))
        self._forget()

    def _forget(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
        else:
            Path("/proc/self/clear_refs").write_text("5")  # the peak of resident memory begins anew

    def peak(self) -> int:
        """What was taken from the GPU, or from the system."""
        return self._reserved if self._device.type == "cuda" else max(self.phases.values())


def measure(shape: list[Any], device_name: str) -> dict[str, Any]:
    """Users, items, interactions, columns, layers and method: what a training on them took, as the loop does it."""
    device = torch.device(device_name)
    keep_freed_memory(device)
    users, items, interactions, columns, layers, name = shape
    graph, validate, memory = _graph(Shape(users, items, interactions), device)
    batch_size, learning_rate = TrainConfig(batch_size=AUTO).batches(graph.edge_count)
    generators = Generators(1, device)
    method = make_method(name, columns, layers)
    method.prepare(graph, generators)
    memory.mark("tables")
    stage = method.stages()[0]
    sampler = make_sampler(graph, batch_size)
    memory.mark("sampler")
    optimizer = adam(method.parameters(stage), learning_rate, device)
    steps = make_steps(method, optimizer, generators, record=True)
    method.begin_epoch(EpochContext(stage.name, 1, sampler.steps, validate, sampler=sampler))
    taken = _Taken(steps, sampler, generators, memory)

    def rank() -> None:
        validate(method.scorer())
        memory.mark("validation")

    seconds, drawing = taken.on_cuda(method, rank) if device.type == "cuda" else taken.on_cpu(method, rank)
    return {
        "shape": shape,
        "interactions": graph.edge_count,
        "seconds": seconds,
        "drawing_s": drawing,
        "memory_bytes": memory.peak(),
        "peaks_by_phase": memory.phases,
        "hardware": hardware(device),
    }


def _graph(shape: Shape, device: torch.device) -> tuple[BipartiteGraph, Validate, Memory]:
    """The log is generated before anything counts."""
    log = generate(shape, VALIDATED_USERS, device)
    validate = sampled_validation(log, device)
    offsets, rows, item_count = log.user_offsets, log.items, log.item_count
    del log
    memory = Memory(device)
    graph = BipartiteGraph.from_rows(offsets, rows, item_count, device)
    memory.mark("graph")
    return graph, validate, memory


class _Taken(NamedTuple):
    """Epochs and validations in the order of the loop. Both ways return the seconds of an epoch and of its drawing."""

    steps: Steps
    sampler: AnySampler
    generators: Generators
    memory: Memory

    def on_cuda(self, method: Method[Any], rank: Callable[[], None]) -> tuple[float, float]:
        """The first epoch records the step; the second is the one that counts."""
        self._timed_epoch()
        self.memory.mark("recording")
        rank()
        best = method.state().clone()  # noqa: F841 - it takes its memory from now on
        seconds = self._timed_epoch()
        drawing = timed(self._draw, self.generators.device)
        self.memory.mark("steps")
        rank()
        return seconds, drawing

    def on_cpu(self, method: Method[Any], rank: Callable[[], None]) -> tuple[float, float]:
        """Only some of its steps are taken."""
        drawing = timed(self._draw, self.generators.device)
        self.memory.mark("drawing")
        block = next(iter(self.sampler.blocks(self.generators["sampling"])))
        steps = min(STEPS + 1, len(block.parts[0]))
        if steps < 2:
            raise ValueError(f"a block has {steps} step; the first one does not count, so give more interactions")
        batches = [Epoch(*(part[step : step + 1] for part in block.parts)) for step in range(steps)]
        taken = [timed(_running(self.steps, batch), self.generators.device) for batch in batches][1:]
        self.memory.mark("steps")
        del block, batches
        best = method.state().clone()  # noqa: F841 - it takes its memory while validation takes more
        rank()
        return drawing + self.sampler.steps * min(taken), drawing

    def _timed_epoch(self) -> float:
        return timed(lambda: self.steps.run(self.sampler.blocks(self.generators["sampling"])), self.generators.device)

    def _draw(self) -> None:
        for _ in self.sampler.blocks(self.generators["bench"]):
            pass


def _running(steps: Steps, batch: Epoch) -> Callable[[], object]:
    return lambda: steps.run([batch])


def timed(work: Callable[[], object], device: torch.device) -> float:
    begun = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun
