"""Intervals of differences between an audit and the folder it is held against."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from caged.evaluation.metrics import MetricKey
from caged.evaluation.pooled_difference import pooled_differences
from caged.evaluation.significance import paired_interval
from caged.evaluation.stored import StoredUsers, UserTable
from caged.products.audit.certainty import can_be_sure, difference_interval
from caged.products.audit.folder import read_audit, write_audit
from caged.products.audit.of_lists import audit_lists
from caged.products.audit.result import AuditResult
from caged.runs.folder import PER_USER, SUMS

USERS = range(60)
TRAIN = pd.DataFrame([(u, (u * i) % 19) for u in USERS for i in range(1, 6)], columns=["user_id", "item_id"])
TEST = pd.DataFrame([(u, 19 + (u + i) % 12) for u in USERS for i in range(3)], columns=["user_id", "item_id"])


def audited(shift: int, users: range = USERS) -> AuditResult:
    rows = [(u, (u * shift + place) % 31, place + 1) for u in users for place in range(6)]
    lists = pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])
    return audit_lists(lists, train=TRAIN, test=TEST, ks=(5,), items=pd.DataFrame({"item_id": range(31)}))


@pytest.mark.parametrize("key", ["recall@5", "recall@5/niche", "popularity_lift@5/diverse"])
def test_differences_are_paired_by_user(key: str, tmp_path: Path) -> None:
    before, after = audited(1), audited(2)
    write_audit(before, tmp_path / "base")
    parsed = MetricKey.parse(key)
    sides = []
    for result in (before, after):
        assert result.per_user is not None
        frame = result.per_user.to_pandas().set_index("user_id").sort_index()
        values = frame[str(parsed.of_each_user)]
        sides.append(values.where(frame["user_group"] == parsed.user_group) if parsed.user_group else values)
    found = difference_interval(parsed, read_audit(tmp_path / "base"), after)
    assert found == paired_interval(*(side.to_numpy() for side in sides))


def test_users_that_only_one_side_has_are_no_pair(tmp_path: Path) -> None:
    write_audit(audited(1, range(0, 40)), tmp_path / "base")
    found = difference_interval(MetricKey.parse("arp@5"), read_audit(tmp_path / "base"), audited(1, range(20, 60)))
    assert found is not None
    assert (found.low, found.high) == (0.0, 0.0)


@pytest.mark.parametrize("key", ["pooled_recall@5/niche", "delta_gap@5", "exposure_kl@5", "pop_rsp@5"])
def test_pooled_metrics_are_paired_too(key: str, tmp_path: Path) -> None:
    before, after = audited(1), audited(2)
    write_audit(before, tmp_path / "base")
    parsed = MetricKey.parse(key)
    found = difference_interval(parsed, read_audit(tmp_path / "base"), after)
    sides = [[stored_users(result)] for result in (before, after)]
    assert found is not None
    assert found == pooled_differences(*sides, [parsed])[parsed].interval
    # The same lists again differ in nothing; intervals added up would be as wide as ever.
    again = difference_interval(parsed, read_audit(tmp_path / "base"), audited(1))
    assert again is not None
    assert (again.low, again.high) == (0.0, 0.0)


def stored_users(result: AuditResult) -> StoredUsers:
    assert result.per_user is not None
    assert result.sums is not None
    return StoredUsers(UserTable.of_table(result.per_user), UserTable.of_table(result.sums))


@pytest.mark.parametrize("key", ["pooled_recall@5/niche", "recall@5"])
def test_sides_without_values_per_user_add_up_their_intervals(key: str, tmp_path: Path) -> None:
    before, after = audited(1), audited(2)
    write_audit(before, tmp_path / "base")
    (tmp_path / "base" / PER_USER).unlink()
    parsed = MetricKey.parse(key)
    found = difference_interval(parsed, read_audit(tmp_path / "base"), after)
    widths = [result.intervals[parsed].high - result.intervals[parsed].low for result in (before, after)]
    assert found is not None
    assert found.high - found.low == pytest.approx(np.hypot(*widths))
    assert (found.high + found.low) / 2 == pytest.approx(after.metrics[parsed] - before.metrics[parsed])


def test_what_a_base_must_hold(tmp_path: Path) -> None:
    write_audit(replace(audited(1), intervals={}), tmp_path / "base")  # as a run, which stores none
    base = read_audit(tmp_path / "base")
    assert can_be_sure(MetricKey.parse("pooled_recall@5/niche"), base)
    assert not can_be_sure(MetricKey.parse("gini@5"), base)
    (base.folder / SUMS).unlink()
    assert not can_be_sure(MetricKey.parse("pooled_recall@5/niche"), base)
    assert can_be_sure(MetricKey.parse("recall@5"), base)
