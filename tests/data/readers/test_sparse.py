"""Sparse matrices of scipy, in memory and in .npz files."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from caged.data import Interactions, read_log
from caged.errors import DataError

DENSE = np.array([[0, 2.5, 0, 1], [0, 0, 0, 0], [4, 0, 0, 0]])
ROWS = [
    {"user_id": 0, "item_id": 1, "rating": 2.5},
    {"user_id": 0, "item_id": 3, "rating": 1.0},
    {"user_id": 2, "item_id": 0, "rating": 4.0},
]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_any_sparse_format(kind: str, container: Any) -> None:
    matrix = container(DENSE).asformat(kind)
    log = Interactions.from_csr(matrix)
    assert log.to_arrow().to_pylist() == ROWS
    assert (log.user_count, log.item_count) == (3, 4)  # empty rows and columns are part of the catalogue
    assert np.array_equal(matrix.toarray(), DENSE)


def test_rows_and_columns_can_be_named() -> None:
    log = Interactions.from_csr(sparse.csr_array(DENSE), user_ids=["zoe", "bob", "ann"], item_ids=[40, 30, 20, 10])
    assert log.to_arrow().to_pylist() == [
        {"user_id": "ann", "item_id": 40, "rating": 4.0},
        {"user_id": "zoe", "item_id": 10, "rating": 1.0},
        {"user_id": "zoe", "item_id": 30, "rating": 2.5},
    ]


def test_ones_are_no_ratings_zeros_no_interactions_and_repeats_add_up() -> None:
    entries = sparse.coo_array(([1, 1, 0, 2, -2], ([0, 1, 1, 2, 2], [0, 1, 0, 1, 1])), shape=(3, 2))
    log = Interactions.from_csr(entries)
    assert log.to_arrow().to_pylist() == [{"user_id": 0, "item_id": 0}, {"user_id": 1, "item_id": 1}]
    assert Interactions.from_csr(sparse.csr_array(DENSE != 0)).rating is None


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (DENSE, {}, "ndarray is not a scipy sparse matrix"),
        (sparse.csr_array(DENSE * 1j), {}, "type complex128; allowed are numbers"),
        (sparse.csr_array([[1.0, np.nan]]), {}, "holds nan in row 0, column 1; values must be finite"),
        (sparse.csr_array(DENSE), {"user_ids": ["a"]}, "1 user identifiers for 3 users"),
        (sparse.csr_array(DENSE), {"item_ids": [1, 2, 2, 3]}, "1 item identifiers are repeated"),
        (sparse.coo_array([1, 2, 3]), {}, "has 1 dimensions"),
    ],
)
def test_bad_matrices(matrix: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Interactions.from_csr(matrix, **options)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_npz_files(tmp_path: Path, kind: str) -> None:
    """A file is read like every other: rows and columns without an interaction occur nowhere."""
    sparse.save_npz(tmp_path / "log.npz", sparse.csr_array(DENSE).asformat(kind))
    log = read_log(tmp_path / "log.npz")
    assert log.to_arrow().to_pylist() == ROWS
    assert (log.user_count, log.item_count) == (2, 3)
    assert log.fingerprint == Interactions.from_csr(sparse.csr_array(DENSE)).fingerprint
    with pytest.raises(DataError, match="no named columns"):
        read_log(tmp_path / "log.npz", user_column="u")


def test_a_damaged_npz_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    sparse.save_npz(path, sparse.csr_array(DENSE))
    path.write_bytes(path.read_bytes()[:-30])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises(DataError, match="not a readable sparse matrix"):
            read_log(path)
        gc.collect()
    assert [str(one.message) for one in told if str(path) in str(one.message)] == []


def test_damaged_npz_files(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    sparse.save_npz(path, sparse.csr_array(DENSE))
    whole = path.read_bytes()
    np.savez(tmp_path / "other.npz", a=[1])
    np.savez(tmp_path / "object.npz", data=np.array([{}], dtype=object))
    huge = sparse.coo_array(([1.0], ([0], [0])), shape=(2**40, 2**40))
    sparse.save_npz(tmp_path / "huge.npz", huge)
    for content in (b"", b"not a zip", whole[:-30], whole[:60], (tmp_path / "other.npz").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a readable sparse matrix"):
            read_log(path)
    with pytest.raises(DataError, match="not a readable sparse matrix"):  # a pickle, which is never opened
        read_log(tmp_path / "object.npz")
    with pytest.raises(DataError, match="has 1 user"):  # a shape that no memory holds does no harm
        read_log(tmp_path / "huge.npz")
