"""Early stopping as a small state machine."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class EarlyStopping:
    """Remembers the best value; `patience` validations in a row without a strict improvement end a stage.

    >>> stop = EarlyStopping(patience=2)
    >>> [stop.update(epoch, value) for epoch, value in enumerate([0.1, 0.2, 0.2, 0.1], start=1)]
    [True, True, False, False]
    >>> stop.exhausted, stop.best, stop.best_epoch
    (True, 0.2, 2)
    """

    patience: int | None  # None: never stop early
    best: float = -math.inf
    best_epoch: int = 0
    strikes: int = 0

    def update(self, epoch: int, value: float) -> bool:
        """Take one validation; True if it is strictly better than all before."""
        improved = value > self.best
        if improved:
            self.best, self.best_epoch, self.strikes = value, epoch, 0
        else:
            self.strikes += 1
        return improved

    @property
    def exhausted(self) -> bool:
        return self.patience is not None and self.strikes >= self.patience
