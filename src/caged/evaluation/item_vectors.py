"""Vectors of the items, from a file, a frame or a model: how different the items of a list are by them.

A vector says by its direction what an item is like; of two items the cosine counts. An item without a vector, or with
one of zeros, says nothing and is left out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap
from caged.data.readers.columns import Column, Columns, ids_of
from caged.data.vector_files import NamedVectors, read_vectors, vectors_of_frame

NUMBERS_AT_ONCE = 1 << 20  # of the sums of lists: few enough to stay in the cache


@dataclass(frozen=True, eq=False)
class ItemVectors:
    """Row n of `vectors` belongs to row n of `ids`, whatever catalogue they meet."""

    where: str
    ids: IdMap
    vectors: Array  # float32 (n, K)

    @cached_property
    def checksum(self) -> str:
        """Equal whatever the order and format of a file."""
        digest = hashlib.sha256()
        for name in self.ids.values.cast(pa.large_string()).to_pylist():
            digest.update(f"{len(name)} {name}\n".encode())
        digest.update(f"{self.vectors.shape[1]}\n".encode())
        digest.update(np.ascontiguousarray(self.vectors, dtype="<f4").data)
        return digest.hexdigest()

    def at(self, rows: Array) -> UnitVectors:
        """In the rows of a catalogue: `rows` says of each item which vector is its own, -1 where it has none."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors, dtype=np.float64))
        known = (rows >= 0) & (lengths[rows] > 0)
        unit = np.zeros((len(rows) + 1, self.vectors.shape[1]), dtype=np.float32)
        found = self.vectors[rows[known]]
        unit[:-1][known] = np.divide(found, lengths[rows[known], None], out=found, casting="same_kind")
        return UnitVectors(unit, np.append(known, False), self.checksum)


@dataclass(frozen=True, eq=False)
class UnitVectors:
    """Of the items of a catalogue, each of length 1; zeros where there is none, and in one more row, where padding (-1)
    looks."""

    rows: Array  # float32 (items + 1, K)
    known: Array  # bool (items + 1,)
    checksum: str  # of what they were made of

    @property
    def notes(self) -> tuple[str, ...]:
        items = len(self.known) - 1
        lacking = items - int(np.count_nonzero(self.known))
        if not lacking:
            return ()
        left_out = "left out of intra_list_diversity"
        return (f"vectors: {lacking:,} of the {items:,} items have none, or one of zeros: {left_out}.",)

    def diversity(self, items: Array, k: int) -> Array:
        """1 - the mean cosine of all pairs among the first k items of each list; undefined for fewer than two.

        No pair is looked at: with s the sum of the n vectors, all pairs together have (|s|^2 - n) / (n (n - 1)).

        >>> vectors = ItemVectors("here", IdMap.range(3), np.array([[2, 0], [0, 1], [-1, 0]], dtype=np.float32))
        >>> vectors.at(np.array([0, 1, 2])).diversity(np.array([[0, 1, -1], [0, 2, 1], [2, -1, -1]]), 2).tolist()
        [1.0, 2.0, nan]
        """
        listed = items[:, :k]
        count = np.count_nonzero(self.known[listed], axis=1)
        alike = np.full(len(listed), np.nan)
        np.divide(self._squared_sums(listed) - count, count * (count - 1), out=alike, where=count > 1)
        return np.asarray(np.maximum(1 - alike, 0.0))

    def _squared_sums(self, listed: Array) -> Array:
        """|s|^2 of each list; some lists at a time, and of them place by place: memory does not grow with either."""
        width = self.rows.shape[1]
        step = max(1, NUMBERS_AT_ONCE // width)
        squares = np.empty(len(listed))
        for start in range(0, len(listed), step):
            some = listed[start : start + step]
            sums = np.zeros((len(some), width))
            for place in range(some.shape[1]):
                sums += self.rows[some[:, place]]
            squares[start : start + step] = np.square(sums, out=sums).sum(axis=1)
        return squares


def read_item_vectors(source: Any, columns: Columns) -> ItemVectors:
    """From a Parquet or safetensors file, a frame with an id and `vector`, or as they are."""
    if isinstance(source, ItemVectors):
        return source
    if isinstance(source, str | Path):
        where, named = str(source), read_vectors(Path(source), columns.item)
    else:
        where = "the frame of item vectors"
        named = vectors_of_frame(source, columns.item, where)
    ids = ids_of(Column(named.ids, columns.item, where), columns.ids)
    return ItemVectors(where, *NamedVectors(ids, named.vectors).by_id(where))
