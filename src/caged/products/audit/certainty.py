"""Intervals of the values and differences that a gate with `surely` asks for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caged.data.ids import Array
from caged.errors import RunError
from caged.evaluation.bootstrap import Interval
from caged.evaluation.metrics import Mean, MetricKey
from caged.evaluation.significance import paired_interval
from caged.products.audit.folder import StoredAudit
from caged.products.audit.result import AuditResult
from caged.runs.folder import PER_USER


def can_be_sure(key: MetricKey, base: StoredAudit) -> bool:
    """Whether a base holds what an interval of the difference needs."""
    return key in base.intervals or (_has_users(key) and (base.folder / PER_USER).is_file())


def difference_interval(key: MetricKey, base: StoredAudit, result: AuditResult) -> Interval | None:
    """95% interval of the value here less that in the base, over the choice of users; None where there is none.

    Where both sides have values per user it is that of the paired differences. Elsewhere the two intervals are added as
    if the sides were independent, which makes it too wide rather than too narrow.
    """
    if _has_users(key) and result.per_user is not None and (base.folder / PER_USER).is_file():
        before, after = _paired(key, _stored_values(key, base.folder / PER_USER), result.per_user)
        return paired_interval(before, after)
    before_and_after = base.intervals.get(key), result.intervals.get(key)
    if None in before_and_after:
        return None
    change = result.metrics[key] - base.metrics[key]
    widths = [(one.high - one.low) / 2 for one in before_and_after if one is not None]
    return Interval(change - math.hypot(*widths), change + math.hypot(*widths), "normal")


def _has_users(key: MetricKey) -> bool:
    """Of metrics that are a mean over users, each user has a value; others are computed from sums over all of them."""
    return isinstance(key.metric.formula, Mean)


def _stored_values(key: MetricKey, path: Path) -> pa.Table:
    try:
        return pq.read_table(path, columns=["user_id", "user_group", key.of(key.item_group)])
    except (OSError, pa.ArrowException, KeyError) as error:
        raise RunError(f"{path} has no values of {key} per user ({error}); restore it, or evaluate again") from error


def _paired(key: MetricKey, before: pa.Table, after: pa.Table) -> tuple[Array, Array]:
    """The values of the users that both know, NaN where a side has none."""
    place = pc.index_in(after["user_id"], value_set=before["user_id"].combine_chunks())
    rows = place.is_valid()
    return _values(key, before.take(place.filter(rows))), _values(key, after.filter(rows))


def _values(key: MetricKey, table: pa.Table) -> Array:
    values = np.asarray(table[key.of(key.item_group)].to_numpy(), dtype=np.float64)
    if key.user_group is None:
        return values
    member = pc.fill_null(pc.equal(table["user_group"], key.user_group), False).to_numpy()
    return np.where(member, values, np.nan)
