"""Numbers about one update of CAGED: what the estimator learned, and what the edge weights became."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from caged.models.caged.estimator import Scores
from caged.models.caged.sides import Side

QUANTILES = {"min": 0.0, "1%": 0.01, "25%": 0.25, "50%": 0.5, "75%": 0.75, "99%": 0.99, "max": 1.0}
POWER_ITERATIONS = 30


class Phases:
    """Seconds of the parts of an update; on CUDA each of them waits for its own work."""

    def __init__(self, device: torch.device) -> None:
        self.seconds: dict[str, float] = {}
        self._device = device

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.seconds[phase] = time.perf_counter() - begun


def describe(found: Scores, weights: Tensor, side: Side, other: Side, item_degrees: Tensor) -> dict[str, Any]:
    """Diagnostics of one direction after an update. `item_degrees` holds the degree of the item of each edge.

    The rank correlation asks whether the estimator prefers popular items (positive) or niche ones (negative).
    """
    return {
        "recon": float(found.recon),
        "kl_per_pair": float(found.kl),
        "active_units": int(found.active_units),
        "elbo": quantiles(found.loss),
        "likelihood": summary((-found.loss).exp()),
        "degree_correlation": rank_correlation(-found.loss, item_degrees),
        "weight_ratio": summary(weights / side.base),
        "row_sums": quantiles(side.sums(weights)[side.offsets.diff() > 0]),
        "operator_norm": largest_singular_value(weights, side, other),
    }


def quantiles(values: Tensor) -> dict[str, float]:
    """Order statistics; exact, of any number of values.

    >>> import torch
    >>> quantiles(torch.tensor([3.0, 1.0, 2.0]))["50%"]
    2.0
    """
    ordered = values.sort().values
    places = torch.tensor([round(level * (len(values) - 1)) for level in QUANTILES.values()], device=values.device)
    return dict(zip(QUANTILES, ordered.index_select(0, places).tolist(), strict=True))


def summary(values: Tensor) -> dict[str, float]:
    """Mean and quantiles."""
    return {"mean": float(values.mean(dtype=torch.float64)), **quantiles(values)}


def rank_correlation(a: Tensor, b: Tensor) -> float:
    """Spearman's: the correlation of ranks, ties sharing the mean of theirs; NaN where one side is constant.

    >>> import torch
    >>> round(rank_correlation(torch.tensor([1.0, 5.0, 9.0]), torch.tensor([30, 20, 10])), 6)
    -1.0
    """
    a, b = _centred_ranks(a), _centred_ranks(b)
    return float((a @ b) / (a.norm() * b.norm()))


def _centred_ranks(values: Tensor) -> Tensor:
    _, place, counts = torch.unique(values, return_inverse=True, return_counts=True)
    mean_rank: Tensor = counts.cumsum(0).double() - (counts.double() - 1) / 2
    return mean_rank.index_select(0, place) - (len(values) + 1) / 2


def largest_singular_value(weights: Tensor, side: Side, other: Side) -> float:
    """Of the matrix of messages to `side`, by power iteration on its square.

    Starts from the square roots of the degrees, which is the answer for LightGCN's weights (and 1 the value); no weight
    is negative, so the leading vector is not orthogonal to it.
    """
    vector = other.offsets.diff().to(weights.dtype).sqrt()
    size = vector.new_zeros(())
    for _ in range(POWER_ITERATIONS):
        vector = vector / vector.norm().clamp_min(torch.finfo(vector.dtype).tiny)
        image = side.sums(weights * other.per_edge(vector))
        size = image.norm()
        vector = other.sums(weights * side.per_edge(image))
    return float(size)
