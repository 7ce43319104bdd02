"""A model in memory: any items, made-up vectors, three users."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from caged.products.serve import Manifest, ServedModel
from caged.products.serve.manifest import FoldInAs
from caged.products.serve.model import Names

WIDTH = 4


def small_model(items: pa.Table, *, by_cosine: bool = False) -> ServedModel:
    count = len(items)
    draw = np.random.default_rng(count)
    arrays = {
        "user_vectors": draw.standard_normal((3, WIDTH)).astype(np.float32),
        "item_vectors": draw.standard_normal((count, WIDTH)).astype(np.float32),
        "user_spread": np.ones(3, dtype=np.float32),
        "seen_offsets": np.array([0, 1, 2, 2]),
        "seen_items": np.array([0, 1], dtype=np.int32),
        "seen_trained": np.ones(2, dtype=bool),
        "fold_table": draw.standard_normal((count, WIDTH)).astype(np.float32),
        "fold_weights": draw.random(count).astype(np.float32),
    }
    manifest = Manifest(
        method="made-up",
        kind="vectors",
        users=3,
        items=count,
        width=WIDTH,
        dtype="float32",
        less_popular=0.0,
        fold_in=FoldInAs(-0.5, by_cosine),
        fold_in_refused="",
        attributes={},
        origin={},
        audit={},
        price={},
    )
    users = Names(pa.array(["ann", "bob", "eve"]))
    return ServedModel(Path("nowhere"), manifest, users, Names(items["item_id"].combine_chunks()), items, arrays)
