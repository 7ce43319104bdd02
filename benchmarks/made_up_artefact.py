"""An artefact of any size without training: vectors whose lengths grow with popularity, as trained ones do."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caged.data.ids import Array
from caged.files import new_folder, write_json
from caged.products.serve import MANIFEST, Manifest
from caged.products.serve.index_build import add_index
from caged.products.serve.manifest import FoldInAs, checksum
from caged.products.serve.model import ITEMS, USERS
from caged.products.serve.moments import Moments

HAD = 20  # items per user, and on average users per item
CATEGORIES = 100  # a filter on one keeps 1%
HALVES = 2  # a filter on one keeps half
TOPICS = 1000
ALIKE = 0.6  # of the squared length of a direction: what it shares with its topics


class MadeUp(NamedTuple):
    """Vectors as of a trained model."""

    users: Array  # (M, K) of length 1
    items: Array  # (N, K)
    degrees: Array  # (N,)


def made_up_vectors(items: int, users: int, width: int, *, alike: float = ALIKE, seed: int = 1) -> MadeUp:
    """Degrees fall like 1/rank^0.8; an item has a topic and the length 0.5 + log(1 + degree), a user has three topics.

    `alike` = 0 has no topics: directions are all over the place, and no index finds anything to go by.
    """
    draw = np.random.default_rng(seed)
    falling = np.arange(1, items + 1) ** -0.8
    degrees = draw.permutation(np.maximum(1, HAD * items * falling / falling.sum()).astype(np.int64))
    topics = _directions(draw, TOPICS, width)
    vectors = _around(draw, topics, items, 1, alike) * (0.5 + np.log1p(degrees))[:, None]
    people = _around(draw, topics, users, 3, alike)
    return MadeUp(people.astype(np.float32), vectors.astype(np.float32), degrees)


def write_made_up(
    out: Path, *, items: int, users: int, width: int, alike: float = ALIKE, index: bool = False, seed: int = 1
) -> Manifest:
    """All of an artefact, on request with its index."""
    draw = np.random.default_rng(seed + 1)
    people, item_vectors, degrees = made_up_vectors(items, users, width, alike=alike, seed=seed)
    had = np.sort(draw.integers(0, items, (users, HAD)), axis=1).astype(np.int32)
    moments = Moments.of(item_vectors)
    spread = [moments.spread(person, item_vectors[rows]) for person, rows in zip(people, had, strict=True)]
    arrays: dict[str, Array] = {
        "item_vectors": item_vectors,
        "item_moments": moments.table,
        "user_vectors": people,
        "user_spread": np.array(spread, dtype=np.float32),
        "seen_offsets": np.arange(users + 1, dtype=np.int64) * HAD,
        "seen_items": had.ravel(),
        "seen_trained": np.ones(users * HAD, dtype=bool),
        "fold_table": item_vectors,
        "fold_weights": (1 / np.sqrt(degrees)).astype(np.float32),
    }
    names = [f"item {row:,}" for row in range(items)]
    about = {"category": draw.integers(0, CATEGORIES, items), "half": draw.integers(0, HALVES, items)}
    tables = {
        USERS: pa.table({"user_id": np.arange(users)}),
        ITEMS: pa.table({"item_id": np.arange(items), "degree": degrees, "title": names, **about}),
    }
    with new_folder(out) as folder:
        for name, values in arrays.items():
            np.save(folder / f"{name}.npy", values, allow_pickle=False)
        for name, table in tables.items():
            with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table.combine_chunks())
        manifest = Manifest(
            method="made-up",
            kind="vectors",
            users=users,
            items=items,
            width=width,
            dtype="float32",
            less_popular=0.0,
            fold_in=FoldInAs(-0.5, by_cosine=False),
            fold_in_refused="",
            attributes=dict.fromkeys(about, "int64"),
            origin={"dataset": "made up", "seed": seed},
            audit={},
            price={},
            files={file.name: checksum(file) for file in sorted(folder.iterdir())},
        )
        write_json(folder / MANIFEST, manifest.to_json())
        return add_index(folder) if index else manifest


def _around(draw: np.random.Generator, topics: Array, count: int, several: int, alike: float) -> Array:
    """Directions that share `several` topics each."""
    shared = topics[draw.integers(0, len(topics), (several, count))].sum(axis=0)
    return _unit(np.sqrt(alike) * _unit(shared) + np.sqrt(1 - alike) * _directions(draw, count, topics.shape[1]))


def _directions(draw: np.random.Generator, count: int, width: int) -> Array:
    return _unit(draw.standard_normal((count, width), dtype=np.float32))


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
