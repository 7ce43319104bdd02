"""Vectors of users or items in a file: identifiers as their owner wrote them, and a row of numbers for each.

Parquet: a column of identifiers and `vector`, a list of numbers of one length (or one column per number). safetensors:
the tensor `vectors` (n, K), and beside it `ids` (integers) or `ids.utf8` and `ids.offsets` (text, as Arrow has it).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from caged.data.ids import Array, IdMap, is_text
from caged.data.readers.files import arrow_table
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
        found, vectors = self.by_id(where)
        rows = found.rows(wanted.values)
        if bool((rows < 0).any()):
            example = wanted.values.filter(pa.array(rows < 0))[0].as_py()
            raise DataError(
                f"{where} has no vector for {int((rows < 0).sum()):,} of the {len(wanted):,} ids of the log, e.g. "
                f"{example!r}; write one for each, or leave them out of the log"
            )
        return np.asarray(vectors[rows])

    def by_id(self, where: str) -> tuple[IdMap, Array]:
        """The vectors in the order of their ids."""
        found, rows = IdMap.numbered(self.ids)
        if len(found) < len(self.ids):
            raise DataError(f"{where} names an id twice; keep one vector for each")
        ordered = np.empty_like(self.vectors)
        ordered[rows] = self.vectors
        return found, ordered


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
        found = (
            _from_safetensors(path)
            if path.suffix == ".safetensors"
            else _from_table(pq.read_table(path), name, str(path))
        )
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; give a file of vectors") from None
    except (OSError, pa.ArrowException, SafetensorError) as error:
        raise DataError(f"{path} cannot be read ({error}); write it again") from error
    return _checked(found, str(path))


def vectors_of_frame(frame: Any, name: str, where: str) -> NamedVectors:
    """The same of a frame with the columns of a Parquet file."""
    return _checked(_from_table(arrow_table(frame), name, where), where)


def _checked(found: NamedVectors, where: str) -> NamedVectors:
    if len(found.ids) != len(found.vectors) or found.vectors.ndim != 2 or found.vectors.size == 0:
        raise DataError(
            f"{where} holds {len(found.ids):,} ids and vectors of shape {found.vectors.shape}; it needs a row of "
            f"numbers for each id"
        )
    if not bool(np.isfinite(found.vectors).all()):
        raise DataError(f"{where} holds a number that is infinite or none; write finite vectors")
    return found


def _from_table(table: pa.Table, name: str, where: str) -> NamedVectors:
    if not table.column_names:
        raise DataError(f"{where} has no columns; it needs '{name}' and '{VECTOR}'")
    id_column = name if name in table.column_names else table.column_names[0]
    ids = _ids(table[id_column].combine_chunks(), where, id_column)
    others = [column for column in table.column_names if column != id_column]
    if VECTOR in others:
        return NamedVectors(ids, _stacked(table[VECTOR].combine_chunks(), where))
    numeric = [column for column in others if pa.types.is_floating(table[column].type)]
    if not numeric:
        raise DataError(f"{where} has neither a column '{VECTOR}' nor columns of numbers; it has {', '.join(others)}")
    return NamedVectors(ids, np.column_stack([table[column].to_numpy() for column in numeric]).astype(np.float32))


def _stacked(column: pa.Array, where: str) -> Array:
    kind = column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not lists or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise DataError(f"column '{VECTOR}' of {where} holds {kind}; a vector is a list of numbers")
    if len(column) == 0:
        return np.zeros((0, 0), dtype=np.float32)
    lengths = set(pa.compute.list_value_length(column).to_pylist())
    if len(lengths) != 1 or None in lengths:
        raise DataError(f"the vectors of {where} differ in length; every one needs as many numbers as the others")
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


def _ids(column: pa.Array, where: str, name: str) -> pa.Array:
    if column.null_count:
        raise DataError(f"column '{name}' of {where} has empty cells; every vector needs an id")
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if is_text(column.type):
        return column.cast(pa.large_string())
    raise DataError(f"column '{name}' of {where} holds {column.type}; ids are integers or text")
