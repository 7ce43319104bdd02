"""The optimiser of all training here."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import Parameter
from torch.optim import Adam
from torch.optim.optimizer import ParamsT


def adam(parameters: ParamsT, learning_rate: float, device: torch.device) -> Adam:
    """Adam in one kernel per step, which can be recorded where the parameters lie on CUDA."""
    return Adam(parameters, lr=learning_rate, fused=True, capturable=device.type == "cuda")


def adam_with_moments(parameters: Sequence[Parameter], learning_rate: float) -> Adam:
    """The same with its moments made at once, not in the first step: for a state that is stored before it."""
    optimizer = adam(list(parameters), learning_rate, parameters[0].device)
    for values in parameters:
        optimizer.state[values] = {
            "step": torch.zeros((), device=values.device),
            "exp_avg": torch.zeros_like(values),
            "exp_avg_sq": torch.zeros_like(values),
        }
    return optimizer
