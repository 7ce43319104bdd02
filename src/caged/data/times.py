"""Moments as integers: all times of a log are int64 in one unit, the coarsest that holds every one of them exactly.

So a column of whole seconds is epoch seconds, whatever its type, and a column with milliseconds loses none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.errors import DataError

TimeUnit = Literal["s", "ms", "us", "ns"]

TICKS: Mapping[TimeUnit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second, coarsest unit first
NAMES: Mapping[TimeUnit, str] = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

FIRST, LAST = 10**8, 4 * 10**9  # 1973 and 2096 in epoch seconds; no two units share a number for the time between


class Times(NamedTuple):
    values: Array  # int64
    unit: TimeUnit = "s"

    def coarsest(self) -> Times:
        """The same moments in the coarsest unit that needs no fractions.

        >>> Times(np.array([2000, -1500]), "ms").coarsest().unit, Times(np.array([2000]), "ms").coarsest()
        ('ms', Times(values=array([2]), unit='s'))
        """
        for unit, ticks in TICKS.items():
            step = TICKS[self.unit] // ticks
            if step == 1 or not (self.values % step).any():
                return Times(self.values // step, unit)
        raise AssertionError(self.unit)

    def to(self, unit: TimeUnit) -> Times:
        """The same moments in a unit that is as fine or finer."""
        factor = TICKS[unit] // TICKS[self.unit]
        if factor == 1 or len(self.values) == 0:
            return Times(self.values, unit)
        most = np.iinfo(np.int64).max // factor
        furthest = max(int(self.values.max()), -int(self.values.min()))
        if furthest > most:
            raise DataError(
                f"time {furthest} {self.unit} cannot be written in {NAMES[unit]}, which other times need; the furthest "
                f"from 1970 is {most} {self.unit}, remove or repair these rows"
            )
        return Times(self.values * factor, unit)


def finest(units: Sequence[TimeUnit]) -> TimeUnit:
    """
    >>> finest(["s", "us", "ms"])
    'us'
    """
    return max(units, key=TICKS.__getitem__, default="s")


def in_one_unit(parts: Sequence[Times]) -> list[Times]:
    unit = finest([part.unit for part in parts])
    return [part.to(unit) for part in parts]


def units_like(times: Times) -> Counter[TimeUnit]:
    """How many rows look like a count since 1970 in each unit; moments with fractions name their unit themselves.

    >>> units_like(Times(np.array([1_700_000_000, 1_700_000_000_000, 7])))
    Counter({'s': 1, 'ms': 1})
    """
    found: Counter[TimeUnit] = Counter()
    if times.unit == "s":
        for unit, ticks in TICKS.items():
            among = (times.values >= FIRST * ticks) & (times.values < LAST * ticks)
            found[unit] = int(np.count_nonzero(among))
    return +found


def mixed_units(column: str, rows: Mapping[TimeUnit, int]) -> tuple[str, ...]:
    """The note about a column of times in several units, where it is one."""
    if len(rows) < 2:
        return ()
    counted = " and ".join(f"{rows[unit]:,} rows like {NAMES[unit]}" for unit in TICKS if unit in rows)
    return (
        f"column '{column}' mixes units: {counted} since 1970; across them nothing is in order of time, so splits by "
        f"time and the latest of duplicates are wrong until all rows are written in one unit",
    )
