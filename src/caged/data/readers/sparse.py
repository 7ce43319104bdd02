"""Sparse matrices of scipy: rows are users, columns are items, stored values are ratings."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.readers.columns import Columns
from caged.errors import DataError

DAMAGED = (  # what numpy and scipy raise for files that are damaged, truncated or something else altogether
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    EOFError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
)


class Entries(NamedTuple):
    users: Array  # int64 (E,)
    items: Array  # int64 (E,)
    rating: Array | None  # float64 (E,); None where every stored value is 1
    shape: tuple[int, int]


def from_csr(matrix: Any, user_ids: Any = None, item_ids: Any = None) -> Interactions:
    """From a scipy matrix in CSR or any other sparse format, one row per user and one column per item.

    A stored zero is no interaction, repeated entries add up as everywhere in scipy, and the values become ratings
    unless all of them are 1. `user_ids` and `item_ids` name the rows and columns; left out, they are their own
    numbers. Every row and column is part of the catalogue, also an empty one.
    """
    from scipy import sparse

    where = "the sparse matrix"
    if not sparse.issparse(matrix):
        raise DataError(f"{type(matrix).__name__} is not a scipy sparse matrix; convert it with scipy.sparse.csr_array")
    entries = _entries(matrix, where)
    users = _named_rows("user", user_ids, entries.shape[0])
    items = _named_rows("item", item_ids, entries.shape[1])
    return Interactions.build(
        users.rows[entries.users],
        items.rows[entries.items],
        user_ids=users.ids,
        item_ids=items.ids,
        rating=entries.rating,
    )


def read_npz(path: Path, columns: Columns) -> pa.Table:
    """A matrix that scipy.sparse.save_npz wrote; row and column numbers are the identifiers."""
    from scipy import sparse

    if not columns.name_nothing:
        raise DataError(
            f"{path} is a sparse matrix and has no named columns; leave the column options out, "
            f"or use .csv, .tsv or .parquet"
        )
    try:
        with path.open("rb") as handle:  # given a path, scipy leaves a damaged file open
            entries = _entries(sparse.load_npz(handle), str(path))
    except DAMAGED as error:
        reason = str(error)[:200].splitlines()[0] if str(error) else "damaged"
        raise DataError(
            f"{path} is not a readable sparse matrix ({reason}); write it again with scipy.sparse.save_npz"
        ) from error
    table = {columns.user: entries.users, columns.item: entries.items}
    return pa.table(table if entries.rating is None else {**table, columns.rating: entries.rating})


def _entries(matrix: Any, where: str) -> Entries:
    if matrix.ndim != 2:
        raise DataError(f"{where} has {matrix.ndim} dimensions; it needs two, users and items")
    if matrix.dtype.kind not in "buif":
        raise DataError(f"{where} holds values of type {matrix.dtype}; allowed are numbers and booleans")
    entries = matrix.tocoo(copy=True)  # COO: no allocation in the size of the shape, which a damaged file may claim
    entries.sum_duplicates()
    bad = ~np.isfinite(entries.data)
    if bad.any():
        place = int(bad.argmax())
        raise DataError(
            f"{where} holds {entries.data[place]} in row {entries.row[place]}, column {entries.col[place]}; "
            f"values must be finite numbers"
        )
    stored = entries.data != 0
    users, items = entries.row[stored].astype(np.int64), entries.col[stored].astype(np.int64)
    values = entries.data[stored]
    rating = None if bool((values == 1).all()) else values.astype(np.float64)
    return Entries(users, items, rating, (int(entries.shape[0]), int(entries.shape[1])))


class _NamedRows(NamedTuple):
    ids: IdMap
    rows: Array  # matrix row -> row number in `ids`


def _named_rows(kind: str, names: Any, count: int) -> _NamedRows:
    if names is None:
        return _NamedRows(IdMap.range(count), np.arange(count))
    if len(names) != count:
        raise DataError(f"{len(names)} {kind} identifiers for {count} {kind}s of the matrix; give one for each")
    ids, rows = IdMap.numbered(names)
    if len(ids) != count:
        raise DataError(f"{count - len(ids)} {kind} identifiers are repeated; each names one {kind} of the matrix")
    return _NamedRows(ids, rows)
