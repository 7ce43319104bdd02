"""Small data for evaluation tests: the toy with hand-computed values, and random worlds with awkward corners."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.evaluation.groups import Grouping, grouping
from caged.evaluation.lists import Lists
from caged.evaluation.reference import Reference
from tests.evaluation.slow_reference import PAIRS, Slow

TOY = json.loads((Path(__file__).parent / "metrics_toy.json").read_text())


@dataclass
class World:
    """The same data as dictionaries (for the slow metrics) and as package objects."""

    user_count: int
    item_count: int
    train: PAIRS
    valid: PAIRS
    relevant: PAIRS
    items: dict[int, list[int]]  # user -> list

    def part(self, pairs: PAIRS) -> Interactions:
        return interactions(pairs, self.user_count, self.item_count)

    @property
    def reference(self) -> Reference:
        return Reference(self.part(self.train), self.part(self.valid), self.part(self.relevant))

    def grouped(self, chosen: Grouping) -> Reference:
        """The same with groups that somebody chose."""
        train = self.part(self.train)
        return Reference(train, self.part(self.valid), self.part(self.relevant), chosen.of(train))

    @property
    def lists(self) -> Lists:
        return make_lists(self.items)

    def slow(self, missing: str = "zero") -> Slow:
        return Slow(self.item_count, self.train, self.valid, self.relevant, self.items, missing)


def interactions(pairs: PAIRS, user_count: int, item_count: int) -> Interactions:
    flat = [(u, i) for u, items in pairs.items() for i in items]
    users, items = np.array(flat, dtype=np.int64).reshape(-1, 2).T
    return Interactions.build(users, items, user_ids=IdMap.range(user_count), item_ids=IdMap.range(item_count))


def make_lists(items: dict[int, list[int]]) -> Lists:
    users = np.repeat(np.array(list(items), dtype=np.int64), [len(row) for row in items.values()])
    return Lists.from_flat(users, np.array([i for row in items.values() for i in row], dtype=np.int64))


def toy_world() -> World:
    toy = TOY["toy"]

    def pairs(name: str) -> PAIRS:
        return {int(u): set(items) for u, items in toy[name].items()}

    lists = {int(u): items for u, items in toy["lists"].items()}
    return World(len(toy["users"]), toy["n_items"], pairs("train"), pairs("valid"), pairs("test"), lists)


def toy_groups() -> Grouping:
    """The families of `docs/metrics.md`: i3 has two genres, i10, i11 and u1 are in no group."""
    genres = [["Action"]] * 3 + [["Action", "Comedy"]] + [["Comedy"]] * 3 + [["Drama"]] * 3
    return grouping(
        item_groups=pa.table({"item_id": range(10), "genre": genres}),
        user_groups=pa.table({"user_id": [0, 2, 3, 4, 5], "age": ["young", "young", "old", "old", "old"]}),
    )


def toy_chosen() -> Grouping:
    """The same with the vectors of `docs/metrics.md`, of several lengths; i10 and i11 have none."""
    vectors = [[2.0, 0.0]] * 3 + [[1.0, 1.0]] + [[0.0, 3.0]] * 3 + [[-1.0, 0.0]] * 3
    given = grouping(item_vectors=pa.table({"item_id": range(10), "vector": vectors}))
    return replace(toy_groups(), vectors=given.vectors)


def masks_as_groups(names: tuple[str, str], first: Array, name: str = "kind") -> pa.Table:
    """A table that sorts every item into one of two groups."""
    return pa.table({"item_id": np.arange(len(first)), name: np.where(first, *names)})


def random_groups(rng: np.random.Generator, world: World) -> Grouping:
    """A family of items in up to two of four groups, and one of users in one of three; some are in none."""
    several = [
        rng.choice(list("abcd"), size=rng.integers(0, 3), replace=False).tolist() for _ in range(world.item_count)
    ]
    of_users = [rng.choice(["x", "y", "z", None]) for _ in range(world.user_count)]
    return grouping(
        item_groups=pa.table({"item_id": range(world.item_count), "shelf": several}),
        user_groups=pa.table({"user_id": range(world.user_count), "club": of_users}),
    )


def random_world(rng: np.random.Generator, user_count: int = 25, item_count: int = 40) -> World:
    """Skewed popularity with ties and items without interactions; short, missing and unmasked lists; users without a
    profile, without relevant items, and without anything."""
    weight = np.arange(1, item_count + 1) ** -1.0
    weight[rng.permutation(item_count)[: item_count // 4]] = 0.0
    train, valid, relevant, lists = {}, {}, {}, {}
    for u in range(user_count):
        profile = rng.random(item_count) < weight * rng.choice([0.0, 1.0, 2.0])
        seen = set(np.flatnonzero(profile).tolist())
        free = rng.permutation([i for i in range(item_count) if i not in seen]).tolist()
        train[u] = seen
        valid[u] = set(free[: rng.integers(0, 3)])
        relevant[u] = set(free[3 : 3 + rng.integers(0, 9)])
        if rng.random() < 0.8:
            lists[u] = rng.permutation(item_count)[: rng.integers(0, 13)].tolist()
    return World(user_count, item_count, train, valid, relevant, lists)
