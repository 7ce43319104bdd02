"""Differences of pooled metrics: computed again from what each user adds, the same users drawn on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import USER_GROUPS
from caged.evaluation.bootstrap import MOST_DRAWN, Interval, corrected_interval, percentile_interval, replicates
from caged.evaluation.measure import columns_of
from caged.evaluation.metrics import Mean, MetricKey, OfSums, Sum, with_sums
from caged.products.compare.entries import StoredColumns
from caged.products.compare.groups import Group


class PooledDifference(NamedTuple):
    difference: float  # over the users of both
    interval: Interval | None


def pooled_differences(base: Group, group: Group, keys: Sequence[MetricKey]) -> dict[MetricKey, PooledDifference]:
    """For the pooled keys among `keys`, where both sides store what each user adds; runs of a method are averaged."""
    pooled = {key: formula for key, formula in with_sums(keys).items() if not isinstance(formula, Mean)}
    entries = (*base.entries, *group.entries)
    if not pooled or not all(entry.has_sums for entry in entries):
        return {}
    stored = [_StoredParts(entry.per_user, entry.sums) for entry in entries]
    mass = stored[0].bucket_mass  # the same in all of them: they share the training part
    formulas = {key: formula for key, formula in pooled.items() if len(mass) or not formula.reads_mass}
    places = _common_users(stored)
    users = len(places[0])
    if not 0 < users <= MOST_DRAWN:
        return {}
    tables = [
        {key: _table(columns_of(key, formula, one), rows) for key, formula in formulas.items()}
        for one, rows in zip(stored, places, strict=True)
    ]

    def values(counts: Array) -> Array:
        """(draws, keys): mean over the entries of the group, less that over those of the baseline."""
        per_entry = np.array([[formulas[key].value(counts @ of[key], mass) for key in formulas] for of in tables])
        split = len(base.entries)
        return np.asarray(per_entry[split:].mean(axis=0) - per_entry[:split].mean(axis=0)).T

    everybody, drawn = values(np.ones((1, users))), replicates(values, users)

    def interval(column: int, formula: OfSums) -> Interval | None:
        difference = float(everybody[0, column])
        bent = formula.biased or formula.signed is not None
        return corrected_interval(drawn[:, column], difference) if bent else percentile_interval(drawn[:, column])

    return {
        key: PooledDifference(float(everybody[0, column]), interval(column, formula))
        for column, (key, formula) in enumerate(formulas.items())
    }


def _table(columns: Sequence[Array], rows: Array) -> Array:
    return np.column_stack(columns).astype(np.float64)[rows]


def _common_users(stored: Sequence[_StoredParts]) -> list[Array]:
    """Per folder the rows of the users that all have, in the same order."""
    common = stored[0].sums.users
    for one in stored[1:]:
        rows, _ = common.shared_with(one.sums.users)
        common = common.taken(rows)
    return [common.shared_with(one.sums.users)[1] for one in stored]


@dataclass(frozen=True, eq=False)
class _StoredParts:
    """What the folder of a run or an audit has per user, as the rows of metrics ask for it."""

    per_user: StoredColumns
    sums: StoredColumns

    @property
    def user_group(self) -> Array:
        names = self.per_user["user_group"].to_pylist()
        return np.array([-1 if name is None else USER_GROUPS.index(name) for name in names], dtype=np.int8)

    def per_user_of(self, key: MetricKey) -> Array:
        return np.asarray(self.per_user[key].to_numpy(), dtype=np.float64)

    @property
    def bucket_mass(self) -> Array:
        """Training interactions per popularity bucket; empty in folders that do not hold them."""
        stored = (self.sums.schema.metadata or {}).get(b"bucket_mass", b"").decode()
        return np.array([int(count) for count in stored.split(",") if count])

    def sum_of(self, part: Sum, k: int, group: str = "") -> Array:
        """(users,), or (users, buckets) of a sum that is stored bucket by bucket."""
        name = part.name(k, group)
        buckets = [column for column in self.sums.schema.names if column.startswith(f"{name}/")]
        if buckets and name not in self.sums.schema.names:
            return np.column_stack([self.sums[f"{name}/{number}"].to_numpy() for number in range(len(buckets))])
        return np.asarray(self.sums[name].to_numpy(), dtype=np.float64)
