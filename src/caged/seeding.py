"""One seed, many named and independent random streams.

Every consumer of randomness (`init`, `sampling`, `estimator`, ...) draws from its own stream, so switching a feature
off, or to its neutral value, leaves the draws of all others unchanged. That is what makes tests such as "CAGED with
eps = 0 equals LightGCN bit for bit" possible.

torch is imported by the first torch generator: readers, splits and audits draw from numpy and do not wait for it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive(seed: int, name: str) -> int:
    """A 63-bit seed for stream `name`, stable across processes, platforms and versions."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def numpy_generator(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng(derive(seed, name))


class Generators:
    """Named torch generators on one device, created on first use; their states travel in checkpoints."""

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        import torch

        self.seed = seed
        self.device = torch.device(device)
        self._streams: dict[str, torch.Generator] = {}

    def __getitem__(self, name: str) -> torch.Generator:
        if name not in self._streams:
            self._streams[name] = self._fresh(name, self.device)
        return self._streams[name]

    def on_host(self, name: str) -> torch.Generator:
        """A fresh CPU stream, for draws that must not depend on the device (initial values)."""
        return self._fresh(name, "cpu")

    def _fresh(self, name: str, device: torch.device | str) -> torch.Generator:
        import torch

        return torch.Generator(device=device).manual_seed(derive(self.seed, name))

    def used_on_device(self) -> list[torch.Generator]:
        """The streams that exist so far."""
        return list(self._streams.values())

    def state(self) -> dict[str, torch.Tensor]:
        return {name: generator.get_state() for name, generator in sorted(self._streams.items())}

    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        for name, value in state.items():
            self[name].set_state(value.cpu())
