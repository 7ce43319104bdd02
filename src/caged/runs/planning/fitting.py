"""Before `caged train` allocates anything: whether it will fit into the memory that is free."""

from __future__ import annotations

import logging
from pathlib import Path

import torch

from caged.config import to_dict
from caged.data import Interactions
from caged.errors import DeviceError
from caged.models import registered
from caged.runs.planning.plan import gib, plan
from caged.runs.planning.workload import PLANNED, Workload
from caged.runs.spec import ExperimentSpec
from caged.runs.validation import holds_out_validation

# Predictions are off by up to this much: what may just fit is tried, with a warning, and not refused.
UNCERTAINTY = 0.15
DENSE = "dense"  # the other form of propagation on CUDA, for small graphs: it decides by the free memory itself

_log = logging.getLogger("caged")


def refuse_what_cannot_fit(spec: ExperimentSpec, train: Interactions, device: torch.device, ranks: int = 1) -> None:
    """One sentence instead of a crash after minutes of work. Methods that train no tables are let through."""
    settings = to_dict(spec.config)
    width = settings.get("embedding_size")
    if spec.method not in PLANNED or not isinstance(width, int) or spec.train.backend == DENSE:
        return
    free = free_memory(device)
    if free is None:
        return
    work = Workload(
        users=train.user_count,
        items=train.item_count,
        interactions=max(1, len(train)),
        embedding_size=width,
        layers=int(settings.get("layers", 3)),
        method=spec.method,
        device=device.type,
        devices=min(ranks, width),
        batch_size=spec.train.batches(len(train))[0],
        validated=holds_out_validation(registered(spec.method).method(spec.config), spec.train),
        validation_users=spec.train.validation_users,
        wide_tables=spec.train.precision in ("float32", "tf32"),
    )
    # Ranks on one machine share its memory, and a GPU where there are more of them than GPUs.
    sharing = -(-ranks // torch.cuda.device_count()) if device.type == "cuda" else ranks
    share = free // sharing
    found = plan(work, share)
    if found.fits:
        return
    place = "the GPU" if device.type == "cuda" else "this machine"
    each = "" if sharing == 1 else f" for each of {sharing} processes"
    said = f"training needs about {gib(found.needed.peak)}, and {place} has {gib(share)} free{each}"
    advice = "; or ".join(found.advice)
    if found.needed.peak * (1 - UNCERTAINTY) > share:
        raise DeviceError(f"{said}; {advice}")
    _log.warning("%s: it may not fit", said)


def free_memory(device: torch.device) -> int | None:
    """Bytes that a training could take; None where nobody knows."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return available_memory()


def available_memory(meminfo: Path = Path("/proc/meminfo"), limits: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What Linux says could be had without swapping, within the limit of the container if there is one."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="utf-8").splitlines())
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None
    try:
        most = int((limits / "memory.max").read_text(encoding="utf-8"))
        used = int((limits / "memory.current").read_text(encoding="utf-8"))
        cached = dict(line.split() for line in (limits / "memory.stat").read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):  # no container, or "max"
        return available
    return min(available, most - used + int(cached.get("file", 0)))
