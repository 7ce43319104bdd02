"""What fits into the time and the memory: which methods are tried, and for how many epochs at most.

A few epochs of each trained method are timed first. The cap on epochs, the same for all, is as high as one training of
each and a refit of the slowest allow. What fits nowhere is left out, and a note says why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from caged.errors import CagedError
from caged.evaluation.adjust.choice import GRID
from caged.models import display_name
from caged.models.ease import EASEConfig, ease_weights, needed_bytes
from caged.models.item_item import GIB
from caged.products.best.clock import Clock, EpochsOf
from caged.products.best.shortlist import BASELINE, BESTSELLERS, LINEAR, NEIGHBOURS, TRAINED
from caged.products.best.wish import Wish
from caged.products.tune import SearchData, run_trial
from caged.runs.environment import set_threads
from caged.seeding import numpy_generator
from caged.threads import threads
from caged.training import Interrupted

LEAST_EPOCHS = 10  # fewer say nothing about a method
TIMED_EPOCHS = 3  # the first also warms up
TIMED_PAIRS = 200_000  # at most: an epoch of a large log may take longer than there is time
TIMED_ITEMS = 1000
SHORTEST = 1e-6  # seconds of an epoch, where a clock sees none
HEADROOM = 0.8  # of the time to search; the rest is for a machine that gets slower
SHARE_OF_MEMORY = 0.5  # of what is free, for the linear model
SHARE_OF_TIME = 0.2  # of the budget, for a trial and the refit of a linear model


@dataclass(frozen=True)
class Plan:
    methods: tuple[str, ...]
    epochs: int  # of a training, at most
    seconds_per_epoch: dict[str, float]
    refit_factor: float  # how much longer an epoch takes on the whole log
    notes: tuple[str, ...]
    seconds: float  # that planning took
    threads: int | None = None  # of torch; None: as it was
    validation: float = 0.0  # seconds to measure a model on validation

    @property
    def adjusting(self) -> float:
        """Seconds to take popularity out of a model of each method, if every strength is tried."""
        return (len(self.methods) - 1) * len(GRID) * self.validation

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Plan:
        return cls(**{**values, "methods": tuple(values["methods"]), "notes": tuple(values["notes"])})


def make_plan(wish: Wish, data: SearchData, pairs: int, device: torch.device, clock: Clock) -> Plan:
    """`pairs` are those of the whole log, which the last training learns from."""
    before = clock.elapsed
    linear, notes = _linear(data, wish, device)
    factor = _growth(pairs, len(data.train))
    timing = _Timing(wish, data, device, clock)
    count = timing.faster_threads()
    set_threads(count)
    timed: dict[str, float] = {}
    for method in TRAINED:
        try:
            timed[method] = timing.epoch(method)
        except CagedError as error:  # memory, or a log that it cannot be trained on
            notes.append(f"{display_name(method)} is left out: {error}")
    trained, epochs = _trained(timed, factor, HEADROOM * clock.to_search, wish.epochs, notes)
    return Plan(
        methods=(BESTSELLERS, linear, *trained),
        epochs=epochs,
        seconds_per_epoch={method: timed[method] for method in trained},
        refit_factor=factor,
        notes=tuple(notes),
        seconds=clock.elapsed - before,
        threads=count,
        validation=timing.validation,
    )


def _growth(pairs: int, timed: int) -> float:
    """How much longer an epoch of `pairs` takes than one of `timed`. There are as many steps as batches of pairs; and
    in a large log a step takes longer the more pairs it passes over, in a small one the batch is what takes time."""
    return (pairs / timed) ** (2 if pairs > TIMED_PAIRS else 1)


def _trained(
    timed: Mapping[str, float], factor: float, seconds: float, most: int, notes: list[str]
) -> tuple[list[str], int]:
    """The methods that fit, in the order of the list, and the cap on their epochs."""
    methods = [method for method in TRAINED if method in timed]
    least = min(LEAST_EPOCHS, most)
    while methods:
        slowest = max(methods, key=timed.__getitem__)
        per_epoch = sum(timed[method] for method in methods) + factor * timed[slowest]
        epochs = min(most, int(max(seconds, 0.0) / per_epoch))
        if epochs >= least:
            return methods, epochs
        needed = (least * per_epoch) / 60
        notes.append(
            f"{display_name(slowest)} is left out: an epoch takes about {timed[slowest]:.1f} s, so {least} epochs of "
            f"it, its refit and the others need {needed:.1f} minutes, and {max(seconds, 0.0) / 60:.1f} are left; give "
            "more --minutes"
        )
        methods.remove(slowest)
    return [], 0


@dataclass(frozen=True, eq=False)
class _Timing:
    wish: Wish
    data: SearchData
    device: torch.device
    clock: Clock
    validations: list[float] = field(default_factory=list)

    @property
    def validation(self) -> float:
        return min(self.validations, default=0.0)

    def epoch(self, method: str, within: float = math.inf) -> float:
        """Seconds: the fastest of a few epochs. Of a large log on some of its pairs, scaled as the cost of an epoch
        grows. `within` are the seconds after which it no longer matters."""
        sample, scale, pairs = self.data, 1.0, len(self.data.train)
        if pairs > TIMED_PAIRS:
            drawn = numpy_generator(self.wish.seed, "timing").permutation(pairs)[:TIMED_PAIRS]
            sample = replace(self.data, train=self.data.train.select(np.sort(drawn)))
            scale = _growth(pairs, TIMED_PAIRS)
        watch = EpochsOf(self.clock, f"timing {display_name(method)}")
        self.clock.tell(watch.what)
        begun = self.clock.elapsed
        with suppress(Interrupted):
            run_trial(
                self.wish.spec(method, epochs=min(TIMED_EPOCHS, self.wish.epochs)),
                sample,
                self.device,
                [self.data.k],
                observers=(watch,),
                stop_requested=lambda: self.clock.elapsed - begun > within,
            )
        self.validations.extend(watch.validation)
        return max(min(watch.seconds) * scale, SHORTEST)

    def faster_threads(self) -> int | None:
        """One, or as many as torch would take: on a busy machine, or for a small log, threads wait for each other."""
        several = torch.get_num_threads()
        if self.wish.threads is not None or self.device.type != "cpu" or several == 1:
            return None
        begun = self.clock.elapsed
        with threads(1):
            one = self.epoch(BASELINE)
        return several if self.epoch(BASELINE, within=self.clock.elapsed - begun) < one else 1


# ---------------------------------------------------------------- the linear model


def _linear(data: SearchData, wish: Wish, device: torch.device) -> tuple[str, list[str]]:
    """EASE, or its stand-in where the catalogue is too large for it."""
    reason = _too_large(data.train.item_count, wish, device)
    if reason is None:
        return LINEAR, []
    return NEIGHBOURS, [f"{display_name(LINEAR)} is left out and {display_name(NEIGHBOURS)} stands in: {reason}"]


def _too_large(items: int, wish: Wish, device: torch.device) -> str | None:
    config = EASEConfig()
    needed, free = needed_bytes(items, config.precision), _free_memory(device)
    allowed = min(config.memory_gib * GIB, SHARE_OF_MEMORY * free)
    if needed > allowed:
        return f"it needs {needed / GIB:.1f} GiB for {items:,} items, and {allowed / GIB:.1f} are allowed here"
    seconds = 2 * _ease_seconds(items, device)
    if seconds > SHARE_OF_TIME * 60 * wish.minutes:
        return f"a training and a refit on {items:,} items would take about {seconds / 60:.1f} minutes"
    return None


def _ease_seconds(items: int, device: torch.device) -> float:
    """From a small one: time grows with the third power of the items."""
    small = min(items, TIMED_ITEMS)
    gram = torch.eye(small, dtype=torch.float64, device=device)
    begun = time.perf_counter()
    float(ease_weights(gram, 1.0).sum())  # a number that the host waits for
    return (time.perf_counter() - begun) * (items / small) ** 3


def _free_memory(device: torch.device) -> float:
    """Bytes; endless where nobody says."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return float("inf")
