"""What a piece of work is made of: every kernel (on CPU: every operator) by time and calls."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

SHOWN = 12  # lines of a printed profile
NOISE = re.compile(r"\bvoid |at::native::|\(anonymous namespace\)::|c10::|std::")


def profiled(work: Callable[[], object], steps: int, device: torch.device) -> dict[str, Any]:
    """Parts of a step of `work`, which takes so many of them and is warm; longest first.

    What is left of a step when all kernels are subtracted are the gaps between them.
    """
    on_gpu = device.type == "cuda"
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler talks to stderr, of missing GPUs among others
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as found:
        work()
    calls: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for event in found.key_averages():
        microseconds = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if microseconds > 0:
            calls[short(event.key)] += event.count
            taken[short(event.key)] += microseconds
    return {
        "kind": "kernels" if on_gpu else "operators",
        "calls": calls.total() / steps,
        "seconds": 1e-6 * taken.total() / steps,
        "parts": [
            {"name": name, "calls": calls[name] / steps, "seconds": 1e-6 * microseconds / steps}
            for name, microseconds in taken.most_common()
        ],
    }


def short(kernel: str) -> str:
    """The name of a kernel without what says nothing about it.

    >>> short("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, int>(int, float)")
    'vectorized_elementwise_kernel<4, FillFunctor<float>, int>'
    """
    return NOISE.sub("", kernel).split("(")[0].strip()[:100]


def profile_rows(name: str, found: dict[str, Any]) -> list[list[str]]:
    """Lines of a table: benchmark, microseconds and calls per step, kernel; what all and the shorter ones take."""

    def line(what: str, seconds: float, calls: float) -> list[str]:
        return [name, f"{1e6 * seconds:.1f}", f"{calls:.1f}", what]

    first, rest = found["parts"][:SHOWN], found["parts"][SHOWN:]
    rows = [line(f"all {found['kind']}", found["seconds"], found["calls"])]
    rows += [line(part["name"], part["seconds"], part["calls"]) for part in first]
    if rest:
        rows.append(line(f"{len(rest)} others", *(sum(part[key] for part in rest) for key in ("seconds", "calls"))))
    return rows
