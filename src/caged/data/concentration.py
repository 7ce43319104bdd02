"""How unequally counts are spread: over items, mostly."""

from __future__ import annotations

import numpy as np

from caged.data.ids import Array


def gini(counts: Array) -> float:
    """sum_j (2j - N - 1) x_(j) / (N X) with x ascending and X = sum x; 0: all equal, 1 - 1/N: one has all.

    >>> gini(np.array([1, 1, 1])), gini(np.array([0, 0, 0, 5]))
    (0.0, 0.75)
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64))
    size, total = len(ordered), float(ordered.sum())
    if total == 0.0:
        return float("nan")
    weights = 2.0 * np.arange(1, size + 1) - size - 1.0
    return float((weights * ordered).sum() / (size * total))


def top_share(counts: Array, fraction: float = 0.2) -> float:
    """Share of the total that the largest ceil(fraction * N) counts hold.

    >>> top_share(np.array([6, 1, 1, 1, 1]))
    0.6
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64))[::-1]
    total = float(ordered.sum())
    return float(ordered[: int(np.ceil(fraction * len(ordered)))].sum() / total) if total else float("nan")
