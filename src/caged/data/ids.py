"""External identifiers and row numbers, kept apart by type.

Row numbers follow the sorted external identifiers: numerically if all of them are integers, else by UTF-8 bytes.
Equal sets of identifiers therefore always get equal rows, whatever the order of the file they came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class IdMap:
    """Sorted, distinct external identifiers; the position of an identifier is its row number.

    >>> ids = IdMap.of(["b", "a", "b"])
    >>> ids.rows(["a", "b", "z"]).tolist()
    [0, 1, -1]
    >>> ids.external(np.array([1, 0])).to_pylist()
    ['b', 'a']
    """

    values: pa.Array  # int64 or large_string

    @classmethod
    def of(cls, ids: Any) -> IdMap:
        """From any iterable or Arrow array of identifiers, in any order, with repeats."""
        return cls(_sorted_distinct(_as_ids(ids)))

    @classmethod
    def range(cls, count: int) -> IdMap:
        """Identifiers 0..count-1 that are their own rows."""
        return cls(pa.array(np.arange(count, dtype=np.int64)))

    @classmethod
    def union(cls, maps: Iterable[IdMap]) -> IdMap:
        """All identifiers of several maps; integers become strings only if some map holds strings."""
        arrays = [ids.values for ids in maps]
        if len({array.type for array in arrays}) > 1:
            arrays = [array.cast(pa.large_string()) for array in arrays]
        return cls(_sorted_distinct(pa.concat_arrays(arrays)))

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdMap) and self.values.equals(other.values)

    __hash__ = None  # type: ignore[assignment]

    @property
    def are_integers(self) -> bool:
        return bool(pa.types.is_integer(self.values.type))

    @cached_property
    def _identity(self) -> bool:
        """Whether identifier == row number for all rows, which makes every lookup free."""
        return self.are_integers and np.array_equal(self.values.to_numpy(), np.arange(len(self.values)))

    def rows(self, ids: Any) -> Array:
        """Row numbers (int64) of external identifiers; -1 where unknown."""
        wanted = _as_ids(ids)
        if self._identity and pa.types.is_integer(wanted.type):
            rows = wanted.to_numpy()
            return np.where((rows >= 0) & (rows < len(self)), rows, -1)
        if wanted.type != self.values.type:
            wanted = _matched_type(wanted, self.values.type)
        found = pc.index_in(wanted, value_set=self.values)
        return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def external(self, rows: Array) -> pa.Array:
        """External identifiers of row numbers."""
        return self.values.take(pa.array(np.asarray(rows, dtype=np.int64)))


def _sorted_distinct(ids: pa.Array) -> pa.Array:
    distinct = pc.unique(ids)
    return distinct.take(pc.sort_indices(distinct))  # Arrow compares strings by their UTF-8 bytes


def _matched_type(wanted: pa.Array, target: pa.DataType) -> pa.Array:
    """Integers asked of a string map become text; text asked of an integer map becomes integers where it is one."""
    if pa.types.is_integer(target):
        texts = wanted.to_pylist()
        return pa.array([int(text) if _is_integer_text(text) else None for text in texts], type=pa.int64())
    return wanted.cast(target)


def _is_integer_text(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18 and str(int(text)) == text


def _as_ids(ids: Any) -> pa.Array:
    """Arrow int64 or large_string array of identifiers, whatever was given; nulls and other types are errors."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if not isinstance(ids, pa.Array):
        try:
            ids = pa.array(ids if isinstance(ids, np.ndarray | Sequence) else list(ids))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise DataError(f"identifiers must be all integers or all strings ({error})") from error
    if len(ids) == 0 and pa.types.is_null(ids.type):
        return pa.array([], type=pa.int64())
    if ids.null_count:
        raise DataError(f"{ids.null_count} identifiers are missing; remove these rows")
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.int64())
    if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        return ids.cast(pa.large_string())
    raise DataError(f"identifiers have type {ids.type}; allowed are integers and strings, convert the column")
