"""Filters on attributes of items: `{"category": ["shoes"], "in_stock": true}`, applied before ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.arguments import described
from caged.data.ids import Array
from caged.errors import ConfigError, unknown

NOT_ATTRIBUTES = ("item_id", "degree", "title")
REMEMBERED = 256  # filters whose items are kept, at most
REMEMBERED_BYTES = 2**26  # and no more than fit into this


class ItemFilters:
    """Which items have the wanted attributes; the answers of the last filters are remembered."""

    def __init__(self, items: pa.Table) -> None:
        self._items = items
        self.attributes = tuple(name for name in items.column_names if name not in NOT_ATTRIBUTES)
        self._known: dict[tuple[Any, ...], Array] = {}
        self._most = max(1, min(REMEMBERED, REMEMBERED_BYTES // max(1, len(items))))
        self._lock = Lock()  # threads answer at the same time

    def allowed(self, wanted: Mapping[str, Any]) -> Array | None:
        """(N,) of bool; None where nothing is filtered. Several attributes must all hold, of several values one."""
        if not wanted:
            return None
        values = {name: _values(name, wanted[name]) for name in sorted(wanted)}
        # With the types: 1, 1.0 and True are equal and yet different words of an attribute.
        key = tuple((name, given, tuple(map(type, given))) for name, given in values.items())
        known = self._known.get(key)
        if known is None:
            known = np.logical_and.reduce([self._having(name, given) for name, given in values.items()])
            self._remember(key, known)
        return known

    def _remember(self, key: tuple[Any, ...], allowed: Array) -> None:
        with self._lock:
            if len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)))
            self._known[key] = allowed

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
