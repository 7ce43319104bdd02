"""A plan: what a training needs, whether it fits, and what to change if it does not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from caged.runs.planning.inventory import PROGRAM, TEST, Inventory, bytes_of, inventory, of_final_test
from caged.runs.planning.pace import Rates, rates_of, seconds_per_epoch
from caged.runs.planning.sent import sent_in_a_step
from caged.runs.planning.workload import BY_COLUMNS, PER_EDGE, Workload

MOST_ADVISED = 64  # devices
SHORT_LISTS = 20  # as long as the metrics read
FEW_USERS = 10_000  # whom a validation may be for
NARROWEST = 8  # columns below which nobody would want to train
GIB = 2**30


@dataclass(frozen=True)
class Plan:
    """Predictions for one device of the workload, and the memory that it has."""

    work: Workload
    needed: Inventory
    seconds: float  # per epoch, without validation
    rates: Rates
    memory_bytes: int  # of one device

    @property
    def fits(self) -> bool:
        return self.needed.peak <= self.memory_bytes

    @property
    def host_bytes(self) -> int:
        """Of the machine's memory, for a final test after training on a GPU; 0 where there is none."""
        test = bytes_of(of_final_test(self.work))
        return round(PROGRAM + test) if test else 0

    @property
    def message_bytes(self) -> int:
        """What a device sends per step."""
        work = self.work
        return round(sent_in_a_step(work.method, work.batch, work.embedding_size, work.devices))

    @property
    def advice(self) -> list[str]:
        """What would make it fit, the smallest change of each kind."""
        return [] if self.fits else _advice(self)

    @property
    def notes(self) -> list[str]:
        said = []
        if self.needed.in_tensors is not None:
            said.append(
                f"the memory is what torch takes from the device: tensors of up to {gib(self.needed.in_tensors)}, and "
                f"free blocks that it keeps"
            )
        if self.work.device == "cuda" and self.host_bytes:
            said.append(
                f"the final test keeps lists of {self.work.list_length} items for {self.work.tested_users:,} users in "
                f"the memory of the machine, which needs about {gib(self.host_bytes)} of it"
            )
        if self.work.device == "cpu":
            said.append(f"processors differ more than GPUs of one kind do: the time is that of {self.rates.name}")
        if self.work.method in PER_EDGE:
            said.append(
                f"{self.work.method} holds more beside its weights per interaction, and its epochs take longer: both "
                f"numbers are a lower bound"
            )
        if self.message_bytes:
            said.append(f"the time is that of computing; each device also sends {self.message_bytes:,} bytes per step")
        return said

    def to_json(self) -> dict[str, Any]:
        return {
            "workload": {**asdict(self.work), "batch_size": self.work.batch, "steps": self.work.steps},
            "memory_bytes": {
                "predicted": self.needed.peak,
                "in_tensors": self.needed.in_tensors,
                "available": self.memory_bytes,
                "host": self.host_bytes if self.work.device == "cuda" else None,
                "peak_phase": self.needed.peak_phase,
                "allocations": [
                    {"name": one.name, "bytes": round(one.bytes), "when": one.when} for one in self.needed.at_peak
                ],
            },
            "fits": self.fits,
            "seconds_per_epoch": self.seconds,
            "rates": {"device": self.rates.name, "source": self.rates.source},
            "bytes_sent_per_step": self.message_bytes,
            "advice": self.advice,
            "notes": self.notes,
        }


def plan(work: Workload, memory_bytes: int | None = None) -> Plan:
    """`memory_bytes` is what one device has; by default that of the device whose rates are used."""
    rates = rates_of(work.device)
    return Plan(work, inventory(work), seconds_per_epoch(work, rates), rates, memory_bytes or rates.memory_bytes)


def _advice(asked: Plan) -> list[str]:
    found = list(_changes(asked))
    if any("embedding_size" in one for one in found):
        return found
    last = "leave out rare users and items (caged data import --k-core), or use devices with more memory"
    if not found:
        least = inventory(replace(asked.work, embedding_size=asked.work.devices)).peak
        last = f"even with one column per device it takes {gib(least)}, so {last}"
    return [*found, last]


def _changes(asked: Plan) -> Iterator[str]:
    """Changes of the training that are enough, each by itself."""
    work, memory = asked.work, asked.memory_bytes

    def needed(**changed: Any) -> int:
        return inventory(replace(work, **changed)).peak

    def fitting(**changed: Any) -> bool:
        return needed(**changed) <= memory

    columns = work.embedding_size
    if work.device == "cuda" and work.method in BY_COLUMNS:
        counts = [2**power for power in range(1, 7) if work.devices < 2**power <= min(MOST_ADVISED, columns)]
        enough = next((count for count in counts if fitting(devices=count)), None)
        if enough is not None:
            yield f"use --devices {enough}: {gib(needed(devices=enough))} each"
    narrowest = -(-work.devices // NARROWEST) * NARROWEST  # a column for every device
    narrower = _widest(memory, range(narrowest, columns, NARROWEST), lambda k: needed(embedding_size=k))
    if narrower is not None:
        yield f"use {narrower} columns (method.embedding_size={narrower}): {gib(needed(embedding_size=narrower))}"
    if work.validated and (work.validation_users or work.users) > FEW_USERS and fitting(validation_users=FEW_USERS):
        yield f"validate on some users (train.validation_users={FEW_USERS}): {gib(needed(validation_users=FEW_USERS))}"
    elif work.validated and fitting(validated=False):
        yield f"train without validation (--no-validation): {gib(needed(validated=False))}"
    if asked.needed.peak_phase == TEST and work.list_length > SHORT_LISTS and fitting(list_length=SHORT_LISTS):
        yield f"store shorter lists (eval.list_length={SHORT_LISTS}): {gib(needed(list_length=SHORT_LISTS))}"


def _widest(memory: int, widths: range, needed: Callable[[int], int]) -> int | None:
    """The last of the widths that fits; memory grows with the width, and there may be billions of them."""
    fitting = bisect_right(widths, memory, key=needed)
    return widths[fitting - 1] if fitting else None


def gib(count: float) -> str:
    """
    >>> gib(3 * 2**29)
    '1.5 GiB'
    """
    return f"{count / GIB:.1f} GiB" if count >= GIB / 10 else f"{count / 2**20:.0f} MiB"
