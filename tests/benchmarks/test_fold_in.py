"""The measurement of fold-in: who is held out, what is asked for, and that nothing of it was trained on."""

from __future__ import annotations

import numpy as np

from benchmarks.fold_in import cut, measured, recall
from tests.models.logs import skewed


def test_a_fifth_of_the_people_is_held_out_and_a_fifth_of_what_they_had_is_asked_for() -> None:
    log = skewed(user_count=50, per_user=10)
    of_new, asked = cut(log, seed=1)
    people = np.unique(log.users[of_new])
    assert len(people) == 10
    assert (asked <= of_new).all()
    assert np.bincount(log.users[asked], minlength=50)[people].tolist() == [2] * 10
    assert set(np.unique(log.users[~of_new])).isdisjoint(people)


def test_recall_is_the_share_that_was_found() -> None:
    import pyarrow as pa

    lists = pa.table({"user_id": ["a", "a", "b"], "item_id": [1, 2, 9]})
    assert recall(lists, {"a": {2, 3}, "b": {9}, "c": {1}}, 2) == (0.5 + 1 + 0) / 3


def test_it_measures_both_ways() -> None:
    options = {"embedding_size": 4, "epochs": 2}
    found = measured(skewed(user_count=40, item_count=40, per_user=10), "lightgcn", options, seed=1, device="cpu")
    assert found["people"] == 8
    assert 0 < found["folded_in"] <= 1
    assert found["ratio"] == found["folded_in"] / found["trained_in"]
