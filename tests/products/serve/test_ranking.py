"""Whatever way a list is found, it is the one that a sort of all scores gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caged.products.serve import Ask, Engine, ServedModel
from tests.products.serve.small_model import small_model

COUNT = 2000


@pytest.fixture(scope="module")
def model() -> ServedModel:
    draw = np.random.default_rng(3)
    about = {"kind": draw.integers(0, 50, COUNT), "half": draw.integers(0, 2, COUNT)}
    return small_model(pa.table({"item_id": np.arange(COUNT), "degree": draw.integers(1, 99, COUNT), **about}))


def sorted_whole(model: ServedModel, ask: Ask) -> list[int]:
    """In float64, by a sort."""
    user = model.users.row(ask.user_id)
    scores = model.item_vectors.astype(np.float64) @ model.user_vector(user)
    scores -= (ask.less_popular or 0) * np.log1p(model.degrees)  # the spread of small models is 1
    allowed = np.ones(COUNT, dtype=bool)
    for name, value in ask.filters.items():
        allowed &= model.item_table[name].to_numpy() == value
    if ask.candidates is not None:
        allowed &= np.isin(np.arange(COUNT), ask.candidates)
    allowed[np.array([*ask.exclude, *(model.seen(user) if ask.exclude_seen else ())], dtype=int)] = False
    order = [row for row in np.argsort(-scores, kind="stable").tolist() if allowed[row]]
    return order[: ask.k]


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"k": 1000},
    {"exclude_seen": False},
    {"exclude": list(range(0, COUNT, 2))},
    {"filters": {"kind": 7}},
    {"filters": {"kind": 7}, "less_popular": 1.0, "exclude": [1, 5, 9]},
    {"filters": {"half": 1}},
    {"filters": {"half": 1, "kind": 3}},
    {"filters": {"kind": -1}},
    {"candidates": list(range(100, 200))},
    {"candidates": list(range(100, 200)), "filters": {"half": 0}, "less_popular": 0.5},
    {"candidates": [], "less_popular": 0.5},
    {"less_popular": 0.25},
]


def test_every_way_is_a_sort_of_all_scores(model: ServedModel) -> None:
    asks = [Ask(user_id=user, **{"k": 10, **question}) for question in QUESTIONS for user in ("ann", "bob")]
    engine = Engine(model)
    for ask, answer in zip(asks, engine.recommend_batch(asks), strict=True):
        assert answer.items.tolist() == sorted_whole(model, ask), ask


def test_a_filter_that_keeps_few_reads_only_their_vectors(model: ServedModel) -> None:
    engine = Engine(model)
    asks = [Ask(user_id="ann", filters={"kind": kind}) for kind in (1, 2, 1)]
    engine.recommend_batch(asks)
    assert len(engine.ranking._gathered) == 2
    (kept,) = [engine.filters.kept({"kind": 1})]
    assert kept is not None
    assert kept.rows is not None
    assert len(kept.rows) == kept.count < 0.05 * COUNT
    gathered = engine.ranking._gathered.get(kept.key, lambda: np.empty(0))
    assert np.array_equal(gathered, model.item_vectors[kept.rows])


@pytest.mark.parametrize("filters", [{}, {"kind": 7}])
def test_large_batches_are_answered_in_pieces(
    model: ServedModel, filters: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caged.products.serve.search.SCORES_AT_ONCE", COUNT // 50)
    monkeypatch.setattr("caged.products.serve.search.TOGETHER", 3)
    asks = [Ask(user_id="eve", k=5, less_popular=step / 10, filters=filters) for step in range(10)]
    for ask, answer in zip(asks, Engine(model).recommend_batch(asks), strict=True):
        assert answer.items.tolist() == sorted_whole(model, ask)
