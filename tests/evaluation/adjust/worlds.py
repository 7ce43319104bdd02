"""A small world for adjustments: random vectors on a log with a clear head and tail."""

from __future__ import annotations

import numpy as np
import torch

from caged.data.interactions import Interactions
from caged.graph import Tables
from tests.evaluation.worlds import interactions

USERS, ITEMS, COLUMNS = 12, 40, 5


def skewed_log(seed: int = 0) -> Interactions:
    """Item i is drawn with a chance that falls like 1/(i + 1)."""
    draw = np.random.default_rng(seed)
    chance = 1 / np.arange(1, ITEMS + 1)
    pairs = {user: draw.choice(ITEMS, 8, replace=False, p=chance / chance.sum()).tolist() for user in range(USERS)}
    return interactions(pairs, USERS, ITEMS)


def vectors(seed: int = 0) -> Tables:
    draw = torch.Generator().manual_seed(seed)
    return Tables(torch.randn(USERS, COLUMNS, generator=draw), torch.randn(ITEMS, COLUMNS, generator=draw))
