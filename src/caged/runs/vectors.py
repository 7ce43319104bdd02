"""The vectors behind a model's scores, for use elsewhere: a search index, another model, a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap
from caged.data.vector_files import NamedVectors, vector_table
from caged.data.vector_files import write_vectors as write_file
from caged.errors import ConfigError
from caged.evaluation.item_vectors import ItemVectors
from caged.files import new_folder, write_json
from caged.graph import Tables
from caged.models import Scorer
from caged.runs.artefact import Artefact

USERS, ITEMS, MANIFEST = "users.parquet", "items.parquet", "vectors.json"
SCORE = "the score of a user for an item is the dot product of their vectors"


@dataclass(frozen=True, eq=False)
class Vectors:
    """`users[n]` is the vector of `user_ids[n]`, `items[n]` that of `item_ids[n]`; a score is their dot product."""

    user_ids: pa.Array  # as the log writes them
    users: Array  # float32 (M, K)
    item_ids: pa.Array
    items: Array  # float32 (N, K)

    @property
    def width(self) -> int:
        return int(self.items.shape[1])

    def __repr__(self) -> str:
        return f"Vectors({len(self.users):,} users, {len(self.items):,} items, {self.width} numbers each)"

    def user_table(self) -> pa.Table:
        """`user_id, vector`."""
        return vector_table("user_id", NamedVectors(self.user_ids, self.users))

    def item_table(self) -> pa.Table:
        """`item_id, vector`."""
        return vector_table("item_id", NamedVectors(self.item_ids, self.items))


def vectors_of(name: str, fitted: Artefact) -> Vectors:
    """Those that `recommend` ranks by; an error where the score is no dot product."""
    users, items = (_on_host(table) for table in _tables(name, fitted.scorer()))
    return Vectors(_ids(fitted.train.user_ids), users, _ids(fitted.train.item_ids), items)


def item_vectors_of(name: str, fitted: Artefact) -> ItemVectors:
    """Those of the model as it was trained: an adjustment changes whom an item is listed for, not what it is."""
    items = _on_host(_tables(name, fitted.method.scorer()).items)
    return ItemVectors("the run", fitted.train.item_ids, items)


def _tables(name: str, scorer: Scorer) -> Tables:
    if scorer.vectors is None:
        raise ConfigError(
            f"{name} has no vectors: its scores are no dot products of a user's and an item's; use a method with "
            f"embeddings, such as lightgcn"
        )
    return scorer.vectors


def write_vectors(vectors: Vectors, folder: Path, origin: dict[str, Any]) -> None:
    """`users.parquet`, `items.parquet` and `vectors.json` in a new folder, complete or not at all."""
    with new_folder(folder) as temporary:
        write_file(temporary / USERS, "user_id", NamedVectors(vectors.user_ids, vectors.users))
        write_file(temporary / ITEMS, "item_id", NamedVectors(vectors.item_ids, vectors.items))
        counted = {"users": len(vectors.users), "items": len(vectors.items), "width": vectors.width}
        write_json(temporary / MANIFEST, {**origin, **counted, "score": SCORE})


def _on_host(table: Any) -> Array:
    return np.array(table.detach().float().cpu().numpy())  # a copy: the model's own must not change with it


def _ids(ids: IdMap) -> pa.Array:
    return ids.values if ids.are_integers else ids.values.cast(pa.string())
