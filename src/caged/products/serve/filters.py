"""Filters on attributes of items: `{"category": ["shoes"], "in_stock": true}`, applied before ranking."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.arguments import described
from caged.data.ids import Array
from caged.errors import ConfigError, unknown
from caged.products.serve.remembered import Remembered

NOT_ATTRIBUTES = ("item_id", "degree", "title")
REMEMBERED = 1000  # filters whose items are kept, at most
REMEMBERED_BYTES = 2**26  # and no more than fit into this
FEW = 0.05  # of the items: they are listed and looked at one by one


@dataclass(frozen=True, eq=False)
class Kept:
    """The items that pass a filter: a list of few, or a mark for each of many."""

    key: Hashable  # the same for the same filter
    rows: Array | None  # ascending
    marks: Array | None  # (N,) of bool
    count: int

    def among(self, rows: Array) -> Array:
        """Which of these items pass."""
        if self.marks is not None:
            return np.asarray(self.marks[rows])
        return are_among(rows, self.rows)  # type: ignore[arg-type]  # one of the two is there


def are_among(rows: Array, others: Array) -> Array:
    """Which of `rows` are among the others, which ascend.

    >>> are_among(np.array([5, 1, 9]), np.array([1, 5, 7])).tolist()
    [True, True, False]
    """
    if len(others) == 0:
        return np.zeros(len(rows), dtype=bool)
    places = np.minimum(np.searchsorted(others, rows), len(others) - 1)
    return np.asarray(others[places] == rows)


class ItemFilters:
    """Which items have the wanted attributes; the answers of the last filters are remembered."""

    def __init__(self, items: pa.Table) -> None:
        self._items = items
        self.attributes = tuple(name for name in items.column_names if name not in NOT_ATTRIBUTES)
        self._known: Remembered[Kept] = Remembered(_bytes, REMEMBERED_BYTES, REMEMBERED)

    def kept(self, wanted: Mapping[str, Any]) -> Kept | None:
        """None where nothing is filtered. Several attributes must all hold, of several values one."""
        if not wanted:
            return None
        values = {name: _values(name, wanted[name]) for name in sorted(wanted)}
        # With the types: 1, 1.0 and True are equal and yet different words of an attribute.
        key = tuple((name, given, tuple(map(type, given))) for name, given in values.items())
        return self._known.get(key, lambda: self._passing(key, values))

    def _passing(self, key: Hashable, values: Mapping[str, tuple[Any, ...]]) -> Kept:
        marks = np.logical_and.reduce([self._having(name, given) for name, given in values.items()])
        count = int(np.count_nonzero(marks))
        if count < FEW * len(marks):
            return Kept(key, np.flatnonzero(marks), None, count)
        return Kept(key, None, marks, count)

    def _having(self, name: str, values: tuple[Any, ...]) -> Array:
        if name not in self.attributes:
            raise ConfigError(unknown("attribute", name, self.attributes))
        column = self._items[name]
        try:
            if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                return _any_of(column, values)
            found = pc.is_in(column, value_set=pa.array(list(values)).cast(column.type))
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            raise ConfigError(
                f"filter '{name}' is {', '.join(map(described, values))}, which is no value of that attribute "
                f"({column.type}); give values of its type"
            ) from error
        return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)


def _bytes(kept: Kept) -> int:
    return sum(array.nbytes for array in (kept.rows, kept.marks) if array is not None)


def _any_of(column: pa.ChunkedArray, values: tuple[Any, ...]) -> Array:
    """Of items with several values, those that have one of the wanted."""
    whole = column.combine_chunks()
    flat = pc.is_in(pc.list_flatten(whole), value_set=pa.array(list(values)).cast(whole.type.value_type))
    owners = pc.list_parent_indices(whole).to_numpy(zero_copy_only=False)
    allowed = np.zeros(len(whole), dtype=bool)
    allowed[owners[np.asarray(flat.to_numpy(zero_copy_only=False), dtype=bool)]] = True
    return allowed


def _values(name: str, value: Any) -> tuple[Any, ...]:
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not values:
        raise ConfigError(f"filter '{name}' names no value; give at least one, or leave it out")
    for one in values:
        if not isinstance(one, str | int | float | bool):
            raise ConfigError(f"filter '{name}' holds {described(one)}; give text, numbers, true or false")
    return tuple(values)
