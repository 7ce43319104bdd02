"""Logs to split, and which part a pair came to."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from caged.data import (
    Interactions,
    Split,
)

Pair = tuple[int, int]


def pairs_of(part: Interactions | None) -> list[Pair]:
    assert part is not None
    return list(zip(part.users.tolist(), part.items.tolist(), strict=True))


def assignment(parts: Split) -> dict[Pair, str]:
    """Pair -> part; a pair in two parts or in none is a failure where the number of pairs is compared."""
    return {pair: name for name, part in parts.parts.items() for pair in pairs_of(part)}


@st.composite
def logs(draw: st.DrawFn, *, smallest: int = 4) -> Interactions:
    """Logs with many equal times; the ids are the rows, since all that are drawn occur."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), min_size=smallest, max_size=60, unique=True))
    time = draw(st.lists(st.integers(-3, 12), min_size=len(pairs), max_size=len(pairs)))
    return Interactions.from_ids([u for u, _ in pairs], [i for _, i in pairs], timestamp=np.array(time))


def random_log(seed: int = 3, users: int = 60, items: int = 45, count: int = 900) -> Interactions:
    """Item popularity falls with its number."""
    generator = np.random.default_rng(seed)
    drawn = (generator.random(count) ** 2 * items).astype(int)
    return Interactions.from_ids(
        generator.integers(0, users, count), drawn, timestamp=generator.integers(0, 500, count)
    )


def shuffled(data: Interactions, seed: int = 9) -> Interactions:
    """The same log from a file whose rows stand in another order."""
    order = np.random.default_rng(seed).permutation(len(data))
    table = data.to_arrow().take(order)
    return Interactions.from_ids(table["user_id"], table["item_id"], timestamp=table["timestamp"].to_numpy())


def marked_log(marks: Any = None, count: int = 600) -> Interactions:
    generator = np.random.default_rng(12)
    users, items = generator.integers(0, 30, count), generator.integers(0, 80, count)
    source = np.array(["popular", "model", "explore"], dtype=object)[generator.integers(0, 3, count)]
    columns = {"source": source if marks is None else np.asarray(marks)[np.arange(count) % len(marks)]}
    return Interactions.from_ids(users, items, columns=columns, timestamp=np.arange(count), rating=users + items / 100)
