"""Seconds, and what the machine could do at best: copies and matrix products, measured in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import torch

from caged.cuda_graph import Work, recorded

Measurement = Callable[[], float]  # does its work once and says how many seconds that took, or would take


def seconds(work: Callable[[], object], device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def replayed(work: Work, device: torch.device) -> Work:
    """On CUDA a recording of it."""
    if device.type != "cuda":
        return work
    recording = recorded(work, name="a benchmark")
    if recording is None:
        raise RuntimeError("a benchmark that should be replayed cannot be recorded")

    def replay(_kept: Work = work) -> None:  # the recording does not keep alive what the work reads and writes
        recording()

    return replay


def interleaved(measurements: dict[str, Measurement], rounds: int, *, warm_up: bool = True) -> dict[str, float]:
    """The median of each, taken in turns, so that a busy minute of the machine hits all of them alike.

    With `warm_up`, a round before the first one is not counted: caches, lazy initialisation.
    """
    taken: dict[str, list[float]] = {name: [] for name in measurements}
    for counted in [False] * warm_up + [True] * rounds:
        for name, measure in measurements.items():
            value = measure()
            if counted:
                taken[name].append(value)
    return {name: median(values) for name, values in taken.items()}


@dataclass(frozen=True, eq=False)
class Ceilings:
    """What this machine reaches on the two things that everything here is made of."""

    device: torch.device
    quick: bool = False

    @cached_property
    def memory_bytes_per_s(self) -> float:
        """Read and written by a copy that is much larger than any cache."""
        return self._copy(2**25 if self.quick else 2**28, times=1)

    @cached_property
    def cache_bytes_per_s(self) -> float:
        """Read and written by a copy inside the second-level cache, on one core or all of them."""
        if self.device.type == "cuda":
            return max(self._copy(2**size, times=50) for size in range(21, 25))
        return self._copy(2**18 * torch.get_num_threads(), times=200)

    @cached_property
    def flops(self) -> float:
        """Of a product of two square matrices, in float32 on CPU and in bfloat16 on CUDA."""
        on_gpu = self.device.type == "cuda"
        size = 8192 if on_gpu else 512 if self.quick else 1536
        matrix = torch.ones(size, size, device=self.device, dtype=torch.bfloat16 if on_gpu else torch.float32)
        return 2 * size**3 / self._best(lambda: matrix @ matrix)

    def _copy(self, size: int, times: int) -> float:
        source = torch.ones(size, dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)

        def copies() -> None:
            for _ in range(times):
                target.copy_(source)

        return 2 * size * times / self._best(replayed(copies, self.device))

    def _best(self, work: Callable[[], object]) -> float:
        return min(seconds(work, self.device) for _ in range(3 if self.quick else 7))
