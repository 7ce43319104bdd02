"""Vectors of users or items in a file: identifiers as their owner wrote them, and a row of numbers for each.

Parquet: a column of identifiers and `vector`, a list of numbers of one length (or one column per number). safetensors:
the tensor `vectors` (n, K), and beside it `ids` (integers) or `ids.utf8` and `ids.offsets` (text, as Arrow has it).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from caged.data.ids import Array, IdMap, is_text
from caged.errors import ConfigError, DataError
from caged.files import replacing

SUFFIXES = (".parquet", ".safetensors")
VECTOR, IDS, UTF8, OFFSETS = "vector", "ids", "ids.utf8", "ids.offsets"


class NamedVectors(NamedTuple):
    """Row n of `vectors` belongs to `ids[n]`."""

    ids: pa.Array  # int64 or large_string
    vectors: Array  # float32 (n, K)

    def of(self, wanted: IdMap, where: str) -> Array:
        """The vectors in the rows of `wanted`; one that is missing is an error, further ones are left out."""
        found = IdMap.of(self.ids)
        if len(found) < len(self.ids):
            raise DataError(f"{where} names an id twice; keep one vector for each")
        rows = found.rows(wanted.values)
        if bool((rows < 0).any()):
            example = wanted.values.filter(pa.array(rows < 0))[0].as_py()
            raise DataError(
                f"{where} has no vector for {int((rows < 0).sum()):,} of the {len(wanted):,} ids of the log, e.g. "
                f"{example!r}; write one for each, or leave them out of the log"
            )
        place = np.empty(len(found), dtype=np.int64)
        place[found.rows(self.ids)] = np.arange(len(self.ids))
        return np.asarray(self.vectors[place[rows]])


def check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"vectors are kept in files that end in .parquet or .safetensors; {path} does not")


def write_vectors(path: Path, name: str, named: NamedVectors) -> None:
    """`name` is that of the column of identifiers, such as item_id."""
    check_suffix(path)
    if path.suffix == ".safetensors":
        vectors = np.ascontiguousarray(named.vectors, dtype=np.float32)
        with replacing(path) as temporary:
            save_file({**_packed(named.ids), "vectors": vectors}, temporary)
        return
    with replacing(path) as temporary, temporary.open("wb") as handle:
        pq.write_table(vector_table(name, named), handle, compression="zstd")


def vector_table(name: str, named: NamedVectors) -> pa.Table:
    """A column of identifiers called `name`, and the column `vector`."""
    flat = pa.array(np.ascontiguousarray(named.vectors, dtype=np.float32).reshape(-1))
    return pa.table({name: named.ids, VECTOR: pa.FixedSizeListArray.from_arrays(flat, named.vectors.shape[1])})


def read_vectors(path: Path, name: str) -> NamedVectors:
    """`name` is the column of identifiers; where there is none of that name, the first column is taken."""
    check_suffix(path)
    try:
        found = _from_safetensors(path) if path.suffix == ".safetensors" else _from_parquet(path, name)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; give a file of vectors") from None
    except (OSError, pa.ArrowException, SafetensorError) as error:
        raise DataError(f"{path} cannot be read ({error}); write it again") from error
    if len(found.ids) != len(found.vectors) or found.vectors.ndim != 2 or found.vectors.size == 0:
        raise DataError(
            f"{path} holds {len(found.ids):,} ids and vectors of shape {found.vectors.shape}; it needs a row of "
            f"numbers for each id"
        )
    if not bool(np.isfinite(found.vectors).all()):
        raise DataError(f"{path} holds a number that is infinite or none; write finite vectors")
    return found


def _from_parquet(path: Path, name: str) -> NamedVectors:
    table = pq.read_table(path)
    id_column = name if name in table.column_names else table.column_names[0]
    ids = _ids(table[id_column].combine_chunks(), path, id_column)
    others = [column for column in table.column_names if column != id_column]
    if VECTOR in others:
        return NamedVectors(ids, _stacked(table[VECTOR].combine_chunks(), path))
    numeric = [column for column in others if pa.types.is_floating(table[column].type)]
    if not numeric:
        raise DataError(f"{path} has neither a column '{VECTOR}' nor columns of numbers; it has {', '.join(others)}")
    return NamedVectors(ids, np.column_stack([table[column].to_numpy() for column in numeric]).astype(np.float32))


def _stacked(column: pa.Array, path: Path) -> Array:
    lengths = set(pa.compute.list_value_length(column).to_pylist())
    if len(lengths) != 1 or None in lengths:
        raise DataError(f"the vectors of {path} differ in length; every one needs as many numbers as the others")
    flat = pa.compute.list_flatten(column).to_numpy(zero_copy_only=False)
    return np.asarray(flat, dtype=np.float32).reshape(len(column), lengths.pop())


def _from_safetensors(path: Path) -> NamedVectors:
    tensors = load_file(path)
    lacking = "vectors" not in tensors or not (IDS in tensors or {UTF8, OFFSETS} <= tensors.keys())
    if lacking:
        raise DataError(
            f"{path} holds {', '.join(tensors) or 'nothing'}; it needs 'vectors', and 'ids' (integers) or '{UTF8}' and "
            f"'{OFFSETS}' (text)"
        )
    vectors = tensors["vectors"].astype(np.float32)
    if IDS in tensors:
        return NamedVectors(pa.array(tensors[IDS].astype(np.int64)), vectors)
    offsets, content = tensors[OFFSETS].astype(np.int64), tensors[UTF8].astype(np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    ids = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
    ids.validate(full=True)
    return NamedVectors(ids, vectors)


def _packed(ids: pa.Array) -> dict[str, Array]:
    if not is_text(ids.type):
        return {IDS: ids.to_numpy(zero_copy_only=False).copy()}
    _, offsets, content = pa.concat_arrays([ids.cast(pa.large_string())]).buffers()  # concat drops any slice offset
    return {
        OFFSETS: np.frombuffer(offsets, np.int64)[: len(ids) + 1].copy(),
        UTF8: np.frombuffer(content or b"", np.uint8).copy(),
    }


def _ids(column: pa.Array, path: Path, name: str) -> pa.Array:
    if column.null_count:
        raise DataError(f"column '{name}' of {path} has empty cells; every vector needs an id")
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if is_text(column.type):
        return column.cast(pa.large_string())
    raise DataError(f"column '{name}' of {path} holds {column.type}; ids are integers or text")
