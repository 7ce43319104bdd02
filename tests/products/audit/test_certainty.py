"""Intervals of differences between an audit and the folder it is held against."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from caged.evaluation.metrics import MetricKey
from caged.evaluation.significance import paired_interval
from caged.products.audit.certainty import can_be_sure, difference_interval
from caged.products.audit.folder import read_audit, write_audit
from caged.products.audit.of_lists import audit_lists
from caged.products.audit.result import AuditResult

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
        values = frame[str(parsed.of(parsed.item_group))]
        sides.append(values.where(frame["user_group"] == parsed.user_group) if parsed.user_group else values)
    found = difference_interval(parsed, read_audit(tmp_path / "base"), after)
    assert found == paired_interval(*(side.to_numpy() for side in sides))


def test_users_that_only_one_side_has_are_no_pair(tmp_path: Path) -> None:
    write_audit(audited(1, range(0, 40)), tmp_path / "base")
    found = difference_interval(MetricKey.parse("arp@5"), read_audit(tmp_path / "base"), audited(1, range(20, 60)))
    assert found is not None
    assert (found.low, found.high) == (0.0, 0.0)


def test_pooled_metrics_add_up_the_intervals_of_both_sides(tmp_path: Path) -> None:
    before, after = audited(1), audited(2)
    write_audit(before, tmp_path / "base")
    key = MetricKey.parse("pooled_recall@5/niche")
    found = difference_interval(key, read_audit(tmp_path / "base"), after)
    widths = [result.intervals[key].high - result.intervals[key].low for result in (before, after)]
    assert found is not None
    assert found.high - found.low == pytest.approx(np.hypot(*widths))
    assert (found.high + found.low) / 2 == pytest.approx(after.metrics[key] - before.metrics[key])
    assert can_be_sure(key, read_audit(tmp_path / "base"))
    assert not can_be_sure(MetricKey.parse("gini@5"), read_audit(tmp_path / "base"))
