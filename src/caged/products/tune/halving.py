"""Pruning by successive halving: a trial that is behind others of its method ends early.

The rungs are an eighth, a quarter and a half of the cap on epochs, all stages together, for every method. At a rung a
trial goes on if it is among the better half of those that reached it, itself included: of the trials that it may know
(`turns.known_to`), so the first few are never pruned, and nothing depends on who is quick. Compared is what each had
reached by then, at its best epoch so far, in the order of the search's goal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caged.products.tune.objective import Goal, Metrics

KEPT = 2  # one in so many goes on
PARTS = (8, 4, 2)  # of the cap, for the rungs
DIGITS = 7  # significant ones of a recorded value, and so of a compared one


def rungs(cap: int) -> list[int]:
    """The epochs after which trials are compared.

    >>> rungs(200), rungs(5)
    ([25, 50, 100], [1, 2])
    """
    return sorted({cap // part for part in PARTS} - {0})


@dataclass
class Curve:
    """What a trial reached on validation, by epoch; an observer of training. Epochs count through all stages."""

    monitor: str  # which of the metrics decides the epoch
    keys: Sequence[str]
    total: int = 0
    epochs: list[int] = field(default_factory=list)  # that were validated
    values: dict[str, list[float | None]] = field(default_factory=dict)

    def epoch(self, line: dict[str, Any], /) -> None:
        self.total += 1
        if line["validation"] is not None:
            self.epochs.append(self.total)
            for key in self.keys:
                self.values.setdefault(key, []).append(_short(line["validation"][key]))

    def to_json(self) -> dict[str, Any]:
        return {"monitor": self.monitor, "total": self.total, "epochs": self.epochs, "values": self.values}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Curve:
        values = dict(found["values"])
        return cls(found["monitor"], list(values), found["total"], list(found["epochs"]), values)

    @property
    def best_epoch(self) -> int:
        """Counted through all stages; 0 where none was validated."""
        place = self._best(self.epochs)
        return 0 if place is None else self.epochs[place]

    def best_until(self, epoch: int) -> dict[str, float | None] | None:
        """At the best of the epochs until then, the first of equals; None where none was validated."""
        place = self._best([at for at in self.epochs if at <= epoch])
        return None if place is None else {key: values[place] for key, values in self.values.items()}

    def _best(self, epochs: Sequence[int]) -> int | None:
        """The place of the best of the first `epochs`."""
        judged = [-math.inf if value is None else value for value in self.values.get(self.monitor, ())[: len(epochs)]]
        return judged.index(max(judged)) if judged else None


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Compared:
    """A trial that others are compared with: its curve, and after how many epochs it was pruned (None: never)."""

    curve: Curve
    pruned_after: int | None = None

    def at(self, rung: int) -> Metrics | None:
        """None where it did not get there; what ended by itself before had reached what it had."""
        return None if self.pruned_after is not None and self.pruned_after < rung else self.curve.best_until(rung)


@dataclass(frozen=True)
class Rung:
    epoch: int
    others: tuple[Metrics, ...]  # what those reached that got here

    def goes_on(self, own: Metrics, goal: Goal) -> bool:
        """Of equals, everyone does.

        >>> from caged.products.tune.objective import Objective
        >>> rung = Rung(25, ({"recall@20": 0.3}, {"recall@20": 0.2}, {"recall@20": 0.1}))
        >>> goal = Goal(Objective("recall@20"))
        >>> [rung.goes_on({"recall@20": value}, goal) for value in (0.25, 0.2, 0.15)]
        [True, True, False]
        """
        better = sum(goal.order(other) > goal.order(own) for other in self.others)
        return better < math.ceil((len(self.others) + 1) / KEPT)


class Pruned(Exception):  # noqa: N818 - not an error
    def __init__(self, rung: Rung) -> None:
        super().__init__(f"after {rung.epoch} epochs it was not in the better half of {len(rung.others) + 1} trials")


@dataclass(frozen=True)
class Ladder:
    """The rungs of one trial; without others to compare with, there are none."""

    goal: Goal
    rungs: tuple[Rung, ...] = ()

    @classmethod
    def against(cls, known: Sequence[Compared], goal: Goal, cap: int) -> Ladder:
        found = []
        for epoch in rungs(cap):
            reached = tuple(metrics for other in known if (metrics := other.at(epoch)) is not None)
            found.append(Rung(epoch, reached))
        return cls(goal, tuple(rung for rung in found if rung.others))

    def falls_at(self, curve: Curve) -> Rung | None:
        """Where a whole curve would have been cut off."""
        return next((rung for rung in self.rungs if rung.epoch <= curve.total and not self._passed(rung, curve)), None)

    def check(self, curve: Curve) -> None:
        """Raise `Pruned` where the epoch that just ended is a rung that the trial does not pass."""
        for rung in self.rungs:
            if rung.epoch == curve.total and not self._passed(rung, curve):
                raise Pruned(rung)

    def _passed(self, rung: Rung, curve: Curve) -> bool:
        own = curve.best_until(rung.epoch)
        return own is None or rung.goes_on(own, self.goal)


@dataclass(frozen=True)
class Climb:
    """An observer that ends a training at the rung where it falls; `curve` has to be told of an epoch before."""

    ladder: Ladder
    curve: Curve

    def epoch(self, line: object, /) -> None:
        self.ladder.check(self.curve)
