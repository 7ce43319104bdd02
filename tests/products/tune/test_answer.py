"""Who wins, in words and numbers; trials are made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from caged.products.tune import attempt
from caged.products.tune.answer import Answer, answer_json, answer_sentences, answer_tables, make_answer
from caged.products.tune.choice import choose
from caged.products.tune.finish import FinalRun
from caged.products.tune.objective import Constraint
from caged.products.tune.search import Limits, Search
from tests.products.tune.tuned import MadeUp, settings, write_log

Answered = Callable[..., Answer]


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answered:
    """The answer to a search for recall@20 over two methods; at the same setting `lightgcn` is worse by 0.05."""
    monkeypatch.setattr(attempt, "run_trial", MadeUp())
    log = write_log(tmp_path)

    def answer(*constraints: str, tested: dict[str, list[FinalRun]] | None = None) -> Answer:
        asked = settings(log, "lightgcn", "ips", trials=1, constraints=[Constraint.parse(text) for text in constraints])
        (tmp_path / "t").mkdir()
        search = Search.begin(tmp_path / "t", asked, Search.prepared(asked))
        assert search.run(Limits())
        choice = choose(search)
        assert choice is not None
        return make_answer(search, choice, tested or {}, complete=True)

    return answer


def on_test(**recalls: list[float]) -> dict[str, list[FinalRun]]:
    return {
        method: [FinalRun(seed, Path("r"), {"recall@20": value}) for seed, value in enumerate(values, start=1)]
        for method, values in recalls.items()
    }


def test_the_winner_and_its_lead(answered: Answered) -> None:
    answer = answered(tested=on_test(lightgcn=[0.3, 0.5], ips=[0.4, 0.6]))
    (sentence,) = answer_sentences(answer)
    assert sentence == (
        "ips wins: recall@20 0.6367 on validation. Next is lightgcn with 0.5867 (ips: +8.5%). On the test part ips "
        "reaches 0.5000 (the mean of 2 seeds), lightgcn 0.4000 (ips: +25%)."
    )
    told = answer_json(answer)
    assert (told["winner"], told["second"]) == ("ips", "lightgcn")
    assert told["margin"]["validation"] == pytest.approx(0.05)
    assert told["margin"]["test"] == pytest.approx(0.1)


def test_a_constraint_is_told_with_its_number(answered: Answered) -> None:
    (sentence,) = answer_sentences(answered("recall@20>=95% of ips"))
    assert "the best of all that kept recall@20>=95% of ips (at least 0.6048)." in sentence
    assert "Next is" not in sentence  # lightgcn misses it


def test_nobody_wins_where_nobody_keeps_the_constraint(answered: Answered) -> None:
    answer = answered("recall@20>=0.9")
    assert answer_sentences(answer) == ["No method wins: no trial kept recall@20>=0.9."]
    told = answer_json(answer)
    assert (told["winner"], told["margin"]) == (None, None)
    tuned, _ = answer_tables(answer)
    assert [row[-2] for row in tuned.rows] == ["no", "no"]


def test_a_seed_without_a_value_leaves_no_mean(answered: Answered) -> None:
    tested = on_test(lightgcn=[0.3], ips=[0.4])
    tested["ips"].append(FinalRun(2, Path("r"), None, "the loss became nan"))
    answer = answered(tested=tested)
    assert answer.test_mean("ips", "recall@20") is None
    assert answer.test_mean("lightgcn", "recall@20") == 0.3


def test_budgets_stand_side_by_side(answered: Answered) -> None:
    _, budgets = answer_tables(answered())
    assert budgets.headers == ["method", "trials", "failed", "epochs", "seconds", "note"]
    assert [list(row)[:5] for row in budgets.rows] == [
        ["lightgcn", "1", "0", "2", "0.5"],
        ["ips", "1", "0", "2", "0.5"],
    ]
