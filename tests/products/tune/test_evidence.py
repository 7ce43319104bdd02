"""How sure a difference on the test part is."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.evaluation.significance import seed_interval
from caged.products.tune.evidence import leads
from caged.products.tune.finals import FinalRun
from tests.products.tune.answered import on_test, with_users

DATA = {"train": "a", "valid": "b"}


def test_the_lead_is_paired_by_user_and_has_an_interval_over_seeds(tmp_path: Path) -> None:
    tested = {"ips": with_users(tmp_path, "a", 3, 0.05), "ease": with_users(tmp_path, "b", 3, 0.0)}
    (lead,) = leads("ips", tested, ["recall@20", "gini@20"], DATA)
    assert (lead.name, lead.key, lead.runs) == ("ease", "recall@20", (3, 3))
    assert lead.difference == pytest.approx(0.05)
    assert lead.users is not None
    assert lead.users[:2] == pytest.approx((0.05, 0.05))  # unpaired, users would differ by far more
    sides = [[run.value("recall@20") or 0.0 for run in tested[name]] for name in ("ease", "ips")]
    assert lead.seeds == seed_interval(*sides)
    assert lead.seeds is not None
    assert lead.seeds[0] < 0.05 < lead.seeds[1]


def test_one_training_each_has_no_interval_over_seeds() -> None:
    (lead,) = leads("ips", on_test(ips=[0.3], ease=[0.2]), ["recall@20"], DATA)
    assert (lead.seeds, lead.users) == (None, None)
    assert lead.relative == pytest.approx(0.5)


def test_a_method_with_a_failed_training_is_left_out() -> None:
    tested = on_test(ips=[0.3, 0.4], ease=[0.2])
    tested["ease"].append(FinalRun(2, Path("r"), None, "the loss became nan"))
    assert leads("ips", tested, ["recall@20"], DATA) == []
    assert leads("ease", tested, ["recall@20"], DATA) == []
