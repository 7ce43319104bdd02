"""Who wins, in sentences; trials are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from caged.products.tune.finals import FinalRun, Finals
from caged.products.tune.words import answer_sentences
from tests.products.tune.answered import Answered, on_test, with_users


def test_the_winner_its_lead_and_how_sure_that_is(answered: Answered, tmp_path: Path) -> None:
    answer = answered(tests=Finals(on_test(lightgcn=[0.39, 0.41], ips=[0.49, 0.51])))
    assert answer_sentences(answer) == [
        "ips wins: recall@20 0.6367 on validation. Next is lightgcn with 0.5867 (ips: +8.5%). On the test part ips "
        "reaches 0.5000 (the mean of 2 seeds), lightgcn 0.4000 (ips: +25.0%).",
        "Difference on the test part to lightgcn: +0.1000, 95% interval over 2 and 2 trainings +0.0392 to +0.1608 "
        "(more than chance).",
    ]


def test_an_interval_that_holds_zero_may_be_chance(answered: Answered, tmp_path: Path) -> None:
    tests = Finals({"lightgcn": with_users(tmp_path, "a", 1, 0.0), "ips": with_users(tmp_path, "b", 1, 0.0)}, left=2)
    _, sure, left = answer_sentences(answered(tests=tests))
    assert sure == (
        "Difference on the test part to lightgcn: 0.0000, 95% interval over users 0.0000 to 0.0000 (may be chance)."
    )
    assert left == "Trainings that are still to be made and tested: 2."


@pytest.mark.parametrize("missing", ["ips", "lightgcn"])
def test_nothing_is_said_of_the_test_part_where_one_of_the_two_has_no_test(answered: Answered, missing: str) -> None:
    tested = on_test(lightgcn=[0.4], ips=[0.5])
    del tested[missing]
    assert answer_sentences(answered(tests=Finals(tested, left=1))) == [
        "ips wins: recall@20 0.6367 on validation. Next is lightgcn with 0.5867 (ips: +8.5%).",
        "Trainings that are still to be made and tested: 1.",
    ]


def test_a_winner_without_a_second_has_its_test(answered: Answered) -> None:
    answer = answered("recall@20>=95% of ips", tests=Finals(on_test(ips=[0.5])))
    assert answer_sentences(answer)[0].endswith(" On the test part ips reaches 0.5000 (one training).")


def test_a_test_that_failed_is_no_number(answered: Answered) -> None:
    tested = {**on_test(ips=[0.5]), "lightgcn": [FinalRun(1, Path("r"), None, "the loss became nan")]}
    assert answer_sentences(answered(tests=Finals(tested)))[0].endswith("ips reaches 0.5000 (one training).")


def test_a_constraint_is_told_with_its_number(answered: Answered) -> None:
    (sentence,) = answer_sentences(answered("recall@20>=95% of ips"))
    assert "the best of all that kept recall@20>=95% of ips (at least 0.6048)." in sentence
    assert "Next is" not in sentence  # lightgcn misses it


def test_nobody_wins_where_nobody_keeps_the_constraint(answered: Answered) -> None:
    assert answer_sentences(answered("recall@20>=0.9")) == ["No method wins: no trial kept recall@20>=0.9."]
