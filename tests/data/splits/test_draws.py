"""The draw of a popularity-balanced test part, against slow, obvious versions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caged.data import (
    Interactions,
    intervened_split,
    split,
)
from caged.data.popularity import gini
from caged.data.splits.draws import deal
from caged.errors import DataError
from caged.seeding import numpy_generator
from tests.data.splits.logs import Pair, assignment, logs, pairs_of, random_log


def slow_deal(places: int, room: list[int], luck: list[float]) -> list[int]:
    dealt = [0] * len(room)
    while places:
        takers = [i for i in range(len(room)) if dealt[i] < room[i]]
        for i in sorted(takers, key=lambda i: luck[i])[:places]:
            dealt[i] += 1
        places -= min(places, len(takers))
    return dealt


@settings(max_examples=200)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.data())
def test_dealing_is_the_slow_one(room: list[int], data: st.DataObject) -> None:
    places = data.draw(st.integers(0, sum(room)))
    luck = np.random.default_rng(places).random(len(room))
    assert deal(places, np.array(room), luck).tolist() == slow_deal(places, room, luck.tolist())


def slow_intervened(data: Interactions, seed: int, test: int, valid: int, most: Fraction) -> dict[Pair, str] | None:
    """The four rules one pair at a time, with the random numbers of the fast version; None if it does not fit."""
    generator = numpy_generator(seed, "intervened_split")
    pairs = pairs_of(data)
    kept = set()
    for side in (0, 1):
        first: dict[int, tuple[float, Pair]] = {}
        for pair, number in zip(pairs, generator.random(len(pairs)), strict=True):
            first[pair[side]] = min(first.get(pair[side], (2.0, pair)), (number, pair))
        kept |= {pair for _, pair in first.values()}
    free = [pair for pair in pairs if pair not in kept]
    degree = [sum(item == i for _, item in pairs) for i in range(data.item_count)]
    room = [min(int(most * degree[i]), sum(item == i for _, item in free)) for i in range(data.item_count)]
    if sum(room) < test or len(free) < test + valid:
        return None
    places = slow_deal(test, room, generator.random(data.item_count).tolist())
    assigned = dict.fromkeys(pairs, "train")
    order = sorted(zip(generator.random(len(free)), free, strict=True))
    for _, (user, item) in order:
        if places[item]:
            places[item] -= 1
            assigned[user, item] = "test"
    rest = [pair for pair in free if assigned[pair] == "train"]
    for _, pair in sorted(zip(generator.random(len(rest)), rest, strict=True))[:valid]:
        assigned[pair] = "valid"
    return assigned


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])  # a busy machine draws slowly
@given(logs(smallest=30), st.integers(0, 99), st.sampled_from(["0.2", "0.5", "0.7"]))
def test_intervened_split_is_the_slow_one(data: Interactions, seed: int, most: str) -> None:
    test, valid = math.ceil(Fraction(15, 100) * len(data)), max(1, len(data) // 10)
    options = {"test_share": 0.15, "valid_share": 0.1, "max_item_share": float(most)}
    slow = slow_intervened(data, seed, test, valid, Fraction(most))
    if slow is None:
        with pytest.raises(DataError, match="cannot be taken from"):
            intervened_split(data, seed=seed, **options)
        return
    assert assignment(intervened_split(data, seed=seed, **options)) == slow


def test_intervened_test_is_balanced_and_train_knows_everybody() -> None:
    data = random_log(count=6000, users=150, items=100)
    parts = intervened_split(data, seed=2)
    assert parts.test is not None
    assert parts.valid is not None
    assert len(parts.test) == math.ceil(0.2 * len(data))
    assert len(parts.valid) == len(data) // 10
    assert parts.train.user_degrees.min() >= 1
    assert parts.train.item_degrees.min() >= 1
    assert np.all(2 * parts.test.item_degrees <= data.item_degrees)
    naturally = split(data).item_gini
    assert parts.item_gini["test"] < 0.5 * naturally["test"]
    assert parts.item_gini["valid"] > naturally["valid"] - 0.05
    assert parts.notes == {
        f"item_gini_{name}": gini(np.bincount(part.items, minlength=100)) for name, part in parts.parts.items()
    }
    assert parts.parameters == {"seed": 2, "test_share": 0.2, "valid_share": 0.1, "max_item_share": 0.5}


def test_intervened_split_that_does_not_fit() -> None:
    data = random_log()
    with pytest.raises(DataError, match=r"balanced test part of \d+ .* \(max_item_share 0.1 of each item\); lower"):
        intervened_split(data, test_share=0.4, max_item_share=0.1)
    with pytest.raises(DataError, match=r"max_item_share is 1.5"):
        intervened_split(data, max_item_share=1.5)
