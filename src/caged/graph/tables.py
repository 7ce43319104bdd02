"""`Tables`: the value that propagation takes and gives."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Tables(NamedTuple):
    """One row per user and one per item; layer-0 embeddings, their propagated form, or gradients of either."""

    users: Tensor  # (M, K)
    items: Tensor  # (N, K)
