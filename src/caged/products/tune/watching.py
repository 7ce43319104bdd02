"""How far a search has come, as its progress line says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from caged.products.tune.crew import Turn
from caged.progress import EpochProgress, ProgressReport


@dataclass(frozen=True)
class TurnProgress:
    """Of one worker, the epochs of what it does; of several, how many turns are over."""

    report: ProgressReport
    name: Callable[[Turn], str]
    over: Callable[[], tuple[int, int]]  # turns that are, and all
    side_by_side: bool

    def begin(self, turn: Turn) -> None:
        if self.side_by_side:
            self._tell(self.name(turn))
        else:
            self.report(self.name(turn), None)

    def __call__(self, turn: Turn, line: dict[str, Any], /) -> None:
        if self.side_by_side:
            self._tell(f"{self.name(turn)} at epoch {line['epoch']}")
        else:
            EpochProgress(self.report, self.name(turn)).epoch(line)

    def _tell(self, what: str) -> None:
        over, every = self.over()
        self.report(f"search: {over} of {every} done, {what}", over / every)
