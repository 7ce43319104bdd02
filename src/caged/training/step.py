"""One epoch of optimiser steps: as plain calls, or recorded once in a CUDA graph and replayed.

An epoch comes in blocks of batches, each drawn when the one before it is done; on a small graph it is one block. Both
ways do the same thing: for each batch a loss, a backward pass and an Adam step, with the loss parts summed on the
device and read once per epoch. Recording removes the launch overhead of some fifty small kernels per step, which is
longer than the kernels themselves on a small graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from caged.cuda_graph import Work, recorded
from caged.graph import Batch, Epoch
from caged.models.contract import Method
from caged.seeding import Generators

_NOTHING = object()  # the key of no recording


class PlainSteps:
    """The obvious loop."""

    def __init__(self, method: Method[Any], optimizer: torch.optim.Optimizer) -> None:
        self.method = method
        self.optimizer = optimizer

    def run(self, blocks: Iterable[Epoch]) -> dict[str, float]:
        """Train on every batch of an epoch; mean loss parts over the batches."""
        means = _means(self.sums, blocks)
        self.optimizer.zero_grad(set_to_none=True)  # ranking needs the memory
        return means

    def sums(self, block: Epoch) -> dict[str, Tensor]:
        """Train on every batch of a block; the sums of the loss parts."""
        sums: dict[str, Tensor] = {}
        for batch in block:
            _add(sums, self.step(batch))
        return sums

    def step(self, batch: Batch) -> dict[str, Tensor]:
        self.optimizer.zero_grad(set_to_none=True)
        losses = self.method.loss(batch)
        losses.total.backward()
        self.optimizer.step()
        return {name: value.detach() for name, value in {"total": losses.total, **losses.parts}.items()}


class RecordedSteps:
    """The same steps, recorded as a CUDA graph that walks through fixed buffers with a counter on the device."""

    def __init__(self, method: Method[Any], optimizer: torch.optim.Optimizer, generators: Generators) -> None:
        self._plain = PlainSteps(method, optimizer)
        self._generators = generators
        self._key: Hashable = _NOTHING
        self._replay: Work | None = None

    def run(self, blocks: Iterable[Epoch]) -> dict[str, float]:
        return _means(self.sums, blocks)

    def sums(self, block: Epoch) -> dict[str, Tensor]:
        key = (self._plain.method.capture_key(), block.users.shape[1])
        if key != self._key or len(block) > len(self._buffers[0]):
            self._replay = None  # free the old recording before the new one
            self._replay, self._key = self._recorded(block), key
        if self._replay is None:  # this step cannot be recorded
            return self._plain.sums(block)
        self._load(block)
        for value in self._sums.values():
            value.zero_()
        for _ in range(len(block)):
            self._replay()
        return self._sums

    def _load(self, block: Epoch) -> None:
        """The last block of an epoch may be shorter than the buffers; what is left in them is not reached."""
        for buffer, values in zip(self._buffers, block.parts, strict=True):
            buffer[: len(values)].copy_(values)
        self._counter.zero_()

    def _recorded(self, block: Epoch) -> Work | None:
        self._buffers = tuple(values.clone() for values in block.parts)
        self._counter = torch.zeros(1, dtype=torch.int64, device=block.users.device)
        self._sums: dict[str, Tensor] = {}
        before = _Snapshot(self._plain, self._generators)

        def put_back() -> None:
            before.restore()
            self._counter.zero_()
            self._plain.optimizer.zero_grad(set_to_none=True)  # gradients then live in the graph's own memory

        streams = self._generators.used_on_device
        return recorded(self._next_step, name="this step", generators=streams, put_back=put_back)

    def _next_step(self) -> None:
        batch = Batch(*(buffer.index_select(0, self._counter).squeeze(0) for buffer in self._buffers))
        self._counter.add_(1)
        for name, value in self._plain.step(batch).items():
            if name not in self._sums:  # in the first run, before any recording
                self._sums[name] = torch.zeros_like(value)
            self._sums[name].add_(value)


def _means(sums_of: Callable[[Epoch], Mapping[str, Tensor]], blocks: Iterable[Epoch]) -> dict[str, float]:
    """Per step, over all blocks; read from the device once, at the end."""
    sums: dict[str, Tensor] = {}
    steps = 0
    for block in blocks:
        _add(sums, sums_of(block))
        steps += len(block)
    return {name: float(value) / steps for name, value in sums.items()}


def _add(sums: dict[str, Tensor], values: Mapping[str, Tensor]) -> None:
    for name, value in values.items():
        sums[name] = sums[name] + value if name in sums else value.clone()


class _Snapshot:
    """Parameters, optimiser and random streams as they were."""

    def __init__(self, steps: PlainSteps, generators: Generators) -> None:
        self._steps = steps
        self._generators = generators
        self._method = steps.method.state().clone()
        self._moments = [
            {name: value.clone() for name, value in values.items()} for values in steps.optimizer.state.values()
        ]
        self._streams = generators.state()

    def restore(self) -> None:
        self._steps.method.load_state(self._method)
        now = list(self._steps.optimizer.state.values())
        # Before the very first step there are no moments; they start at zero.
        then = self._moments or [{name: torch.zeros_like(value) for name, value in values.items()} for values in now]
        for mine, old in zip(now, then, strict=True):
            for name, value in mine.items():
                value.copy_(old[name])
        self._generators.load_state(self._streams)


Steps = PlainSteps | RecordedSteps


def make_steps(method: Method[Any], optimizer: torch.optim.Optimizer, generators: Generators, *, record: bool) -> Steps:
    if record and generators.device.type == "cuda":
        return RecordedSteps(method, optimizer, generators)
    return PlainSteps(method, optimizer)
