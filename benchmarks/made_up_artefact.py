"""An artefact of any size without training: vectors whose lengths grow with popularity, as trained ones do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from caged.data.ids import Array
from caged.files import new_folder, write_json
from caged.products.serve import MANIFEST, Manifest
from caged.products.serve.manifest import FoldInAs, checksum
from caged.products.serve.model import ITEMS, USERS

HAD = 20  # items per user
CATEGORIES = 100  # a filter on one keeps 1%


def write_made_up(out: Path, *, items: int, users: int, width: int, seed: int = 1) -> Manifest:
    """Degrees fall like 1/rank^0.8; an item vector has the length 0.5 + log(1 + degree), a user's has 1."""
    draw = np.random.default_rng(seed)
    degrees = np.maximum(1, 0.05 * users * HAD / np.arange(1, items + 1) ** 0.8).astype(np.int64)
    degrees = draw.permutation(degrees)
    item_vectors = _directions(draw, items, width) * (0.5 + np.log1p(degrees))[:, None]
    arrays: dict[str, Array] = {
        "item_vectors": item_vectors.astype(np.float32),
        "user_vectors": _directions(draw, users, width).astype(np.float32),
        "user_spread": np.ones(users, dtype=np.float32),
        "seen_offsets": np.arange(users + 1, dtype=np.int64) * HAD,
        "seen_items": np.sort(draw.integers(0, items, (users, HAD)), axis=1).astype(np.int32).ravel(),
        "seen_trained": np.ones(users * HAD, dtype=bool),
        "fold_table": item_vectors.astype(np.float32),
        "fold_weights": (1 / np.sqrt(degrees)).astype(np.float32),
    }
    names = [f"item {row:,}" for row in range(items)]
    categories = draw.integers(0, CATEGORIES, items)
    tables = {
        USERS: pa.table({"user_id": np.arange(users)}),
        ITEMS: pa.table({"item_id": np.arange(items), "degree": degrees, "title": names, "category": categories}),
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
            attributes={"category": "int64"},
            origin={"dataset": "made up", "seed": seed},
            audit={},
            price={},
            files={file.name: checksum(file) for file in sorted(folder.iterdir())},
        )
        write_json(folder / MANIFEST, manifest.to_json())
    return manifest


def _directions(draw: np.random.Generator, count: int, width: int) -> Array:
    rows = draw.standard_normal((count, width))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
