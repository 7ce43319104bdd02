"""What is wished for, and what must hold."""

from __future__ import annotations

import math

import pytest

from caged.errors import ConfigError
from caged.products.tune.objective import Constraint, Goal, Limit, Objective


def test_an_objective_knows_which_way_is_better() -> None:
    assert Objective.parse("recall@20").of({"recall@20": 0.5}) == 0.5
    assert Objective.parse("gini@20", maximise=False).of({"gini@20": 0.5}) == -0.5
    assert Objective.parse("recall@20").of({"recall@20": None}) == -math.inf
    with pytest.raises(ConfigError, match="lower values of it are better; use --minimise gini@20"):
        Objective.parse("gini@20")
    with pytest.raises(ConfigError, match="use --maximise recall@20"):
        Objective.parse("recall@20", maximise=False)


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("recall@20>=99% of lightgcn", Constraint("recall@20", ">=", 0.99, "lightgcn")),
        (" gini@20 <= 0.8 ", Constraint("gini@20", "<=", 0.8)),
        ("recall@20/niche >= 1e-3", Constraint("recall@20/niche", ">=", 1e-3)),
    ],
)
def test_constraints_are_read(text: str, constraint: Constraint) -> None:
    assert Constraint.parse(text) == constraint
    assert Constraint.parse(str(constraint)) == constraint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recall@20>0.1", "write it as"),
        ("recall@20>=..1", "write it as"),
        ("recall@20>=99% lightgcn", "write it as"),
        ("recal@20>=0.1", "did you mean 'recall'"),
        ("recall@20/genre=Drama>=0.5", "groups that somebody chose"),
    ],
)
def test_what_cannot_be_held_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Constraint.parse(text)


def test_a_share_of_a_reference_becomes_a_number() -> None:
    limit = Constraint.parse("recall@20>=50% of lightgcn").limit(lambda method, wish: 0.4)
    assert limit == Limit("recall@20", ">=", 0.2)
    with pytest.raises(ConfigError, match="no trial of lightgcn succeeded"):
        Constraint.parse("recall@20>=50% of lightgcn").limit(lambda method, wish: None)


def test_feasible_first_then_the_objective_then_who_misses_least_then_failures() -> None:
    goal = Goal(Objective("recall@20/niche"), (Limit("recall@20", ">=", 0.5),))
    good, better = {"recall@20": 0.5, "recall@20/niche": 0.1}, {"recall@20": 0.9, "recall@20/niche": 0.2}
    near, far = {"recall@20": 0.49, "recall@20/niche": 0.3}, {"recall@20": 0.1, "recall@20/niche": 0.9}
    undefined = {"recall@20": None, "recall@20/niche": 0.9}
    assert goal.places([far, better, None, good, near, undefined]) == [2.0, 5.0, 0.0, 4.0, 3.0, 1.0]
    assert goal.feasible(good)
    assert not goal.feasible(near)


def test_the_front_is_over_what_is_wished_and_held() -> None:
    held = Goal(Objective("recall@20/niche"), (Limit("recall@20", ">=", 0.5),))
    assert [axis.key for axis in held.axes()] == ["recall@20/niche", "recall@20"]
    assert [axis.key for axis in Goal(Objective("recall@20")).axes()] == ["recall@20", "recall@20/niche"]
