"""Contributions add up to the score, also where scores are cosines."""

from __future__ import annotations

import pyarrow as pa
import pytest

from caged.products.serve import Ask, Engine
from caged.products.serve.explanation import explain
from tests.products.serve.small_model import small_model

ITEMS = pa.table({"item_id": ["a", "b", "c", "d"], "degree": [4, 3, 2, 1]})


@pytest.mark.parametrize("by_cosine", [False, True])
def test_of_a_new_person_nothing_is_left(by_cosine: bool) -> None:
    engine = Engine(small_model(ITEMS, by_cosine=by_cosine))
    found = explain(engine, Ask(history=["a", "b", "d"]), "c")
    assert found.contributions is not None
    assert found.contributions.tolist() == sorted(found.contributions, reverse=True)
    assert found.contributions.sum() == pytest.approx(found.score, rel=1e-5)
    wanted = engine.recommend(Ask(history=["a", "b", "d"], k=1))
    assert found.score == pytest.approx(float(wanted.scores[0]), rel=1e-5)
    assert found.note == ""


def test_of_a_known_person_the_rest_is_told() -> None:
    engine = Engine(small_model(ITEMS))
    found = explain(engine, Ask(user_id="ann"), "c")
    assert found.contributions is not None
    assert found.history.tolist() == [0]
    assert found.rest == pytest.approx(found.score - float(found.contributions.sum()))
    assert "the rest is what training learned" in found.note


def test_somebody_without_a_history_is_all_rest() -> None:
    found = explain(Engine(small_model(ITEMS)), Ask(user_id="eve"), "c")
    assert (found.history.tolist(), found.rest) == ([], found.score)
