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

from caged.arguments import described, instances, whole_number
from caged.data.text_rows import TextRows, hashed_rows
from caged.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]

MOST_ROWS = 2**31 - 1
SPARSEST = 8  # a table from identifier to row may be this many times as long as there are identifiers
FEW = 1 << 20
FINGERPRINTS_FROM = 4  # times as many identifiers as are looked up: below, a pass over all of them costs less


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
    def numbered(cls, ids: Any) -> tuple[IdMap, Array]:
        """The map of identifiers in any order, with repeats, and the row number (int64) of each of them.

        >>> ids, rows = IdMap.numbered(["b", "a", "b"])
        >>> ids.values.to_pylist(), rows.tolist()
        (['a', 'b'], [1, 0, 1])
        """
        given = _as_ids(ids)
        if pa.types.is_integer(given.type):
            found = cls.of(given)
            return found, found.rows(given)
        encoded = given.dictionary_encode()  # so that every text is hashed once
        order = pc.sort_indices(encoded.dictionary)
        row_of_code = np.empty(len(order), dtype=np.int64)
        row_of_code[order.to_numpy()] = np.arange(len(order))
        return cls(encoded.dictionary.take(order)), row_of_code[encoded.indices.to_numpy()]

    @classmethod
    def range(cls, count: int) -> IdMap:
        """Identifiers 0..count-1 that are their own rows."""
        count = whole_number("count", count, least=0, most=MOST_ROWS)
        return cls(pa.array(np.arange(count, dtype=np.int64)))

    @classmethod
    def union(cls, maps: Iterable[IdMap]) -> IdMap:
        """All identifiers of several maps; integers become strings only if some map holds strings."""
        arrays = [ids.values for ids in instances("maps", maps, IdMap)]
        if arrays and all(array.equals(arrays[0]) for array in arrays[1:]):
            return cls(arrays[0])
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
    def _direct(self) -> Array | None:
        """Identifier -> row as an array (-1 in gaps), where the identifiers are integers without large gaps."""
        known = self.values.to_numpy()
        if known[0] < 0 or known[-1] >= SPARSEST * len(known) + FEW:
            return None
        rows = np.full(int(known[-1]) + 1, -1, dtype=np.int32)
        rows[known] = np.arange(len(known), dtype=np.int32)
        return rows

    def rows(self, ids: Any) -> Array:
        """Row numbers (int64) of external identifiers; -1 where unknown."""
        return self.rows32(ids).astype(np.int64)

    def rows32(self, ids: Any) -> Array:
        """The same in half the memory (int32), where many are looked up at a time."""
        wanted = _as_ids(ids)
        if self.are_integers and pa.types.is_integer(wanted.type):
            return self._rows_of_integers(wanted.to_numpy())
        if wanted.type != self.values.type:
            wanted = matched_type(wanted, self.values.type)
        encoded = wanted.dictionary_encode()  # so that a text is looked up once, however often it is asked for
        distinct = encoded.dictionary
        few = not self.are_integers and FINGERPRINTS_FROM * len(distinct) < len(self)
        found = self._texts.rows(distinct) if few else hashed_rows(distinct, self.values)
        codes = encoded.indices.fill_null(len(distinct)).to_numpy()  # text that is no integer is known to no integers
        return np.asarray(np.append(found, np.int32(-1))[codes])

    @cached_property
    def _texts(self) -> TextRows:
        return TextRows(self.values)

    def _rows_of_integers(self, wanted: Array) -> Array:
        if len(self) == 0:
            return np.full(len(wanted), -1, dtype=np.int32)
        if self._direct is not None:
            if len(wanted) == 0 or (wanted.min() >= 0 and wanted.max() < len(self._direct)):
                return np.asarray(self._direct[wanted])
            inside = (wanted >= 0) & (wanted < len(self._direct))
            return np.where(inside, self._direct[np.where(inside, wanted, 0)], np.int32(-1))
        known = self.values.to_numpy()
        position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[position] == wanted, position, -1).astype(np.int32)

    def external(self, rows: Array) -> pa.Array:
        """External identifiers of row numbers."""
        try:
            given = np.asarray(rows)
            return self.values.take(pa.array(given.astype(np.int64, casting="safe" if given.size else "unsafe")))
        except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
            raise DataError(
                f"rows cannot be looked up ({error}); give a list of whole numbers from 0 to {len(self) - 1}"
            ) from error


