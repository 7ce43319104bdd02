"""Differences of pooled metrics: computed again from what each user adds, the same users drawn on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import USER_GROUPS
from caged.evaluation.estimates import WITHOUT_INTERVAL, Estimate, estimate_of
from caged.evaluation.intervals import MOST_DRAWN, Interval, drawn_counts, percentile_interval
from caged.evaluation.keys import METRICS, MetricKey
from caged.products.compare.entries import StoredColumns
from caged.products.compare.groups import Group


class PooledDifference(NamedTuple):
    difference: float  # over the users of both
    interval: Interval | None


def pooled_differences(base: Group, group: Group, keys: Sequence[str]) -> dict[str, PooledDifference]:
    """For the pooled keys among `keys`, where both sides store what each user adds; runs of a method are averaged."""
    parsed = [key for key in map(MetricKey.parse, keys) if METRICS[key.name].kind == "catalogue"]
    pooled = [key for key in parsed if key.name not in WITHOUT_INTERVAL]
    entries = (*base.entries, *group.entries)
    if not pooled or not all(entry.has_sums for entry in entries):
        return {}
    stored = [_StoredParts(entry.per_user, entry.sums) for entry in entries]
    mass = stored[0].bucket_mass  # the same in all of them: they share the training part
    estimates = {str(key): estimate_of(key, mass) for key in pooled if key.name != "exposure_kl" or len(mass)}
    tables = _tables(stored, list(estimates.values()))
    users = len(tables[0][0])
    if not 0 < users <= MOST_DRAWN:
        return {}
    everybody = _values(np.ones((1, users)), tables, estimates, len(base.entries))
    drawn = [_values(counts, tables, estimates, len(base.entries)) for counts in drawn_counts(users, 1000, 0)]
    return {
        key: PooledDifference(
            float(everybody[column, 0]), percentile_interval(np.concatenate([one[column] for one in drawn]))
        )
        for column, key in enumerate(estimates)
    }


def _tables(stored: Sequence[_StoredParts], estimates: Sequence[Estimate]) -> list[list[Array]]:
    """Per folder and estimate the table of parts (users in common, sums)."""
    common = stored[0].sums.users
    for one in stored[1:]:
        rows, _ = common.shared_with(one.sums.users)
        common = common.taken(rows)
    places = [common.shared_with(one.sums.users)[1] for one in stored]
    return [[_stacked(estimate, one)[rows] for estimate in estimates] for one, rows in zip(stored, places, strict=True)]


def _stacked(estimate: Estimate, users: _StoredParts) -> Array:
    return np.column_stack([np.asarray(part, dtype=np.float64) for part in estimate.parts(users)])


def _values(counts: Array, tables: list[list[Array]], estimates: dict[str, Estimate], split: int) -> Array:
    """(keys, draws): mean over the entries from `split` on, less that over those before."""
    per_entry = np.array(
        [
            [estimate.value(counts @ table) for estimate, table in zip(estimates.values(), of_entry, strict=True)]
            for of_entry in tables
        ]
    )
    return np.asarray(per_entry[split:].mean(axis=0) - per_entry[:split].mean(axis=0))


@dataclass(frozen=True, eq=False)
class _StoredParts:
    """What the folder of a run or an audit has per user, as `Estimate` asks for it."""

    per_user: StoredColumns
    sums: StoredColumns

    @property
    def user_group(self) -> Array:
        names = self.per_user["user_group"].to_pylist()
        return np.array([-1 if name is None else USER_GROUPS.index(name) for name in names], dtype=np.int8)

    def per_user_of(self, key: MetricKey) -> Array:
        return np.asarray(self.per_user[str(key)].to_numpy(), dtype=np.float64)

    @property
    def bucket_mass(self) -> Array:
        """Training interactions per popularity bucket; empty in folders that do not hold them."""
        stored = (self.sums.schema.metadata or {}).get(b"bucket_mass", b"").decode()
        return np.array([int(count) for count in stored.split(",") if count])

    def sum_of(self, name: str) -> Array:
        """(users,), or (users, buckets) of a sum that is stored bucket by bucket."""
        buckets = [column for column in self.sums.schema.names if column.startswith(f"{name}/")]
        if buckets and name not in self.sums.schema.names:
            return np.column_stack([self.sums[f"{name}/{number}"].to_numpy() for number in range(len(buckets))])
        return np.asarray(self.sums[name].to_numpy(), dtype=np.float64)
