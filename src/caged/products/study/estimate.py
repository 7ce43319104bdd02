"""What a run will take, from recorded ones: its like, or others scaled by the work of an epoch; unknown otherwise.

How many epochs a run needs depends on data and settings, so it is taken from records of any device. How long an epoch
takes is taken from records of this one. Runs that were made side by side count with their share of the time: what a
run would have taken alone. Records do not count the start of their process, so each run has it on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from caged.data.known import DATASETS
from caged.errors import RunError
from caged.files import read_json
from caged.products.study.plan import PlannedRun
from caged.products.study.records import other_settings, side_by_side, specification
from caged.runs.planning.workload import auto_batch

Basis = Literal["recorded", "scaled", "unknown"]
STARTING = 3.5  # seconds until a process is at work and after it: 3.0 to 4.2 on two cores
TRAIN_SHARE = {"honest": 0.7, "paper": 0.8}  # of the interactions of a dataset that nobody has trained on yet


@dataclass(frozen=True)
class Estimate:
    seconds: float | None = None
    memory: float | None = None  # GiB of the process
    device_memory: float | None = None  # GiB
    basis: Basis = "unknown"  # of the seconds


@dataclass(frozen=True)
class Known:
    """A finished run, as far as its cost goes."""

    data: str
    protocol: str
    folder: str  # method and variant
    method: str
    adjusted: bool
    device: str
    seconds: float
    training: float  # of them, in epochs
    epochs: int
    most_epochs: int  # that its settings allowed
    interactions: int
    work: float  # of an epoch; see `work_of`
    config: Mapping[str, Mapping[str, Any]]
    memory: Mapping[str, float]

    @property
    def ended_itself(self) -> bool:
        return self.epochs < self.most_epochs

    @classmethod
    def read(cls, path: Path) -> Known | None:
        """None where the file is no record of a finished run: estimates do not need each of them."""
        try:
            content = read_json(path)
            if content["status"] != "finished":
                return None
            spec, interactions = content["spec"], content["dataset"]["interactions"]["train"]
            seconds, shared = content["seconds"], side_by_side(content)
            return cls(
                data=content["dataset"]["name"],
                protocol=spec["protocol"],
                folder=path.parent.name,
                method=spec["method"],
                adjusted=content.get("adjustment") is not None,
                device=content["hardware"]["device"],
                seconds=float(seconds["total"]) / shared,
                training=float(seconds.get("train", seconds["total"])) / shared,
                epochs=int((content.get("training") or {}).get("epochs") or 0),
                most_epochs=spec["config"]["train"]["epochs"],
                interactions=interactions,
                work=work_of(spec["config"], interactions),
                config=spec["config"],
                memory=content.get("memory") or {},
            )
        except (RunError, KeyError, TypeError, AttributeError, ValueError, ArithmeticError):
            return None


def _apart(first: float, second: float) -> float:
    """0 for equal ones."""
    return abs(math.log(first / second))


def work_of(config: Mapping[str, Mapping[str, Any]], interactions: int) -> float:
    """Of an epoch, in products of a weight and a number: every step propagates over all interactions."""
    method, batch = config["method"], config["train"]["batch_size"]
    steps = math.ceil(interactions / (auto_batch(interactions) if isinstance(batch, str) else batch))
    return float(steps * interactions * method.get("embedding_size", 1) * max(method.get("layers", 1), 1))


class Estimator:
    def __init__(self, known: Iterable[Known], device: str) -> None:
        self._known, self._device = list(known), device

    @classmethod
    def from_records(cls, roots: Iterable[Path], device: str) -> Estimator:
        files = dict.fromkeys(path.resolve() for root in roots for path in sorted(root.glob("*/*/*/seed*.json")))
        return cls([known for known in map(Known.read, files) if known is not None], device)

    def __call__(self, run: PlannedRun) -> Estimate:
        device = self._device if run.device == "auto" else run.device
        here = [known for known in self._known if known.device == device and known.data == run.source]
        same_place = [known for known in here if (known.protocol, known.folder) == (run.protocol, run.folder_name)]
        alike = [known for known in same_place if other_settings(run.training, known.config) is None]
        if alike:
            return _estimate(median(known.seconds for known in alike), alike, "recorded")
        similar = [known for known in here if known.method == run.method and known.adjusted == (run.kind == "adjust")]
        has_epochs = run.kind == "train" and (not similar or any(known.epochs for known in similar))
        seconds = self._scaled(run, device, similar) if has_epochs else _median(similar)
        return _estimate(seconds, similar, "unknown" if seconds is None else "scaled")

    def _scaled(self, run: PlannedRun, device: str, similar: list[Known]) -> float | None:
        """Epochs times seconds per epoch, and what is around them; None where either is not known or there are none."""
        trained = [known for known in self._known if known.epochs and not known.adjusted]
        epochs = self._epochs(run, trained)
        nearby = [known for known in similar if known.epochs] or [
            known for known in trained if (known.method, known.device) == (run.method, device)
        ]
        config, interactions = specification(run).to_json()["config"], self._interactions(run)
        if epochs is None or interactions is None or not nearby:
            return None
        work = work_of(config, interactions)
        nearest = min(_apart(known.work, work) for known in nearby)
        nearest_ones = [known for known in nearby if _apart(known.work, work) < nearest + 0.01]
        pace = median(known.training / known.epochs / known.work for known in nearest_ones)
        before_and_after = median(known.seconds - known.training for known in nearest_ones)
        return min(epochs, float(config["train"]["epochs"])) * work * pace + before_and_after

    def _epochs(self, run: PlannedRun, trained: list[Known]) -> float | None:
        """Of the records that are most like it, whatever they ran on; those that ended at their limit say little."""
        tests: list[Callable[[Known], bool]] = [
            lambda known: (known.data, known.protocol, known.folder) == (run.source, run.protocol, run.folder_name),
            lambda known: known.ended_itself and (known.data, known.protocol) == (run.source, run.protocol),
            lambda known: known.ended_itself and known.data == run.source,
            lambda known: known.ended_itself,
            lambda known: known.data == run.source,
        ]
        for test in tests:
            found = [known.epochs for known in trained if known.method == run.method and test(known)]
            if found:
                return median(found)
        return None

    def _interactions(self, run: PlannedRun) -> int | None:
        """Of the training part."""
        same = [known for known in self._known if known.data == run.source]
        best = [known.interactions for known in same if known.protocol == run.protocol]
        if best or same:
            return best[0] if best else same[0].interactions
        dataset = DATASETS.get(run.data)
        return None if dataset is None else round(dataset.interactions * TRAIN_SHARE[run.protocol])


def _median(known: list[Known]) -> float | None:
    return median(one.seconds for one in known) if known else None


def _estimate(seconds: float | None, like: list[Known], basis: Basis) -> Estimate:
    """With the most memory that any of those took that say so."""

    def most(key: str) -> float | None:
        return max((known.memory[key] for known in like if key in known.memory), default=None)

    return Estimate(None if seconds is None else seconds + STARTING, most("process_gib"), most("device_gib"), basis)
