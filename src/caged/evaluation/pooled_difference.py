"""Differences of pooled metrics: computed again from what each user adds, the same users drawn on both sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.evaluation.bootstrap import (
    MOST_DRAWN,
    Interval,
    corrected_interval,
    levels_for,
    percentile_interval,
    replicates,
)
from caged.evaluation.measure import columns_of
from caged.evaluation.metrics import Mean, MetricKey, OfSums, with_sums
from caged.evaluation.stored import StoredUsers


class PooledDifference(NamedTuple):
    difference: float  # over the users of both
    interval: Interval | None


def pooled_differences(
    before: Sequence[StoredUsers], after: Sequence[StoredUsers], keys: Sequence[MetricKey]
) -> dict[MetricKey, PooledDifference]:
    """For the pooled keys among `keys`: the mean over `after` less that over `before`; empty without common users."""
    sides = (*before, *after)
    mass = sides[0].bucket_mass  # the same in all of them: they share the training part
    formulas = {key: formula for key, formula in pooled(keys).items() if len(mass) or not formula.reads_mass}
    places = _common_users(sides)
    users = len(places[0])
    if not formulas or not 0 < users <= MOST_DRAWN:
        return {}
    weights = np.array([-1 / len(before)] * len(before) + [1 / len(after)] * len(after))
    tables = {
        key: [_table(columns_of(key, formula, side), rows) for side, rows in zip(sides, places, strict=True)]
        for key, formula in formulas.items()
    }
    formulas = {key: formula.fitted(tables[key][0].shape[1]) for key, formula in formulas.items()}

    def values(counts: Array) -> Array:
        """(draws, keys)"""
        per_key = [[formulas[key].value(counts @ table, mass) for table in of] for key, of in tables.items()]
        return np.asarray(weights @ np.array(per_key)).T

    everybody, drawn = values(np.ones((1, users)))[0], replicates(values, users)
    return {
        key: PooledDifference(difference, _interval(formulas[key], tables[key], weights, draws, difference, mass))
        for key, difference, draws in zip(formulas, everybody.tolist(), drawn.T, strict=True)
    }


def pooled(keys: Sequence[MetricKey]) -> dict[MetricKey, OfSums]:
    """The keys that follow from sums over users without being the mean of a value that each of them has."""
    return {key: formula for key, formula in with_sums(keys).items() if not isinstance(formula, Mean)}


def _interval(
    formula: OfSums, tables: Sequence[Array], weights: Array, drawn: Array, difference: float, mass: Array
) -> Interval | None:
    """From what each user adds, one table for each side, and the difference in every draw."""
    if math.isnan(difference):
        return None
    influence = weights @ np.array([_influence(formula, table, mass) for table in tables])
    levels = levels_for(influence, int(max(table[:, -1].sum() for table in tables)))
    if formula.biased or formula.signed is not None or formula.vector is not None:
        return corrected_interval(drawn, difference, levels)
    return percentile_interval(drawn, levels)


def _influence(formula: OfSums, added: Array, mass: Array) -> Array:
    """What each user does to the value of one side, linearised; of an absolute value with its sign."""
    everybody = added.sum(axis=0)
    sign = 1.0 if formula.signed is None else float(np.sign(formula.signed(everybody, mass)))
    return sign * (added @ formula.gradient(everybody, mass))


def _table(columns: Sequence[Array], rows: Array) -> Array:
    return np.column_stack(columns).astype(np.float64)[rows]


def _common_users(sides: Sequence[StoredUsers]) -> list[Array]:
    """Per side the rows of the users that all have, in the same order."""
    common = sides[0].users
    for one in sides[1:]:
        rows, _ = common.shared_with(one.users)
        common = common.taken(rows)
    return [common.shared_with(one.users)[1] for one in sides]
