"""Peak memory of this process, and of a piece of work on a GPU."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

Made = TypeVar("Made")


def peak_memory() -> int:
    """Most bytes that were resident at once since this program started.

    On Linux from VmHWM and not from ru_maxrss: that one outlives the start of a program, so a process started by a
    large one would report the size of its parent.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def with_gpu_peak(make: Callable[[], Made], device: torch.device) -> tuple[Made, dict[str, int]]:
    """What `make` returns, and the most GPU memory that it took on top of what was there before; none on CPU."""
    if device.type != "cuda":
        return make(), {}
    gc.collect()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    made = make()
    return made, {"peak_gpu_bytes": torch.cuda.max_memory_allocated(device) - before}
