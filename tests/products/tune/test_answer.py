"""Who wins, as numbers; trials are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.tune.answer import answer_json
from caged.products.tune.finals import FinalRun, Finals
from tests.products.tune.answered import Answered, on_test, with_users


def test_the_winner_and_its_lead(answered: Answered) -> None:
    told = answer_json(answered(tests=Finals(on_test(lightgcn=[0.3, 0.5], ips=[0.4, 0.6]))))
    assert (told["winner"], told["second"], told["tested"]) == ("ips", "lightgcn", True)
    assert told["margin"]["validation"] == pytest.approx(0.05)
    assert told["margin"]["test"] == pytest.approx(0.1)
    (lead,) = told["leads"]
    assert (lead["method"], lead["metric"], lead["trainings"]) == ("lightgcn", "recall@20", [2, 2])
    assert lead["difference"] == pytest.approx(0.1)
    assert lead["interval_over_users"] is None  # nothing is kept of the users


def test_nobody_wins_where_nobody_keeps_the_constraint(answered: Answered) -> None:
    told = answer_json(answered("recall@20>=0.9"))
    assert (told["winner"], told["margin"], told["leads"]) == (None, None, [])


def test_a_seed_without_a_value_leaves_no_mean_and_no_lead(answered: Answered) -> None:
    tested = on_test(lightgcn=[0.3], ips=[0.4])
    tested["ips"].append(FinalRun(2, Path("r"), None, "the loss became nan"))
    answer = answered(tests=Finals(tested))
    assert answer.test_mean("ips", "recall@20") is None
    assert answer.test_mean("lightgcn", "recall@20") == 0.3
    assert answer.leads == []


def test_what_is_still_to_be_tested_is_told(answered: Answered) -> None:
    told = answer_json(answered(tests=Finals(on_test(ips=[0.4]), left=3)))
    assert (told["tested"], told["tests_left"]) == (False, 3)


def test_tuned_against_default_on_test(answered: Answered, tmp_path: Path) -> None:
    tuned, default = with_users(tmp_path, "tuned", 2, 0.1), with_users(tmp_path, "default", 2, 0.0)
    same = on_test(lightgcn=[0.3])["lightgcn"]
    answer = answered(tests=Finals({"lightgcn": same, "ips": tuned}, {"lightgcn": same, "ips": default}))
    (gain,) = answer.gains  # lightgcn kept its defaults
    assert gain.name == "ips"
    assert gain.difference == pytest.approx(0.1)
    assert gain.users is not None
    assert gain.users[:2] == pytest.approx((0.1, 0.1))  # every user gained the same
