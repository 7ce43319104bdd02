"""Losses on a batch of triples, each formula in its docstring. `weight` is `Batch.weight`: it sums to one."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def bpr(positive: Tensor, negative: Tensor, weight: Tensor) -> Tensor:
    """Bayesian personalised ranking: mean over triples of softplus(s_uj - s_ui) = -log sigmoid(s_ui - s_uj).

    >>> import torch
    >>> bpr(torch.zeros(2), torch.zeros(2), torch.full((2,), 0.5)).item()  # ln 2 when all scores are equal
    0.6931471824645996
    """
    return weight @ F.softplus(negative - positive)


def l2_rows(weight: Tensor, *rows: Tensor) -> Tensor:
    """(1 / 2B) sum over the batch of |e_u|^2 + |e_i|^2 + |e_j|^2, rows of layer 0 counted with multiplicity.

    LightGCN's own convention, and the only L2 term here: half the squared norm of the layer-0 rows that occur in the
    batch, not of all parameters and not of propagated rows.

    >>> import torch
    >>> l2_rows(torch.tensor([0.5, 0.5]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).item()  # (25 + 1) / 4
    6.5
    """
    return 0.5 * sum((weight @ part.square().sum(1) for part in rows), start=weight.new_zeros(()))
