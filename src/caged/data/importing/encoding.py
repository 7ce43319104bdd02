"""External identifiers that arrive table by table, numbered on the way and sorted at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import Array, IdMap, is_text
from caged.data.readers.columns import Column, integers_where_all, reject_negative


@dataclass(frozen=True, eq=False)
class Numbering:
    ids: IdMap
    row_of_code: Array  # int32 (n,)
    log_rows: Array  # int64 (n,): how often each row number occurs in the log, duplicates included


class IdEncoder:
    """Codes 0, 1, ... in order of first appearance."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._known: pa.Array | None = None
        self._count = np.zeros(0, dtype=np.int64)
        self._may_be_integers = True

    def encode(self, ids: pa.Array, *, untyped: bool) -> Array:
        """The code of every identifier, int32. `untyped`: text that stands for integers if all of it looks like it."""
        self._may_be_integers &= untyped or not is_text(ids.type)
        known = self._known if self._known is not None else pa.array([], type=ids.type)
        if known.type != ids.type:  # integers in one file, text in another: all of it is text
            known, ids = known.cast(pa.large_string()), ids.cast(pa.large_string())
        encoded = ids.dictionary_encode()
        found = pc.index_in(encoded.dictionary, value_set=known)
        new = found.is_null()
        codes = np.array(pc.fill_null(found, -1), dtype=np.int32)
        is_new = np.asarray(new.to_numpy(zero_copy_only=False))
        codes[is_new] = np.arange(len(known), len(known) + int(is_new.sum()), dtype=np.int32)
        self._known = pa.concat_arrays([known, encoded.dictionary.filter(new)])
        of_each = codes[encoded.indices.to_numpy()]
        count = np.bincount(of_each, minlength=len(self._known))
        count[: len(self._count)] += self._count
        self._count = count
        return np.asarray(of_each)

    def numbering(self, where: str) -> Numbering:
        """All identifiers in the order of an `IdMap`."""
        known = self._known if self._known is not None else pa.array([], type=pa.int64())
        if is_text(known.type) and self._may_be_integers:
            column = Column(known, self.name, where, rows_before=None)
            known = integers_where_all(column)
            if not is_text(known.type):
                reject_negative(column, known)
        order = pc.sort_indices(known).to_numpy()
        row_of_code = np.empty(len(known), dtype=np.int32)
        row_of_code[order] = np.arange(len(known), dtype=np.int32)
        return Numbering(IdMap(known.take(pa.array(order))), row_of_code, self._count[order])
