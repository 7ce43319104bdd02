"""How inverse item popularity is spread over the training interactions, small enough to be recorded.

    IIP(u, i) = w[u,i] sqrt(d_u)

is 1/sqrt(d_i) for LightGCN's weights (CAGED paper, section 4.5): near 0 for popular items, 1 for an item with one user.
The paper draws its density on an axis from 0 to 1, before, during and after the updates of the weights. Learned weights
may be larger as a whole; what lies above 1 is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from caged.data.ids import Array

BINS = 100  # from 0 to 1
_DIGITS = 5


class Moment(NamedTuple):
    """The weights of the messages to users at one moment of training."""

    name: str  # before | during | after
    updates: int
    to_user: Array


@dataclass(frozen=True)
class RecordedDensity:
    """One curve: the area below it is the share of interactions between 0 and 1."""

    name: str
    updates: int
    mean: float
    above: float  # share of interactions beyond 1
    values: list[float]  # per bin


def inverse_item_popularity(to_user: Array, users: Array, user_count: int) -> Array:
    """w[u,i] sqrt(d_u) for every edge."""
    degrees = np.bincount(users, minlength=user_count)
    return to_user.astype(np.float64) * np.sqrt(degrees[users])


def recorded_densities(moments: Sequence[Moment], users: Array, user_count: int) -> list[dict[str, Any]]:
    """One curve per moment, as JSON."""
    return [asdict(_density(one, inverse_item_popularity(one.to_user, users, user_count))) for one in moments]


def _density(moment: Moment, values: Array) -> RecordedDensity:
    counts, edges = np.histogram(values, BINS, (0.0, 1.0))
    density = counts / len(values) / np.diff(edges)
    return RecordedDensity(
        moment.name,
        moment.updates,
        mean=round(float(values.mean()), _DIGITS),
        above=round(float(np.count_nonzero(values > 1) / len(values)), _DIGITS),
        values=[round(float(value), _DIGITS) for value in density],
    )
