"""The rule: close enough to the best recall, then the most niche recall."""

from __future__ import annotations

from typing import Any

from caged.products.best.choice import Candidate, Choice, _most_accurate, ranking
from caged.products.tune import Goal, Limit, Objective, Trial

GOAL = Goal(Objective("recall@20/niche"), (Limit("recall@20", ">=", 0.99),))


def candidate(name: str, recall: float | None, niche: float | None, **options: Any) -> Candidate:
    metrics = {"recall@20": recall, "recall@20/niche": niche}
    return Candidate(name, 0, {}, None, metrics, 1, within=GOAL.feasible(metrics), **options)


def order(*candidates: Candidate) -> list[str]:
    return [one.method for one in ranking(candidates, GOAL, "recall@20")]


def test_the_most_niche_recall_wins_among_those_within() -> None:
    assert order(candidate("best", 1.0, 0.1), candidate("niche", 0.99, 0.3), candidate("far", 0.98, 0.9)) == [
        "niche",
        "best",
        "far",
    ]


def test_of_equals_the_more_accurate_one_wins_then_who_came_first() -> None:
    assert order(candidate("less", 0.99, 0.2), candidate("more", 1.0, 0.2)) == ["more", "less"]
    assert order(candidate("one", 1.0, 0.2), candidate("two", 1.0, 0.2)) == ["one", "two"]


def test_where_no_niche_item_can_be_found_accuracy_decides() -> None:
    assert order(candidate("less", 0.99, None), candidate("more", 1.0, None)) == ["more", "less"]


def test_popularity_is_taken_out_of_the_most_accurate_of_each_method() -> None:
    trials = [
        Trial("ease", 0, {}, metrics={"recall@20": 0.2}),
        Trial("softmax", 0, {}, metrics={"recall@20": None}),
        Trial("ease", 1, {}, metrics={"recall@20": 0.3}),
        Trial("ease", 2, {}, metrics={"recall@20": 0.3}),
    ]
    assert [(trial.method, trial.number) for trial in _most_accurate(trials, "recall@20")] == [
        ("ease", 1),
        ("softmax", 0),
    ]


def test_a_choice_comes_back_from_its_file() -> None:
    found = (candidate("ease", 1.0, 0.2), candidate("mostpop", 0.5, 0.0))
    choice = Choice("recall@20", "recall@20/niche", 0.99, found[0], found, 3)
    assert Choice.from_json(choice.to_json()) == choice
    assert choice.names == ["ease", "mostpop"]
    assert choice.best_of("softmax") is None
