"""How `IdMap` finds text identifiers: by fingerprints that are computed once; Arrow would hash them all every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from caged.data.ids import Array

BLOCK = 1 << 18  # texts whose bytes are looked at together
WORD = 8  # bytes
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that a product with it is never the same for two words
HALF = np.uint64(32)
# Of the bytes that are read for a word, those that belong to a text that goes on for 0, 1, ..., 8 bytes.
INSIDE = np.array([256**length - 1 for length in range(WORD + 1)], dtype=np.uint64)


class TextRows:
    """Positions in `known`, distinct texts; -1 where unknown. In memory are 12 bytes per known text.

    >>> known = pa.array(["a", "b"], pa.large_string())
    >>> TextRows(known).rows(pa.array(["b", "z", "a"], pa.large_string())).tolist()
    [1, -1, 0]
    """

    def __init__(self, known: pa.Array) -> None:
        self.known = known
        of_row = fingerprints(known)
        self._rows = np.argsort(of_row).astype(np.int32)
        self._ascending = of_row[self._rows]

    def rows(self, texts: pa.Array) -> Array:
        """int32; fast where the texts are distinct."""
        wanted = fingerprints(texts)
        order = np.argsort(wanted)  # neighbours are searched for in the same part of memory
        wanted = wanted[order]
        place = np.minimum(np.searchsorted(self._ascending, wanted), len(self.known) - 1)
        rows = np.empty(len(texts), dtype=np.int32)
        rows[order] = np.where(self._ascending[place] == wanted, self._rows[place], -1)
        return self._checked(rows, texts)

    def _checked(self, rows: Array, texts: pa.Array) -> Array:
        """Two texts may have the same fingerprint: where the one found is another, Arrow has to tell."""
        found = np.flatnonzero(rows >= 0)
        same = pc.equal(self.known.take(pa.array(rows[found])), texts.take(pa.array(found)))
        others = found[~np.asarray(same.to_numpy(zero_copy_only=False), dtype=bool)]
        if len(others):
            rows[others] = hashed_rows(texts.take(pa.array(others)), self.known)
        return rows


def hashed_rows(wanted: pa.Array, known: pa.Array) -> Array:
    """The same by Arrow: it takes a pass over all that is known, every time."""
    return np.array(pc.fill_null(pc.index_in(wanted, value_set=known), -1), dtype=np.int32)


def fingerprints(texts: pa.Array) -> Array:
    """uint64 of the length and the bytes of every text (large_string, none missing)."""
    blocks = [_fingerprints(texts.slice(start, BLOCK)) for start in range(0, len(texts), BLOCK)]
    return np.concatenate([np.empty(0, dtype=np.uint64), *blocks])


def _fingerprints(texts: pa.Array) -> Array:
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(data_buffer or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    windows = np.lib.stride_tricks.sliding_window_view(np.append(data, np.zeros(WORD, dtype=np.uint8)), WORD)
    values = lengths.astype(np.uint64) * FACTOR
    longer = np.arange(len(texts))
    for position in range(0, int(lengths.max()), WORD):
        longer = longer[lengths[longer] > position]
        words = windows[starts[longer] + position].view("<u8").ravel()
        words &= INSIDE[np.minimum(lengths[longer] - position, WORD)]
        mixed = (values[longer] ^ words) * FACTOR
        values[longer] = mixed ^ (mixed >> HALF)
    return values
