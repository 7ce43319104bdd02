"""One shape of `benchmarks.plan`, measured in this process: memory by phase, and the seconds of an epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.billion import make_method, sampled_validation
from benchmarks.device_log import Shape, generate
from benchmarks.memory import peak_memory
from caged.graph import AnySampler, BipartiteGraph, Epoch, make_sampler
from caged.models.contract import EpochContext
from caged.optimiser import adam
from caged.runs.environment import hardware
from caged.seeding import Generators
from caged.training.loop import AUTO, TrainConfig, Validate
from caged.training.step import Steps, make_steps

STEPS = 3  # taken on CPU, after one that is not counted
SAMPLED_USERS = 200  # whom validation ranks for


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
            self.phases[phase] = torch.cuda.max_memory_allocated(self._device)
            self._reserved = max(self._reserved, torch.cuda.max_memory_reserved(self._device))
        else:
            self.phases[phase] = peak_memory()
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
    seconds, drawing = _epoch(steps, sampler, generators, memory)
    best = method.state().clone()  # noqa: F841 - it takes its memory while validation takes more
    validate(method.scorer())
    memory.mark("validation")
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
    log = generate(shape, SAMPLED_USERS, device)
    validate = sampled_validation(log, device)
    offsets, rows, item_count = log.user_offsets, log.items, log.item_count
    del log
    memory = Memory(device)
    graph = BipartiteGraph.from_rows(offsets, rows, item_count, device)
    memory.mark("graph")
    return graph, validate, memory


def _epoch(steps: Steps, sampler: AnySampler, generators: Generators, memory: Memory) -> tuple[float, float]:
    """Seconds of an epoch and of drawing its triples. On CPU only some of its steps are taken."""

    def draw() -> None:
        for _ in sampler.blocks(generators["bench"]):
            pass

    if generators.device.type == "cuda":
        timed(lambda: steps.run(sampler.blocks(generators["sampling"])), generators.device)  # records the step
        memory.mark("recording")
        seconds = timed(lambda: steps.run(sampler.blocks(generators["sampling"])), generators.device)
        drawing = timed(draw, generators.device)
        memory.mark("steps")
        return seconds, drawing
    drawing = timed(draw, generators.device)
    memory.mark("drawing")
    block = next(iter(sampler.blocks(generators["sampling"])))
    batches = [Epoch(*(part[step : step + 1] for part in block.parts)) for step in range(STEPS + 1)]
    taken = [timed(_running(steps, batch), generators.device) for batch in batches][1:]
    memory.mark("steps")
    return drawing + sampler.steps * min(taken), drawing


def _running(steps: Steps, batch: Epoch) -> Callable[[], object]:
    return lambda: steps.run([batch])


def timed(work: Callable[[], object], device: torch.device) -> float:
    begun = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun
