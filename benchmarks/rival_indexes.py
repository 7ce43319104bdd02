"""Indexes that could stand in the place of the one of `caged serve`, each over vectors with the column of the knob.

All propose candidates that are then scored exactly. Those by distance get one more column, which makes the nearest item
the one with the largest product: sqrt(L^2 - |v|^2), L the length of the longest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from caged.data.ids import Array

Search = Callable[[Array, int, int], Array]  # queries, candidates, setting -> rows, -1 where there is none


class Rival(NamedTuple):
    """How to build one, and what it can be set to."""

    build: Callable[[Array], tuple[Search, int]]  # table -> search and bytes
    candidates: int
    settings: Sequence[int]  # lists to read, or width of the search
    package: str = "faiss"


def ivf(kind: str) -> Callable[[Array], tuple[Search, int]]:
    """Lists by k-means; `kind` says how faiss stores the vectors in them."""

    def build(table: Array) -> tuple[Search, int]:
        faiss = import_module("faiss")
        index = faiss.index_factory(table.shape[1], f"IVF1024,{kind}", faiss.METRIC_INNER_PRODUCT)
        index.train(table[np.random.default_rng(1).choice(len(table), min(len(table), 40 * 1024), replace=False)])
        index.add(table)

        def search(queries: Array, count: int, probes: int) -> Array:
            found: Array = index.search(queries, count, params=faiss.SearchParametersIVF(nprobe=probes))[1]
            return found

        return search, len(faiss.serialize_index(index))

    return build


def hnsw(*, by_distance: bool) -> Callable[[Array], tuple[Search, int]]:
    def build(table: Array) -> tuple[Search, int]:
        faiss = import_module("faiss")
        stored = lengthened(table) if by_distance else table
        metric = faiss.METRIC_L2 if by_distance else faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWFlat(stored.shape[1], 32, metric)
        index.hnsw.efConstruction = 80
        index.add(stored)

        def search(queries: Array, count: int, width: int) -> Array:
            asked = with_zero(queries) if by_distance else queries
            found: Array = index.search(asked, count, params=faiss.SearchParametersHNSW(efSearch=width))[1]
            return found

        return search, len(faiss.serialize_index(index))

    return build


def usearch(*, by_distance: bool) -> Callable[[Array], tuple[Search, int]]:
    def build(table: Array) -> tuple[Search, int]:
        library = import_module("usearch.index")
        stored = lengthened(table) if by_distance else table
        metric = "l2sq" if by_distance else "ip"
        index: Any = library.Index(ndim=stored.shape[1], metric=metric, dtype="f32", connectivity=32, expansion_add=80)
        index.add(np.arange(len(stored)), stored, threads=2)

        def search(queries: Array, count: int, width: int) -> Array:
            index.expansion_search = width
            asked = with_zero(queries) if by_distance else queries
            found: Array = index.search(asked, count, threads=1).keys.astype(np.int64).reshape(len(queries), -1)
            return found

        return search, int(index.memory_usage)

    return build


def lengthened(table: Array) -> Array:
    """One more column, after which all rows have the same length."""
    squares = np.square(table, dtype=np.float64).sum(axis=1)
    return np.asarray(np.c_[table, np.sqrt(squares.max() - squares)], dtype=np.float32)


def with_zero(queries: Array) -> Array:
    return np.asarray(np.c_[queries, np.zeros(len(queries))], dtype=np.float32)


PROBES = (16, 64, 256)
WIDTHS = (64, 256, 1024)
RIVALS = {
    "IVF, float32": Rival(ivf("Flat"), 20, PROBES),
    "IVF, 8 bits": Rival(ivf("SQ8"), 200, PROBES),
    "IVF, 4 bits, fast scan": Rival(lambda table: ivf(f"PQ{table.shape[1]}x4fs")(table), 1000, (64, 256, 1024)),
    "HNSW by product": Rival(hnsw(by_distance=False), 20, WIDTHS),
    "HNSW by distance": Rival(hnsw(by_distance=True), 20, WIDTHS),
    "usearch by product": Rival(usearch(by_distance=False), 20, WIDTHS, "usearch"),
    "usearch by distance": Rival(usearch(by_distance=True), 20, WIDTHS, "usearch"),
}
