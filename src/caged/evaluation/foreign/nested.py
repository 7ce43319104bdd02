"""From one row per user, whose items are a list, to one row per item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.errors import DataError
from caged.evaluation.foreign.list_columns import Chosen, ListColumns, no_order


class Flat(NamedTuple):
    """One row per listed item, and what the columns are called in the file; absent ones are None."""

    user: pa.ChunkedArray
    item: pa.ChunkedArray
    score: pa.ChunkedArray | None
    rank: pa.ChunkedArray | None
    names: Chosen
    is_nested: bool


def flattened(table: pa.Table, columns: ListColumns, where: str) -> Flat:
    """The columns of a table of lists, whichever of the two forms it has."""
    chosen = columns.chosen(table.column_names, where)
    if not is_list(table[chosen.item].type):
        if chosen.score is None and chosen.rank is None:
            raise no_order(where, table.column_names)
        score, rank = (None if name is None else table[name] for name in (chosen.score, chosen.rank))
        return Flat(table[chosen.user], table[chosen.item], score, rank, chosen, False)
    lists = table[chosen.item].combine_chunks()
    parents = pc.list_parent_indices(lists)
    entries = pc.list_flatten(lists)
    users = table[chosen.user].take(parents)
    if pa.types.is_struct(entries.type):
        return _of_structs(entries, users, parents, chosen, columns, where)
    score, rank = (_beside(table, name, parents, chosen.item, where) for name in (chosen.score, chosen.rank))
    return Flat(users, entries, score, _or_places(score, rank, parents), chosen, True)


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _of_structs(
    entries: pa.Array, users: pa.ChunkedArray, parents: pa.Array, chosen: Chosen, columns: ListColumns, where: str
) -> Flat:
    fields = columns.fields([field.name for field in entries.type], f"{where}: column '{chosen.item}'")

    def field(name: str | None) -> pa.Array | None:
        return None if name is None else pc.struct_field(entries, name)

    def label(name: str | None) -> str | None:
        return None if name is None else f"{chosen.item}.{name}"

    score, rank = field(fields.score), field(fields.rank)
    names = Chosen(chosen.user, f"{chosen.item}.{fields.item}", label(fields.score), label(fields.rank))
    return Flat(users, field(fields.item), score, _or_places(score, rank, parents), names, True)


def _beside(table: pa.Table, name: str | None, parents: pa.Array, item: str, where: str) -> pa.Array | None:
    """The values of a list that stands beside the list of items, as long as that."""
    if name is None:
        return None
    values = table[name].combine_chunks()
    if not is_list(values.type) or not pc.list_parent_indices(values).equals(parents):
        raise DataError(
            f"{where}: column '{name}' is not as long as the lists in '{item}' in every row; write one value per item"
        )
    return pc.list_flatten(values)


def _or_places(score: pa.Array | None, rank: pa.Array | None, parents: pa.Array) -> pa.Array | None:
    """The ranks; where nothing orders a list, its own places, the first being the best."""
    if score is not None or rank is not None or len(parents) == 0:
        return rank
    owner = parents.to_numpy()
    opens = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    return pa.array(np.arange(1, len(owner) + 1) - np.repeat(opens, np.diff(np.append(opens, len(owner)))))