class Arrivals:
    """Identifiers that come batch by batch, numbered 0, 1, ... in order of first appearance.

    >>> came = Arrivals(pa.int64())
    >>> came.numbers(pa.array([7, 5, 7])).tolist(), came.numbers(pa.array([9, 5])).tolist(), came.values.to_pylist()
    ([0, 1, 0], [2, 1], [7, 5, 9])
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.values = pa.array([], type=kind)
        self._table: Array | None = None  # identifier -> number, -1 in gaps; as `IdMap._direct`

    def numbers(self, ids: pa.Array) -> Array:
        """int32, one per identifier."""
        if pa.types.is_integer(ids.type) and pa.types.is_integer(self.values.type) and len(ids):
            wanted = ids.to_numpy()
            table = self._table_up_to(int(wanted.min()), int(wanted.max()), len(ids))
            if table is not None:
                return self._looked_up(wanted, table)
        self._table = None
        encoded = ids.dictionary_encode()
        found = hashed_rows(encoded.dictionary, self.values)
        new = found < 0
        found[new] = np.arange(len(self.values), len(self.values) + np.count_nonzero(new), dtype=np.int32)
        self.values = pa.concat_arrays([self.values, encoded.dictionary.filter(pa.array(new))])
        return np.asarray(found[encoded.indices.to_numpy()])

    def _table_up_to(self, lowest: int, highest: int, more: int) -> Array | None:
        """A table that reaches the highest identifier, where they have no large gaps. Hashing takes a pass over all
        that is known for every batch, this does not."""
        if self._table is None and len(self.values):
            known = self.values.to_numpy()
            lowest, highest = min(lowest, int(known.min())), max(highest, int(known.max()))
        if lowest < 0 or highest >= SPARSEST * (len(self.values) + more) + FEW:
            return None
        table = np.empty(0, dtype=np.int32) if self._table is None else self._table
        if highest >= len(table):
            grown = np.full(max(highest + 1, len(table) * 5 // 4), -1, dtype=np.int32)
            grown[: len(table)] = table
            if self._table is None:
                grown[self.values.to_numpy()] = np.arange(len(self.values), dtype=np.int32)
            self._table = table = grown
        return table

    def _looked_up(self, wanted: Array, table: Array) -> Array:
        found = table[wanted]
        unknown = wanted[found < 0]
        if len(unknown):
            new = pc.unique(pa.array(unknown))  # in order of appearance
            table[new.to_numpy()] = np.arange(len(self.values), len(self.values) + len(new), dtype=np.int32)
            self.values = pa.concat_arrays([self.values, new])
            found = table[wanted]
        return np.asarray(found)


def _sorted_distinct(ids: pa.Array) -> pa.Array:
    if pa.types.is_integer(ids.type):
        ascending = np.sort(ids.to_numpy())
        return pa.array(ascending[np.diff(ascending, prepend=ascending[:1] - 1) != 0])
    distinct = pc.unique(ids)
    return distinct.take(pc.sort_indices(distinct))  # Arrow compares strings by their UTF-8 bytes


def matched_type(wanted: pa.Array, target: pa.DataType) -> pa.Array:
    """Integers asked of a string map become text; text asked of an integer map becomes integers where it is one."""
    if pa.types.is_integer(target):
        readable = pc.and_(are_integer_texts(wanted), fit_int64(wanted))
        return pc.if_else(readable, wanted, pa.scalar(None, type=wanted.type)).cast(target)
    return wanted.cast(target)


def are_integer_texts(texts: pa.Array) -> pa.Array:
    """Which texts are an integer as it is written canonically: no sign for 0, no leading zero, no plus, no space."""
    return pc.match_substring_regex(texts, r"^(0|-?[1-9][0-9]*)$")


def fit_int64(integer_texts: pa.Array) -> pa.Array:
    """Which canonical integer texts have a magnitude of at most 2**63 - 1."""
    digits = pc.utf8_ltrim(integer_texts, "-")
    length = pc.utf8_length(digits)
    largest = pa.scalar(str(2**63 - 1), type=digits.type)
    # Of equally long digit strings the smaller text is the smaller number.
    return pc.or_(pc.less(length, 19), pc.and_(pc.equal(length, 19), pc.less_equal(digits, largest)))


def _as_ids(ids: Any) -> pa.Array:
    """Arrow int64 or large_string array of identifiers, whatever was given; nulls and other types are errors."""
    if not isinstance(ids, pa.Array | pa.ChunkedArray):
        if isinstance(ids, str | bytes) or hasattr(ids, "columns") or not isinstance(ids, Iterable):
            # Text would be taken for its letters, a frame for the names of its columns.
            raise DataError(f"identifiers are {described(ids)}; give a list or one column of integers or strings")
        try:
            ids = pa.array(ids if isinstance(ids, np.ndarray | Sequence) else list(ids))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            raise DataError(
                f"identifiers must be all integers below 2**63 or all strings ({error}); convert them first"
            ) from error
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if len(ids) == 0 and pa.types.is_null(ids.type):
        return pa.array([], type=pa.int64())
    reject_missing(ids)
    if pa.types.is_integer(ids.type):
        target = pa.int64()
    elif is_text(ids.type):
        target = pa.large_string()
    else:
        raise DataError(f"identifiers have type {ids.type}; allowed are integers and strings, convert the column")
    try:
        ids = ids.cast(target)
    except pa.ArrowInvalid as error:
        raise DataError(f"identifiers must be below 2**63 ({error}); convert the column to strings") from error
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids


def reject_missing(ids: pa.Array | pa.ChunkedArray) -> None:
    if ids.null_count:
        raise DataError(f"{ids.null_count} identifiers are missing; remove these rows")


def is_text(arrow_type: pa.DataType) -> bool:
    """Any of Arrow's string layouts (polars hands out string views)."""
    return str(arrow_type) in {"string", "large_string", "string_view"}
