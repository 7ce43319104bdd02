"""Scores of single pairs, such as what chance showed: in blocks on the device, without the rest of the catalogue."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from caged.data.ids import Array
from caged.errors import TrainingError
from caged.evaluation.topk import ScoreFunction, users_per_block


class _Vectors(Protocol):
    """Whose dot products are the scores."""

    users: Tensor
    items: Tensor


BLOCK_NUMBERS = 1 << 22  # of the vectors that are multiplied at a time: 16 MB each for users and items


@torch.no_grad()
def pair_scores(scorer: ScoreFunction, users: Array, items: Array, *, device: torch.device | str = "cpu") -> Array:
    """The score of each pair of rows, float64; users ascending.

    Where the score is a dot product of vectors, only the vectors of the pairs are read. Else whole rows are scored, in
    blocks of users, and the pairs are taken out of them.

    >>> table = torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    >>> pair_scores(lambda users: table[users], np.array([0, 1, 1]), np.array([2, 0, 1])).round(3).tolist()
    [0.3, 0.4, 0.5]
    """
    if len(users) == 0:
        return np.zeros(0)
    place = torch.device(device)
    vectors: _Vectors | None = getattr(scorer, "vectors", None)
    blocks = _of_rows(scorer, users, items, place) if vectors is None else _of_vectors(vectors, users, items, place)
    scores = np.concatenate(blocks)
    broken = np.flatnonzero(np.isnan(scores))
    if len(broken):
        raise TrainingError(
            f"the score of user row {users[broken[0]]} for item row {items[broken[0]]} is NaN, no number; the "
            "model has diverged or was loaded from broken values: lower the learning rate and train again"
        )
    return scores


def _of_vectors(vectors: _Vectors, users: Array, items: Array, device: torch.device) -> list[Array]:
    size = max(1, BLOCK_NUMBERS // max(vectors.items.shape[1], 1))
    blocks = []
    for start in range(0, len(users), size):
        rows, columns = (_on(device, part[start : start + size]) for part in (users, items))
        products = vectors.users.index_select(0, rows).float() * vectors.items.index_select(0, columns).float()
        blocks.append(_numbers(products.sum(dim=1)))
    return blocks


def _of_rows(scorer: ScoreFunction, users: Array, items: Array, device: torch.device) -> list[Array]:
    owners, first = np.unique(users, return_index=True)
    ends = np.append(first, len(users))
    item_count = scorer(_on(device, owners[:1])).shape[1]
    size = users_per_block(item_count, device)
    blocks = []
    for start in range(0, len(owners), size):
        stop = min(start + size, len(owners))
        scores = scorer(_on(device, owners[start:stop]))
        pairs = slice(int(ends[start]), int(ends[stop]))
        rows = np.searchsorted(owners[start:stop], users[pairs])
        blocks.append(_numbers(scores[_on(device, rows), _on(device, items[pairs])]))
    return blocks


def _on(device: torch.device, rows: Array) -> Tensor:
    return torch.from_numpy(np.asarray(rows, dtype=np.int64)).to(device)


def _numbers(scores: Tensor) -> Array:
    return np.asarray(scores.double().cpu().numpy())
