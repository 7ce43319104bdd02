"""Intervals of the values and differences that a gate with `surely` asks for."""

from __future__ import annotations

import math

from caged.evaluation.bootstrap import Interval
from caged.evaluation.metrics import Mean, MetricKey, OfItems
from caged.evaluation.pooled_difference import pooled_differences
from caged.evaluation.significance import paired_interval
from caged.evaluation.stored import StoredUsers, UserTable
from caged.products.audit.folder import StoredAudit
from caged.products.audit.result import AuditResult
from caged.runs.folder import PER_USER, SUMS


def can_be_sure(key: MetricKey, base: StoredAudit) -> bool:
    """Whether a base holds what an interval of the difference needs."""
    return key in base.intervals or _stores_users(key, base)


def difference_interval(key: MetricKey, base: StoredAudit, result: AuditResult) -> Interval | None:
    """95% interval of the value here less that in the base, over the choice of users; None where there is none.

    Users are paired: the interval is that of what changed for each of them. Only where a side is too large to keep what
    it has per user, the two intervals are added as if the sides were independent, which makes it rather too wide.
    """
    if not _stores_users(key, base) or result.per_user is None or result.sums is None:
        return _of_both_intervals(key, base, result)
    after = StoredUsers(UserTable.of_table(result.per_user), UserTable.of_table(result.sums))
    per_user = UserTable.of_file(base.folder / PER_USER)
    if isinstance(key.metric.formula, Mean):
        rows, places = per_user.users.shared_with(after.per_user.users)
        return paired_interval(per_user.values_of(key)[rows], after.per_user.values_of(key)[places])
    before = StoredUsers(per_user, UserTable.of_file(base.folder / SUMS))
    found = pooled_differences([before], [after], [key]).get(key)
    return None if found is None else found.interval


def _stores_users(key: MetricKey, base: StoredAudit) -> bool:
    """Of a mean the value of each user, of a pooled metric what each of them adds as well."""
    if isinstance(key.metric.formula, OfItems):
        return False
    needed = (PER_USER,) if isinstance(key.metric.formula, Mean) else (PER_USER, SUMS)
    return all((base.folder / name).is_file() for name in needed)


def _of_both_intervals(key: MetricKey, base: StoredAudit, result: AuditResult) -> Interval | None:
    before_and_after = base.intervals.get(key), result.intervals.get(key)
    if None in before_and_after:
        return None
    change = result.metrics[key] - base.metrics[key]
    widths = [(one.high - one.low) / 2 for one in before_and_after if one is not None]
    return Interval(change - math.hypot(*widths), change + math.hypot(*widths), "normal")
