"""Seconds per epoch: counted work times rates that were measured on a device (rates.json).

A step propagates over all interactions, forth and back, and passes over the tables and Adam's moments; an epoch also
draws its triples. With E interactions, n users and items, k columns, L layers and batches of B:

    launch + stream n k + layer L n k + gather L E k (1 - h) + cached L E k h + softmax B k      per step
    draw E                                                                                       per epoch

h is the share of what propagation reads that the cache of the device holds: half of it are rows of users, half rows of
items. On CPU a step whose batch names few of the nodes treats their rows apart, where tables are wide, and its
propagation takes `apart` times as long. What a batch costs beside propagation counts for the softmax only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caged.errors import ConfigError
from caged.files import write_json
from caged.runs.planning.workload import Workload

RATES = Path(__file__).with_name("rates.json")
# What there may be of a cache: the second level of an H200; on CPU the last one, of which tables have a part.
CACHE_BYTES = {"cuda": (50 * 2**20,), "cpu": tuple(2**power for power in range(20, 27))}
COLUMNS_AT_ONCE = {"cuda": 2**31, "cpu": 32}  # of a table that a product reads; more go in equal blocks
BYTES_OF_A_NUMBER = {"cuda": 2, "cpu": 4}
SOFTMAX = "softmax"
WIDE = 128  # columns from which the rows of a batch are treated apart on CPU, as in `graph/kernels/cpu_rows.py`
MOST_EDGES = 0.6  # share of the edges that the nodes of such a batch may have, as there
SKEW = 1.5  # how often a node of an edge drawn at random is named, against an average one; fits logs by power laws


@dataclass(frozen=True)
class Rates:
    """Seconds, each per unit of what stands behind it in the formula."""

    name: str  # of the device they were measured on
    source: str  # of the measurements
    memory_bytes: int  # of that device; 0 on CPU
    cache_bytes: int  # that hold rows which propagation reads
    launch: float
    stream: float
    layer: float
    gather: float
    cached: float
    softmax: float
    apart: float  # of the time of a step, a number
    draw: float


OF_PROPAGATION = ("launch", "stream", "layer", "gather", "cached")
OF_STEPS = (*OF_PROPAGATION, SOFTMAX)
DRAW = "draw"


def work_of(work: Workload, cache_bytes: int) -> dict[str, float]:
    """How much of each kind an epoch has, on one device."""
    edges, numbers, steps = work.interactions, work.numbers, work.steps
    blocks = -(-work.columns // COLUMNS_AT_ONCE[work.device])
    row = BYTES_OF_A_NUMBER[work.device] * work.columns / blocks
    held = sum(min(1.0, cache_bytes / (row * side)) for side in (work.users, work.items)) / 2
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


def rows_apart(work: Workload) -> bool:
    """Whether a step on CPU treats the rows that its batch names apart."""
    return work.device == "cpu" and work.columns >= WIDE and work.layers > 0 and _named_edges(work) < MOST_EDGES


def _named_edges(work: Workload) -> float:
    """Share of the edges whose user, or whose item, a batch names, half each: a user and two items a triple."""
    named = ((work.batch, work.users), (2 * work.batch, work.items))
    return sum(1 - math.exp(-SKEW * rows / side) for rows, side in named) / 2


def seconds_per_epoch(work: Workload, rates: Rates) -> float:
    """Without validation, and without what several devices tell each other."""
    rest, propagation = _rest_and_propagation(work, rates)
    return rest + propagation * (rates.apart if rows_apart(work) else 1.0)


def _rest_and_propagation(work: Workload, rates: Rates) -> tuple[float, float]:
    """Seconds of an epoch; those of propagation over all rows."""
    taken = {kind: amount * getattr(rates, kind) for kind, amount in work_of(work, rates.cache_bytes).items()}
    propagation = sum(taken[kind] for kind in OF_PROPAGATION)
    columns = work.columns // COLUMNS_AT_ONCE[work.device] * COLUMNS_AT_ONCE[work.device]
    if 0 < columns < work.columns:  # a block more has narrower rows, of which a cache holds more; that is no gain
        whole_blocks = replace(work, embedding_size=columns, devices=1)
        propagation = max(propagation, _rest_and_propagation(whole_blocks, rates)[1])
    return taken[SOFTMAX] + taken[DRAW], propagation


class Measured(NamedTuple):
    """An epoch that was measured."""

    work: Workload
    seconds: float
    drawing: float  # of these


def fitted(measured: Sequence[Measured], hardware: dict[str, Any], source: str) -> Rates:
    """Rates that are nowhere negative and make the relative errors of the steps small, with the cache that does so."""
    whole = [one for one in measured if not rows_apart(one.work)]
    cache_bytes = min(CACHE_BYTES[measured[0].work.device], key=lambda size: _fit_of_steps(whole, size)[1])
    rates = Rates(
        name=str(hardware.get("gpu") or f"{hardware['cores']} cores of {hardware['cpu']}"),
        source=source,
        memory_bytes=round(hardware.get("gpu_memory_gib", 0.0) * 2**30),
        cache_bytes=cache_bytes,
        **_fit_of_steps(whole, cache_bytes)[0],
        apart=1.0,
        draw=float(np.median([one.drawing / one.work.interactions for one in measured])),
    )
    apart = [_share_of_propagation(one, rates) for one in measured if rows_apart(one.work)]
    return replace(rates, apart=float(np.median(apart))) if apart else rates


def _share_of_propagation(one: Measured, rates: Rates) -> float:
    """That it took, of what it takes over all rows."""
    rest, propagation = _rest_and_propagation(one.work, rates)
    drawing = one.work.interactions * rates.draw
    return (one.seconds - one.drawing - (rest - drawing)) / propagation


def _fit_of_steps(measured: Sequence[Measured], cache_bytes: int) -> tuple[dict[str, float], float]:
    """The rates of steps with such a cache, and the error that is left."""
    from scipy.optimize import nnls

    amounts = np.array([[work_of(one.work, cache_bytes)[kind] for kind in OF_STEPS] for one in measured])
    relative = amounts / np.array([one.seconds - one.drawing for one in measured])[:, None]
    scale = np.where(relative.max(axis=0) > 0, relative.max(axis=0), 1.0)
    found, error = nnls(relative / scale, np.ones(len(measured)))
    return dict(zip(OF_STEPS, map(float, found / scale), strict=True)), float(error)


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
