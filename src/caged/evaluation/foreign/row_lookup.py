"""Row numbers of identifiers that arrive in many batches."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import Array, IdMap, reject_missing
from caged.evaluation.foreign.text_rows import TextRows


class RowLookup:
    """Rows of the identifiers in `known`; the others get the numbers behind them, in order of appearance.

    >>> lookup = RowLookup(IdMap.of([10, 20]))
    >>> lookup.codes(pa.array([20, 5, 10, 5])).tolist(), lookup.unknown.to_pylist()
    ([1, 2, 0, 2], [5])
    """

    def __init__(self, known: IdMap) -> None:
        self.known = known
        self.unknown = pa.array([], type=known.values.type)

    def codes(self, ids: pa.Array) -> Array:
        """int32, one per identifier."""
        if len(self.known) == 0 and len(self.unknown) == 0:
            self.unknown = self.unknown.cast(ids.type)
        codes = self._rows(ids)
        missing = codes < 0
        if missing.any():
            codes[missing] = self._unknown_codes(ids.filter(pa.array(missing)))
        return codes

    def _rows(self, ids: pa.Array) -> Array:
        """-1 where an identifier is not known."""
        if self.known.are_integers:
            return self.known.rows(ids).astype(np.int32)
        reject_missing(ids)
        encoded = ids.dictionary_encode()
        return np.asarray(self._texts.rows(encoded.dictionary)[encoded.indices.to_numpy()])

    @cached_property
    def _texts(self) -> TextRows:
        return TextRows(self.known)

    def _unknown_codes(self, ids: pa.Array) -> Array:
        encoded = ids.dictionary_encode()
        found = pc.index_in(encoded.dictionary, value_set=self.unknown)
        new = found.is_null()
        numbers = np.array(pc.fill_null(found, -1), dtype=np.int64)
        is_new = np.asarray(new.to_numpy(zero_copy_only=False))
        numbers[is_new] = np.arange(len(self.unknown), len(self.unknown) + int(is_new.sum()))
        self.unknown = pa.concat_arrays([self.unknown, encoded.dictionary.filter(new)])
        return np.asarray(len(self.known) + numbers[encoded.indices.to_numpy()])

    def rows_in(self, ids: IdMap) -> Array | None:
        """The row of every code in a larger map, or None where codes are rows."""
        if len(self.unknown) == 0 and ids == self.known:
            return None
        rows = [ids.rows(self.known.values), *([ids.rows(self.unknown)] if len(self.unknown) else [])]
        return np.concatenate(rows).astype(np.int32)
