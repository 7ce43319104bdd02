"""Seconds per epoch: counted work times rates that were measured on a device (rates.json).

A step propagates over all interactions, forth and back, and passes over the tables and Adam's moments; an epoch also
draws its triples. With E interactions, n users and items, k columns, L layers and batches of B:

    launch + stream n k + layer L n k + gather L E k (1 - h) + cached L E k h + softmax B k      per step
    draw E                                                                                       per epoch

h is the share of a table that the cache of the device holds. What a batch costs beside propagation counts for the
softmax only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caged.errors import ConfigError
from caged.files import write_json
from caged.runs.planning.workload import Workload

RATES = Path(__file__).with_name("rates.json")
CACHE_BYTES = {"cuda": 50 * 2**20, "cpu": 5 * 2**19}  # second-level: of an H200, of two cores
COLUMNS_AT_ONCE = {"cuda": 2**31, "cpu": 32}  # of a table that a product reads
BYTES_OF_A_NUMBER = {"cuda": 2, "cpu": 4}
SOFTMAX = "softmax"


@dataclass(frozen=True)
class Rates:
    """Seconds, each per unit of what stands behind it in the formula."""

    name: str  # of the device they were measured on
    source: str  # of the measurements
    memory_bytes: int  # of that device; 0 on CPU
    launch: float
    stream: float
    layer: float
    gather: float
    cached: float
    softmax: float
    draw: float


OF_STEPS = ("launch", "stream", "layer", "gather", "cached", "softmax")
DRAW = "draw"


def work_of(work: Workload) -> dict[str, float]:
    """How much of each kind an epoch has, on one device."""
    edges, numbers, steps = work.interactions, work.numbers, work.steps
    table = BYTES_OF_A_NUMBER[work.device] * work.nodes * min(work.columns, COLUMNS_AT_ONCE[work.device])
    held = min(1.0, CACHE_BYTES[work.device] / table)
    gathered = steps * work.layers * edges * work.columns
    return {
        "launch": steps,
        "stream": steps * numbers,
        "layer": steps * work.layers * numbers,
        "gather": gathered * (1 - held),
        "cached": gathered * held,
        "softmax": steps * work.batch * work.columns if work.method == SOFTMAX else 0.0,
        DRAW: edges,
    }


def seconds_per_epoch(work: Workload, rates: Rates) -> float:
    """Without validation, and without what several devices tell each other."""
    return float(sum(amount * getattr(rates, kind) for kind, amount in work_of(work).items()))


class Measured(NamedTuple):
    """An epoch that was measured."""

    work: Workload
    seconds: float
    drawing: float  # of these


def fitted(measured: Sequence[Measured], hardware: dict[str, Any], source: str) -> Rates:
    """Rates that are nowhere negative and make the relative errors of the steps small."""
    from scipy.optimize import nnls

    amounts = np.array([[work_of(one.work)[kind] for kind in OF_STEPS] for one in measured])
    relative = amounts / np.array([one.seconds - one.drawing for one in measured])[:, None]
    scale = np.where(relative.max(axis=0) > 0, relative.max(axis=0), 1.0)
    found = nnls(relative / scale, np.ones(len(measured)))[0] / scale
    draw = float(np.median([one.drawing / work_of(one.work)[DRAW] for one in measured]))
    name = str(hardware.get("gpu") or f"{hardware['cores']} cores of {hardware['cpu']}")
    memory = round(hardware.get("gpu_memory_gib", 0.0) * 2**30)
    return Rates(name, source, memory, draw=draw, **{kind: float(v) for kind, v in zip(OF_STEPS, found, strict=True)})


@cache
def _stored() -> dict[str, Any]:
    return dict(json.loads(RATES.read_text(encoding="utf-8")))


def rates_of(device: str) -> Rates:
    found = _stored()
    if device not in found:
        raise ConfigError(f"no rates are known for device '{device}'; measure them with python -m benchmarks.plan")
    return Rates(**found[device])


def write_rates(device: str, rates: Rates) -> None:
    write_json(RATES, {**(_stored() if RATES.exists() else {}), device: asdict(rates)})
    _stored.cache_clear()
