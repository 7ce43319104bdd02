"""Differences of pooled metrics against truth that is known: two recommenders of equal quality, and a worse one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.evaluation.lists import Lists
from caged.evaluation.measure import measure
from caged.evaluation.metrics import MetricKey, reported_keys
from caged.evaluation.outcome import Measured
from caged.evaluation.pooled_difference import pooled, pooled_differences
from caged.evaluation.reference import Reference
from caged.evaluation.stored import StoredUsers, UserTable

K, ITEMS, POPULAR, LENGTH = 10, 60, 12, 10
POOLED = tuple(pooled(reported_keys([K])))


class World:
    """Users with a taste for niche items of their own; every recommender draws from the same taste."""

    def __init__(self, users: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.users = users
        self.niche_taste = self.rng.beta(2, 3, users)
        train = self._chosen(8, self.niche_taste)
        self.relevant = self._chosen(5, self.niche_taste, without=train)
        self.seen = train
        self.reference = Reference(self._interactions(train), relevant=self._interactions(self.relevant))

    def _chosen(self, count: int, niche: np.ndarray, without: np.ndarray | None = None) -> np.ndarray:
        """(users, items), a bool; drawn without replacement, niche items with the user's chance."""
        weights = np.where(
            np.arange(ITEMS) < POPULAR, (1 - niche[:, None]) / POPULAR, niche[:, None] / (ITEMS - POPULAR)
        )
        keys = self.rng.exponential(size=weights.shape) / np.maximum(weights, 1e-12)
        if without is not None:
            keys[without] = np.inf
        chosen = np.zeros(keys.shape, dtype=bool)
        np.put_along_axis(chosen, np.argsort(keys, axis=1)[:, :count], True, axis=1)
        return chosen

    def _interactions(self, chosen: np.ndarray) -> Interactions:
        users, items = np.nonzero(chosen)
        return Interactions.build(users, items, user_ids=IdMap.range(self.users), item_ids=IdMap.range(ITEMS))

    def recommender(self, niche_lost: float = 0.0) -> StoredUsers:
        """Lists of the user's taste, moved to popular items by `niche_lost`."""
        shown = self._chosen(LENGTH, self.niche_taste * (1 - niche_lost), without=self.seen)
        items = np.nonzero(shown)[1].reshape(self.users, LENGTH)
        lists = Lists(np.arange(self.users), self.rng.permuted(items, axis=1))
        measured = Measured(measure(lists, self.reference, (K,)), self.reference)
        return StoredUsers(UserTable.of_table(measured.per_user), UserTable.of_table(measured.sums))


def alarms(users: int, worlds: range, *, niche_lost: float = 0.0) -> Counter[tuple[MetricKey, str]]:
    """In how many worlds each key surely drops, and in how many it surely rises, from one recommender to another."""
    found: Counter[tuple[MetricKey, str]] = Counter()
    for seed in worlds:
        world = World(users, seed)
        before, after = world.recommender(), world.recommender(niche_lost)
        for key, (_, interval) in pooled_differences([before], [after], POOLED).items():
            if interval is not None:
                found.update([(key, "drops")] * (interval.high < 0) + [(key, "rises")] * (interval.low > 0))
    return found


def test_the_difference_is_that_of_the_values_and_its_interval_that_of_the_pairs() -> None:
    world = World(200, seed=3)
    before, after = world.recommender(), world.recommender(niche_lost=0.5)
    key = MetricKey.parse(f"exposure_rate@{K}/niche")
    found = pooled_differences([before], [after], [key])[key]
    shown = [side.sums["listed_unseen@10/niche"].to_numpy() for side in (before, after)]
    eligible = before.sums["eligible/niche"].to_numpy()
    assert found.difference == pytest.approx((shown[1].sum() - shown[0].sum()) / eligible.sum())
    # The denominator is the same on both sides, so the interval is that of a ratio of sums.
    change = shown[1] - shown[0]
    residual = change - found.difference * eligible
    error = np.sqrt(np.square(residual).sum()) / eligible.sum()
    assert found.interval is not None
    assert found.interval.high - found.interval.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_a_recommender_is_not_surely_unlike_itself() -> None:
    side = World(60, seed=4).recommender()
    found = pooled_differences([side], [side], POOLED)
    assert set(found) == set(POOLED)
    assert all(one.difference == 0 and one.interval is not None for one in found.values())
    assert all(one.interval.low <= 0 <= one.interval.high for one in found.values() if one.interval)


def test_one_drawn_again_is_seldom_surely_unlike_and_a_worse_one_is() -> None:
    assert max(alarms(100, range(6)).values(), default=0) <= 1
    worse = alarms(100, range(4), niche_lost=0.5)
    assert worse[MetricKey.parse(f"exposure_rate@{K}/niche"), "drops"] == 4
    assert worse[MetricKey.parse(f"delta_gap@{K}"), "rises"] == 4


def test_keys_of_users_in_common_only() -> None:
    """Without common users there is nothing to pair; keys that are no sums over users have no place here."""
    world = World(20, seed=1)
    one = world.recommender()
    elsewhere = one.sums.users.numbers + 1000
    shifted = UserTable(one.sums.schema, lambda name: one.sums[name] if name != "user_id" else _chunked(elsewhere))
    assert pooled_differences([one], [StoredUsers(one.per_user, shifted)], POOLED) == {}
    assert pooled_differences([one], [one], [MetricKey("gini", K), MetricKey("recall", K)]) == {}


def _chunked(values: np.ndarray) -> pa.ChunkedArray:
    return pa.chunked_array([values])


@pytest.mark.slow
@pytest.mark.parametrize("users", [50, 200])
def test_false_alarms(users: int) -> None:
    """Between two recommenders of equal quality a gate on any key, in either direction, seldom finds a sure change."""
    worlds = 400
    found = alarms(users, range(worlds))
    rates = {f"{key} {way}": found[key, way] / worlds for key in POOLED for way in ("drops", "rises")}
    print({name: f"{rate:.1%}" for name, rate in rates.items()})
    assert np.mean(list(rates.values())) <= 0.04  # 2.5% if intervals were perfect
    assert max(rates.values()) <= 0.05
