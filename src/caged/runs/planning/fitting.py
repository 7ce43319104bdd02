"""Before `caged train` allocates anything: whether it will fit into the memory that is free."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import torch

from caged.config import to_dict
from caged.data import Interactions
from caged.errors import DeviceError
from caged.models import registered
from caged.runs.planning.inventory import TEST
from caged.runs.planning.machine import available_memory
from caged.runs.planning.plan import SHORT_LISTS, Plan, gib, plan
from caged.runs.planning.workload import PLANNED, Workload
from caged.runs.spec import ExperimentSpec
from caged.runs.validation import holds_out_validation

# Predictions are off by up to this much: what may just fit is tried, with a warning, and not refused.
UNCERTAINTY = 0.15
DENSE = "dense"  # the other form of propagation on CUDA, for small graphs: it decides by the free memory itself

_log = logging.getLogger("caged")


def refuse_what_cannot_fit(
    spec: ExperimentSpec, train: Interactions, device: torch.device, ranks: int = 1, *, tested_users: int = 0
) -> None:
    """One sentence instead of a crash after minutes of work, or after the last epoch: `tested_users` get lists then.

    Methods that train no tables are let through.
    """
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
        tested_users=tested_users if device.type == "cuda" else -(-tested_users // ranks),  # ranks share the test
        list_length=spec.eval.list_length,
    )
    # Ranks on one machine share its memory, and a GPU where there are more of them than GPUs.
    sharing = -(-ranks // torch.cuda.device_count()) if device.type == "cuda" else ranks
    share = free // sharing
    found = plan(work, share)
    place = "the GPU" if device.type == "cuda" else "this machine"
    each = "" if sharing == 1 else f" for each of {sharing} processes"
    who = f"training with {TEST}" if found.needed.peak_phase == TEST else "training"
    _refuse(found.needed.peak, share, f"{who} needs about {{}}, and {place} has {{}} free{each}", found.advice)
    host = available_memory() if device.type == "cuda" else None
    if host is not None:
        said = f"{TEST} needs about {{}} of the memory of this machine, and it has {{}} free"
        _refuse(found.host_bytes, host, said, [_shorter_lists(found, host)])


def _shorter_lists(found: Plan, host: int) -> str:
    short = plan(replace(found.work, list_length=SHORT_LISTS), found.memory_bytes).host_bytes
    if found.work.list_length > SHORT_LISTS and short <= host:
        return f"store shorter lists (eval.list_length={SHORT_LISTS}): {gib(short)}"
    return "test fewer users (a smaller test part), or use a machine with more memory"


def _refuse(needed: int, free: int, said: str, advice: Sequence[str]) -> None:
    if needed <= free:
        return
    said = said.format(gib(needed), gib(free))
    if needed * (1 - UNCERTAINTY) > free:
        raise DeviceError(f"{said}; {'; or '.join(advice)}")
    _log.warning("%s: it may not fit", said)


def free_memory(device: torch.device) -> int | None:
    """Bytes that a training could take; None where nobody knows."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return available_memory()
