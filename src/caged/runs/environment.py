"""Where a run happens: device, threads, hardware."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from caged.arguments import choice
from caged.errors import ConfigError, DeviceError

DEVICES = ("auto", "cpu", "cuda")
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
MOST_THREADS = 256  # torch aborts the process where the system refuses a thread
SIDE_BY_SIDE = "CAGED_SIDE_BY_SIDE"  # set by what starts several runs that share this machine: how many


def resolve_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one; asking for CUDA where there is none is an error."""
    choice("device", name, DEVICES)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise DeviceError("device 'cuda' was asked for but torch sees no CUDA device; use --device cpu or auto")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def check_threads(threads: int | None) -> None:
    most = max(MOST_THREADS, os.cpu_count() or 1)
    if threads is not None and not 1 <= threads <= most:
        raise ConfigError(f"threads is {threads}; it must be from 1 to {most}, leave it out for the usual number")


def set_threads(threads: int | None) -> None:
    check_threads(threads)
    if threads is not None:
        torch.set_num_threads(threads)


def share_threads(ranks: int) -> None:
    """Ranks of one machine divide its threads."""
    if ranks > 1:
        torch.set_num_threads(max(1, torch.get_num_threads() // ranks))


def keep_freed_memory(device: torch.device) -> None:
    """Freed tables stay with the process, for the next step, instead of going back to the system after each.

    A step on CPU makes and frees a dozen tables. Memory that is asked for anew comes page by page, each filled with
    zeros at its first touch, which took a seventh of the time of a step on Epinions. Only glibc can be told; there it
    holds for blocks of up to 32 MiB, the most that it allows.
    """
    if device.type == "cpu" and platform.libc_ver()[0] == "glibc":
        allocator = ctypes.CDLL(None)
        allocator.mallopt(MMAP_THRESHOLD, 2**25)
        allocator.mallopt(TRIM_THRESHOLD, 2**31 - 1)


def hardware(device: torch.device) -> dict[str, Any]:
    described: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "device": device.type,
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        described["gpu"] = properties.name
        described["gpu_memory_gib"] = round(properties.total_memory / 2**30, 1)
        described["cuda"] = torch.version.cuda
    together = os.environ.get(SIDE_BY_SIDE, "1")
    if together.isdecimal() and int(together) > 1:
        described["side_by_side"] = int(together)
    return described


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def forget_peak(device: torch.device) -> None:
    """From here on the largest use of the device's memory is counted anew; that of the process cannot be."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device) -> dict[str, float]:
    """In GiB: the most that this process has had in memory, and on the device since `forget_peak`."""
    peak: dict[str, float] = {}
    if sys.platform != "win32":  # which has no such count
        import resource

        unit = 1 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux kibibytes
        peak["process_gib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)
    if device.type == "cuda":
        peak["device_gib"] = round(torch.cuda.max_memory_reserved(device) / 2**30, 3)
    return peak
