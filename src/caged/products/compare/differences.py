"""One method against the baseline: differences with their intervals, tests over users and over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from caged.data.ids import Array
from caged.errors import DataError
from caged.evaluation.bootstrap import Interval
from caged.evaluation.metrics import MetricKey
from caged.evaluation.pooled_difference import PooledDifference, pooled_differences
from caged.evaluation.significance import (
    LEVEL,
    PairedTest,
    SeedTest,
    holm,
    paired_intervals,
    paired_seed_test,
    paired_test,
    welch_test,
)
from caged.products.compare.entries import UserValues, averaged
from caged.products.compare.groups import Group, kind_of_test, split_of

Verdict = Literal["better", "worse", "higher", "lower", "unclear", "untested"]


@dataclass(frozen=True)
class Difference:
    """One method against the baseline in one metric. `users` is None where the metric has no value per user."""

    method: str
    metric: MetricKey
    baseline_value: float
    value: float
    difference: float  # over the users with a value in both, where there are values per user
    relative_change: float  # percent of the baseline
    interval: Interval | None
    users: int | None
    lost: tuple[int, int]  # users with a value in the baseline only, in the method only
    over_users: PairedTest | None
    over_seeds: SeedTest | None
    p_t_adjusted: float = math.nan
    p_wilcoxon_adjusted: float = math.nan
    p_seeds_adjusted: float = math.nan

    @property
    def verdict(self) -> Verdict:
        """By the adjusted p; `better` and `worse` are said of seeds only, one run supports `higher` and `lower`."""
        p = self.p_seeds_adjusted if self.over_seeds else self.p_t_adjusted
        if math.isnan(p):
            return "untested"
        if p >= LEVEL or self.difference == 0:
            return "unclear"
        rises = self.difference > 0
        direction = self.metric.metric.direction
        if self.over_seeds is None or direction not in ("up", "down"):
            return "higher" if rises else "lower"
        return "better" if rises == (direction == "up") else "worse"

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "lost": {"baseline": self.lost[0], "method": self.lost[1]},
            "interval": None if self.interval is None else self.interval._asdict(),
            "over_users": None if self.over_users is None else self.over_users._asdict(),
            "over_seeds": None if self.over_seeds is None else self.over_seeds._asdict(),
            "verdict": self.verdict,
        }


def differences(
    base: Group, others: Sequence[Group], keys: Sequence[MetricKey], *, one_split: bool
) -> list[Difference]:
    """One per method and metric; `one_split`: users can be paired."""
    of_base = _of_group(base, keys) if one_split else None
    return [one for group in others for one in _against(base, of_base, group, keys, one_split=one_split)]


def value_intervals(group: Group, keys: Sequence[MetricKey]) -> list[Interval | None]:
    """95% intervals of the values themselves over the choice of users; None where users have no value of a key."""
    stored = _of_group(group, keys)
    if stored is None:
        return [None] * len(keys)
    return paired_intervals(np.where(np.isnan(stored.values), np.nan, 0.0), stored.values)


def _against(
    base: Group, of_base: UserValues | None, group: Group, keys: Sequence[MetricKey], *, one_split: bool
) -> list[Difference]:
    of_group = None if of_base is None else _of_group(group, keys)
    paired = None if of_base is None or of_group is None else _Paired.of(of_base, of_group)
    pooled = _pooled(base, group, keys) if one_split else {}
    intervals = [None] * len(keys) if paired is None else paired_intervals(paired.a, paired.b)
    return [
        _of_pooled(one, pooled[one.metric]) if one.metric in pooled else one
        for column, key in enumerate(keys)
        for one in [_difference(base, group, key, paired, column, intervals[column])]
    ]


@dataclass(frozen=True, eq=False)
class _Paired:
    """Values of the users of both sides, one row per user and a column per metric."""

    a: Array
    b: Array
    defined: tuple[Array, Array]  # users with a value on each side, whether the other knows them or not

    @classmethod
    def of(cls, one: UserValues, other: UserValues) -> _Paired:
        rows, places = one.users.shared_with(other.users)
        counts = [np.count_nonzero(~np.isnan(side.values), axis=0) for side in (one, other)]
        return cls(one.values[rows], other.values[places], (counts[0], counts[1]))


def _of_group(group: Group, keys: Sequence[MetricKey]) -> UserValues | None:
    """None where a run has no values per user."""
    if not all(entry.has_users for entry in group.entries):
        return None
    return averaged([entry.values_of(keys) for entry in group.entries])


def _difference(
    base: Group, group: Group, key: MetricKey, paired: _Paired | None, column: int, interval: Interval | None
) -> Difference:
    before, after = base.mean(key), group.mean(key)
    over_users, lost = _over_users(base, group, key, paired, column)
    tested = kind_of_test(base, group)
    return Difference(
        method=group.name,
        metric=key,
        baseline_value=before,
        value=after,
        difference=after - before if over_users is None else over_users.mean_difference,
        relative_change=_percent(after - before, before) if over_users is None else over_users.relative_change,
        interval=interval,
        users=None if over_users is None else over_users.users,
        lost=lost,
        over_users=over_users if tested else None,
        over_seeds=_over_seeds(base, group, key) if tested == "seeds" else None,
    )


def _pooled(base: Group, group: Group, keys: Sequence[MetricKey]) -> dict[MetricKey, PooledDifference]:
    """Runs of a method are averaged; nothing where one of them does not store what each user adds."""
    if not all(entry.has_sums for entry in (*base.entries, *group.entries)):
        return {}
    before, after = ([entry.stored_users for entry in side.entries] for side in (base, group))
    return pooled_differences(before, after, keys)


def _of_pooled(one: Difference, found: PooledDifference) -> Difference:
    change = _percent(found.difference, one.baseline_value)
    return replace(one, difference=found.difference, relative_change=change, interval=found.interval)


def _over_users(
    base: Group, group: Group, key: str, paired: _Paired | None, column: int
) -> tuple[PairedTest | None, tuple[int, int]]:
    """The paired test, and how many users of either side it leaves out; None without values per user."""
    if paired is None or 0 in (known := [int(side[column]) for side in paired.defined]):
        return None, (0, 0)
    found = paired_test(paired.a[:, column], paired.b[:, column])
    if found.users == 0:
        raise DataError(
            f"{base.name} and {group.name} have no user in common with a value of {key}, so they cannot be compared; "
            "make lists for the same users"
        )
    return found, (known[0] - found.users, known[1] - found.users)


def _over_seeds(base: Group, group: Group, key: str) -> SeedTest:
    if len(set(base.splits)) == 1 or set(base.splits) != set(group.splits):
        return welch_test(base.values(key), group.values(key))
    by_split = {split_of(entry): entry.metrics[key] for entry in group.entries}
    return paired_seed_test(base.values(key), [by_split[split] for split in base.splits])


def _percent(difference: float, before: float) -> float:
    return 100 * difference / before if before else math.nan


def adjusted(found: Sequence[Difference]) -> list[Difference]:
    """With Holm's correction over all tests of one kind."""
    p_t, p_wilcoxon = (
        holm([getattr(one.over_users, name) if one.over_users else math.nan for one in found])
        for name in ("p_t", "p_wilcoxon")
    )
    p_seeds = holm([one.over_seeds.p if one.over_seeds else math.nan for one in found])
    return [
        replace(one, p_t_adjusted=t, p_wilcoxon_adjusted=w, p_seeds_adjusted=s)
        for one, t, w, s in zip(found, p_t, p_wilcoxon, p_seeds, strict=True)
    ]
