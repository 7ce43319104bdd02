"""The shop's personalised model: truncated SVD of the raw clicks, cheap and popularity-biased like most first models.

With the binary click matrix A so far, a fit is 3 subspace iterations Q <- qr(A^T A Q) in float64 that start from the
previous Q; scores are A Q Q^T. Products with A and A^T are gathers plus sums over runs of sorted edges, so that no
sparse library is needed. Scores are rounded to 9 decimals before ranking: that hides the last digits, which differ
between BLAS kernels and thread counts, and keeps simulations equal to the byte.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from caged.data.ids import Array
from caged.data.market.config import MarketConfig
from caged.data.market.world import users_per_block

_ITERATIONS = 3
_DECIMALS = 1e9
_BLOCK_EDGES = 1 << 18  # edges gathered at once: 32 MB at rank 16
_EXCLUDED = 1 << 61  # ranks behind every score that can occur (see `MarketConfig` for the largest)


class ShortlistModel:
    """The best items of every user by the clicks so far; `shortlists` is None before the first `refit`."""

    def __init__(self, config: MarketConfig, rng: np.random.Generator) -> None:
        self._config = config
        self._rng = rng
        self._basis = rng.standard_normal((config.item_count, config.rank))  # Q
        self.shortlists: Array | None = None  # int32 (M, min(shortlist, scored items)), best first

    def refit(self, clicked: Array, popularity: Array) -> None:
        """Fit to the sorted pair keys user * N + item; `popularity` (N,) only draws the candidates."""
        users, items = np.divmod(clicked, self._config.item_count)
        by_user = _Runs(users, items, self._config.user_count)
        item_order = np.argsort(items, kind="stable")
        by_item = _Runs(items[item_order], users[item_order], self._config.item_count)
        for _ in range(_ITERATIONS):
            self._basis = np.linalg.qr(by_item.sums(by_user.sums(self._basis)))[0]
        self.shortlists = self._rank(by_user, self._candidates(popularity))

    def _candidates(self, popularity: Array) -> Array:
        """Sorted rows of the items to score: all, or a draw without replacement by popularity (Gumbel keys)."""
        wanted, count = self._config.candidate_items, self._config.item_count
        if wanted is None:
            return np.arange(count)
        keys = np.log(popularity) + self._rng.gumbel(size=count)
        return np.sort(np.argsort(-keys, kind="stable")[:wanted])

    def _rank(self, by_user: _Runs, candidates: Array) -> Array:
        length = min(self._config.shortlist, len(candidates))
        shortlists = np.empty((self._config.user_count, length), dtype=np.int32)
        tastes = by_user.sums(self._basis)  # A Q
        items = np.ascontiguousarray(self._basis[candidates].T)
        column = np.full(self._config.item_count, -1)  # of each item among the candidates
        column[candidates] = np.arange(len(candidates))
        step = users_per_block(len(candidates))
        for start in range(0, self._config.user_count, step):
            stop = min(start + step, self._config.user_count)
            keys = ranking_keys(tastes[start:stop] @ items)
            clicked_rows, clicked_items = by_user.members(start, stop)
            columns = column[clicked_items]
            scored = columns >= 0
            _exclude(keys, clicked_rows[scored], columns[scored])
            keys = np.sort(np.partition(keys, length - 1, axis=1)[:, :length], axis=1)
            shortlists[start:stop] = candidates[keys % len(candidates)]
        return shortlists


def ranking_keys(scores: Array) -> Array:
    """int64 keys (b, n) that sort by score rounded to 9 decimals, largest first; ties: smaller column.

    The column is `key % n`. One integer per pair makes the order total, so partitioning cannot break ties by chance.

    >>> keys = ranking_keys(np.array([[0.5, 0.7, 0.5 + 1e-12, 0.5 - 1e-12]]))
    >>> (np.sort(keys) % 4).tolist()
    [[1, 0, 2, 3]]
    """
    scaled = scores * -_DECIMALS
    np.rint(scaled, out=scaled)
    keys = scaled.astype(np.int64)
    keys *= scores.shape[1]
    keys += np.arange(scores.shape[1])
    return keys


def _exclude(keys: Array, rows: Array, columns: Array) -> None:
    width = keys.shape[1]
    keys[rows, columns] = _EXCLUDED // width * width + columns


class _Runs:
    """Edges grouped by row: one direction of the click matrix."""

    def __init__(self, rows: Array, columns: Array, row_count: int) -> None:
        self._rows = rows  # sorted
        self._columns = columns
        self._offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=row_count))))

    def members(self, start: int, stop: int) -> tuple[Array, Array]:
        """Edges of the rows start..stop-1: (row - start, column)."""
        low, high = self._offsets[start], self._offsets[stop]
        return self._rows[low:high] - start, self._columns[low:high]

    def sums(self, table: Array) -> Array:
        """For each row the sum of the table's rows at its columns: the product of the binary matrix with `table`."""
        result = np.zeros((len(self._offsets) - 1, table.shape[1]))
        filled = np.flatnonzero(np.diff(self._offsets))  # reduceat cannot express an empty run
        starts = self._offsets[filled]
        # Blocks end where a run ends, so they cannot change the order of additions.
        cuts = np.searchsorted(starts, np.arange(0, len(self._columns), _BLOCK_EDGES))
        for first, last in pairwise(np.unique(np.append(cuts, len(filled)))):
            low, high = starts[first], self._offsets[filled[last - 1] + 1]
            gathered = table[self._columns[low:high]]
            result[filled[first:last]] = np.add.reduceat(gathered, starts[first:last] - low, axis=0)
        return result
