"""Vectors in files: what was written is read again, and what does not fit is one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from caged.data.ids import IdMap
from caged.data.vector_files import NamedVectors, read_vectors, write_vectors
from caged.errors import ConfigError, DataError

NUMBERS = np.arange(6, dtype=np.float32).reshape(3, 2)
TEXT, INTEGERS = pa.array(["é", "a", "a b"], pa.large_string()), pa.array([7, 3, 2**40])


@pytest.mark.parametrize("suffix", [".parquet", ".safetensors"])
@pytest.mark.parametrize("ids", [TEXT, INTEGERS], ids=["text", "integers"])
def test_what_is_written_is_read_again(tmp_path: Path, suffix: str, ids: pa.Array) -> None:
    path = tmp_path / f"items{suffix}"
    write_vectors(path, "item_id", NamedVectors(ids, NUMBERS))
    found = read_vectors(path, "item_id")
    assert found.ids.to_pylist() == ids.to_pylist()
    np.testing.assert_array_equal(found.vectors, NUMBERS)


def test_vectors_come_in_the_rows_of_the_log(tmp_path: Path) -> None:
    found = NamedVectors(TEXT, NUMBERS).of(IdMap.of(["a b", "é"]), "here")
    assert found.tolist() == [[4.0, 5.0], [0.0, 1.0]]


def test_an_id_without_a_vector_is_named() -> None:
    with pytest.raises(DataError, match=r"no vector for 1 of the 2 ids of the log, e\.g\. 'b'"):
        NamedVectors(TEXT, NUMBERS).of(IdMap.of(["a", "b"]), "here")


def test_one_column_per_number_is_a_vector_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": INTEGERS, "x": [0.5, 1, 2], "y": [3.0, 4, 5]}), tmp_path / "wide.parquet")
    found = read_vectors(tmp_path / "wide.parquet", "user_id")
    assert found.ids.to_pylist() == INTEGERS.to_pylist()
    assert found.vectors.tolist() == [[0.5, 3], [1, 4], [2, 5]]


def refusal(tmp_path: Path, table: dict[str, object]) -> str:
    pq.write_table(pa.table(table), tmp_path / "odd.parquet")
    with pytest.raises(DataError) as found:
        read_vectors(tmp_path / "odd.parquet", "item_id").of(IdMap.of([1]), "odd.parquet")
    return str(found.value)


def test_odd_files_are_one_sentence(tmp_path: Path) -> None:
    assert "differ in length" in refusal(tmp_path, {"item_id": [1, 2], "vector": [[1.0], [1.0, 2.0]]})
    assert "names an id twice" in refusal(tmp_path, {"item_id": [1, 1], "vector": [[1.0], [2.0]]})
    assert "infinite or none" in refusal(tmp_path, {"item_id": [1], "vector": [[float("nan")]]})
    assert "empty cells" in refusal(tmp_path, {"item_id": [1, None], "vector": [[1.0], [2.0]]})
    assert "ids are integers or text" in refusal(tmp_path, {"item_id": [1.5], "vector": [[1.0]]})
    assert "neither a column 'vector'" in refusal(tmp_path, {"item_id": [1], "title": ["x"]})


def test_other_tensors_are_named(tmp_path: Path) -> None:
    save_file({"weight": NUMBERS}, tmp_path / "other.safetensors")
    with pytest.raises(DataError, match="holds weight; it needs 'vectors'"):
        read_vectors(tmp_path / "other.safetensors", "item_id")


def test_damaged_missing_and_other_files(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    (tmp_path / "torn.safetensors").write_bytes(b"xx")
    for name in ("torn.parquet", "torn.safetensors"):
        with pytest.raises(DataError, match="cannot be read"):
            read_vectors(tmp_path / name, "item_id")
    with pytest.raises(DataError, match="there is no file"):
        read_vectors(tmp_path / "none.parquet", "item_id")
    with pytest.raises(ConfigError, match=r"end in \.parquet or \.safetensors"):
        read_vectors(tmp_path / "x.npy", "item_id")
