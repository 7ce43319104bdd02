"""The time there is, and how far it has run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from caged.progress import ProgressReport, unreported

# For the test, the pages and the model: a share of the budget, and some seconds at least where that is not most of it.
# What a refit takes is reserved apart.
FINISHING, LEAST_FINISHING, MOST_FINISHING = 0.05, 10.0, 0.25


@dataclass(eq=False)
class Clock:
    """`spent` are the seconds of the processes before, where a search goes on."""

    budget: float
    spent: float = 0.0
    report: ProgressReport = unreported
    now: Callable[[], float] = time.monotonic
    _begun: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._begun = self.now()

    @property
    def elapsed(self) -> float:
        return self.spent + self.now() - self._begun

    @property
    def left(self) -> float:
        return self.budget - self.elapsed

    @property
    def to_search(self) -> float:
        """What is left before the end has to begin; a refit comes on top of that end."""
        return self.left - min(max(FINISHING * self.budget, LEAST_FINISHING), MOST_FINISHING * self.budget)

    def tell(self, what: str) -> None:
        """One line for the whole command, so that the time left is that of the command."""
        self.report(f"best: {what}", min(self.elapsed / self.budget, 1.0))


class EpochsOf:
    """An observer of training: tells about its epochs, and knows how long they took."""

    def __init__(self, clock: Clock, what: str) -> None:
        self.clock, self.what = clock, what
        self.seconds: list[float] = []
        self.validation: list[float] = []  # of the same epochs

    def epoch(self, line: dict[str, Any]) -> None:
        self.seconds.append(sum(line["seconds"].values()))
        self.validation.append(line["seconds"].get("validate", 0.0))
        reached = "" if line["best"] is None else f", best {line['best']:.4f}"
        self.clock.tell(f"{self.what}, epoch {line['epoch']}/{line['epochs']}{reached}")
