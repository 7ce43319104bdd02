"""The spread of somebody's scores over the catalogue, without the scores.

With the item vectors V, the sum of all scores of u is u . sum_i v_i and that of their squares is u' (V' V) u. What the
person has had is taken off again. `evaluation/adjust/of_scores.py` does the same for everybody at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caged.data.ids import Array

AT_ONCE = 2**16  # vectors that are turned into float64


@dataclass(frozen=True, eq=False)
class Moments:
    """Of item vectors, in float64: their number, their sum, and the sum of their outer products."""

    count: int
    table: Array  # (1 + K, K): the sum, and below it V' V

    @classmethod
    def of(cls, vectors: Array) -> Moments:
        table = np.zeros((1 + vectors.shape[1], vectors.shape[1]))
        for first in range(0, len(vectors), AT_ONCE):
            some = vectors[first : first + AT_ONCE].astype(np.float64)
            table[0] += some.sum(axis=0)
            table[1:] += some.T @ some
        return cls(len(vectors), table)

    def spread(self, vector: Array, had: Array) -> np.float32:
        """Standard deviation of the scores of all items but those with the vectors `had`."""
        left = self.count - len(had)
        if left <= 0:
            return np.float32(0)
        person = vector.astype(np.float64)
        scores = had.astype(np.float64) @ person
        mean = (self.table[0] @ person - scores.sum()) / left
        squares = (person @ self.table[1:] @ person - scores @ scores) / left
        return np.float32(np.sqrt(max(squares - mean * mean, 0.0)))
