"""`Tables`: the value that propagation takes and gives, that losses read and scores are made of."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Tables(NamedTuple):
    """One row per user and one per item; layer-0 embeddings, their propagated form, gradients, or what ranks."""

    users: Tensor  # (M, K)
    items: Tensor  # (N, K)
