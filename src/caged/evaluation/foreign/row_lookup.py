"""Row numbers of identifiers that arrive in many batches, some of them unknown."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, Arrivals, IdMap


class RowLookup:
    """Rows of the identifiers in `known`; the others get the numbers behind them, in order of appearance.

    >>> lookup = RowLookup(IdMap.of([10, 20]))
    >>> lookup.codes(pa.array([20, 5, 10, 5])).tolist(), lookup.unknown.to_pylist()
    ([1, 2, 0, 2], [5])
    """

    def __init__(self, known: IdMap) -> None:
        self.known = known
        self._others = Arrivals(known.values.type)

    @property
    def unknown(self) -> pa.Array:
        return self._others.values

    def codes(self, ids: pa.Array) -> Array:
        """int32, one per identifier."""
        if len(self.known) == 0 and len(self.unknown) == 0:
            self._others = Arrivals(ids.type)
        codes = self.known.rows32(ids)
        missing = codes < 0
        if missing.any():
            codes[missing] = len(self.known) + self._others.numbers(ids.filter(pa.array(missing)))
        return codes

    def rows_in(self, ids: IdMap) -> Array | None:
        """The row of every code in a larger map, or None where codes are rows."""
        if len(self.unknown) == 0 and ids == self.known:
            return None
        return np.concatenate([ids.rows32(self.known.values), ids.rows32(self.unknown)])
