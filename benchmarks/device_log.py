"""A made-up log of any size, generated where it is trained on, some users at a time.

Users and items have power laws as in `benchmarks.graphs`: the user of rank r has a share of r^-0.5 of the interactions,
an item of rank r of r^-0.8. So that there is something to learn beside popularity, items and users belong to one of
sqrt(N / 200) communities, and half of what a user picks comes from the user's own. Which user and which item has which
rank is random. A user has an item at most once: more is drawn than is wanted, repeats go, and what is left over at
random. The same seed, sizes and kind of device give the same log.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.errors import ConfigError
from caged.seeding import derive, numpy_generator

USER_EXPONENT, ITEM_EXPONENT = 0.5, 0.8
ITEMS_PER_COMMUNITY_SQUARED = 200
OWN_COMMUNITY = 0.5  # chance that a pick comes from there
HELD_OUT = 0.2  # of what a sampled user has
OVERDRAWN = 4  # one draw more for every so many that are wanted
PIECE = 2**24  # interactions that are wanted at a time


class Shape(NamedTuple):
    users: int
    items: int
    interactions: int


@dataclass(frozen=True, eq=False)
class DeviceLog:
    """CSR rows for training, and what is held out of the rows of some users."""

    item_count: int
    user_offsets: Tensor  # (M + 1,) int64
    items: Tensor  # (E,) int32, ascending within a user
    sample: Array  # users who have something held out, ascending
    held_out: Interactions  # of these users, as rows 0, 1, ...

    @property
    def facts(self) -> dict[str, int]:
        return {
            "users": len(self.user_offsets) - 1,
            "items": self.item_count,
            "interactions": len(self.items) + len(self.held_out),
            "training_interactions": len(self.items),
            "held_out_interactions": len(self.held_out),
            "sampled_users": len(self.sample),
            "largest_user_degree": int(self.user_offsets.diff().max()),
            "checksum": self._checksum(),
        }

    def _checksum(self) -> int:
        """Of users and items in their places; another log of the same size has another one."""
        total = self.user_offsets.remainder(10**9 + 7).sum()
        for start in range(0, len(self.items), PIECE):
            piece = self.items[start : start + PIECE].long()
            total = total + (piece * torch.arange(1, len(piece) + 1, device=piece.device)).remainder_(10**9 + 7).sum()
        return int(total)

    def sample_training(self) -> Interactions:
        """What the sampled users have in training, as rows 0, 1, ..."""
        rows = torch.from_numpy(self.sample).to(self.items.device)
        first = self.user_offsets.index_select(0, rows)
        counts = self.user_offsets.index_select(0, rows + 1) - first
        owners = torch.repeat_interleave(counts)
        place = torch.arange(len(owners), device=owners.device) - (counts.cumsum(0) - counts).index_select(0, owners)
        items = self.items.index_select(0, first.index_select(0, owners) + place)
        return _interactions(owners, items, len(self.sample), self.item_count)


def generate(shape: Shape, sampled_users: int, device: torch.device, seed: int = 1) -> DeviceLog:
    """About `sampled_users` lose a fifth of their interactions to a held-out part, at random."""
    _check(shape, sampled_users)
    pieces = list(_Pieces(shape, sampled_users, device, seed))
    degrees = torch.cat([piece.degrees for piece in pieces])
    held_users, held_items = (torch.cat(parts) for parts in zip(*(piece.held_out for piece in pieces), strict=True))
    items = torch.empty(int(degrees.sum()), dtype=torch.int32, device=device)
    filled = 0
    while pieces:  # freed one by one: a copy of all of them would take as much again
        part = pieces.pop(0).items
        items[filled : filled + len(part)] = part
        filled += len(part)
    sample, rows = held_users.unique(return_inverse=True)
    held_out = _interactions(rows, held_items, len(sample), shape.items)
    offsets = torch.nn.functional.pad(degrees.cumsum(0), (1, 0))
    return DeviceLog(shape.items, offsets, items, sample.cpu().numpy(), held_out)


def _check(shape: Shape, sampled_users: int) -> None:
    if min(shape) < 1 or shape.interactions > shape.users * shape.items // 4:
        raise ConfigError(
            f"a log of {shape.interactions:,} interactions of {shape.users:,} users with {shape.items:,} items cannot "
            "be made up; all three must be at least 1, and at most a quarter of the pairs can be interactions"
        )
    if not 1 <= sampled_users <= shape.users:
        raise ConfigError(f"the sample has {sampled_users:,} users; it must be from 1 to {shape.users:,}")


class _Piece(NamedTuple):
    degrees: Tensor  # of the users of this piece, in training
    items: Tensor
    held_out: tuple[Tensor, Tensor]  # users and items


class _Pieces:
    """The log, some million interactions at a time."""

    def __init__(self, shape: Shape, sampled_users: int, device: torch.device, seed: int) -> None:
        self._shape, self._device = shape, device
        self._generator = torch.Generator(device).manual_seed(derive(seed, "device log"))
        # On the host: sums of real numbers on CUDA differ from run to run, and resuming needs the same log.
        host = numpy_generator(seed, "device log")
        self._ends = _quotas(shape, host)
        self._item_of_rank = torch.from_numpy(host.permutation(shape.items).astype(np.int32)).to(device)
        self._sampled = torch.zeros(shape.users, dtype=torch.bool, device=device)
        chosen = host.choice(shape.users, sampled_users, replace=False, shuffle=False)
        self._sampled[torch.from_numpy(chosen).to(device)] = True
        self._communities = max(1, math.isqrt(shape.items // ITEMS_PER_COMMUNITY_SQUARED))

    def __iter__(self) -> Iterator[_Piece]:
        wanted = np.arange(PIECE, self._shape.interactions, PIECE)
        bounds = np.unique([0, *np.searchsorted(self._ends, wanted), self._shape.users])
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            yield self._piece(first, last)

    def _piece(self, first: int, last: int) -> _Piece:
        ends = self._ends[first:last]
        begin = int(self._ends[first - 1]) if first else 0
        quotas = torch.from_numpy(np.diff(ends, prepend=begin)).to(self._device)
        owners = torch.repeat_interleave(quotas + quotas // OVERDRAWN + 1)
        keys = owners * self._shape.items + self._picked(owners + first)
        keys = self._thinned(keys.unique(), int(ends[-1]) - begin)
        owners = keys.div(self._shape.items, rounding_mode="floor")
        items = keys.sub_(owners * self._shape.items).int()
        users = owners + first
        held = self._sampled.index_select(0, users) & (self._uniform(len(users)) < HELD_OUT)
        degrees = torch.bincount(owners[~held], minlength=last - first)
        return _Piece(degrees, items[~held], (users[held], items[held]))

    def _picked(self, users: Tensor) -> Tensor:
        """An item for each of these users."""
        chance = self._uniform(len(users))
        anywhere = _rank(chance, self._shape.items)
        within = _rank(chance, self._shape.items // self._communities)
        within.mul_(self._communities).add_(users.remainder(self._communities))
        rank = torch.where(self._uniform(len(users)) < OWN_COMMUNITY, within, anywhere)
        return self._item_of_rank.index_select(0, rank)

    def _thinned(self, keys: Tensor, most: int) -> Tensor:
        if len(keys) <= most:
            return keys
        kept = torch.randperm(len(keys), generator=self._generator, device=self._device)[:most]
        return keys.index_select(0, kept.sort().values)

    def _uniform(self, count: int) -> Tensor:
        return torch.rand(count, generator=self._generator, device=self._device, dtype=torch.float64)


def _quotas(shape: Shape, generator: np.random.Generator) -> Array:
    """(M,) interactions of all users up to and with this one."""
    shares = generator.permutation(np.arange(1, shape.users + 1) ** -USER_EXPONENT).cumsum()
    return np.asarray(np.rint(shares / shares[-1] * shape.interactions), dtype=np.int64)


def _rank(chance: Tensor, count: int) -> Tensor:
    """Below `count`, with a density of (rank + 1)^-0.8, from uniform numbers: the inverse of its distribution."""
    power = 1.0 - ITEM_EXPONENT
    drawn: Tensor = (chance * float((count + 1) ** power - 1.0)).add_(1.0).pow_(1.0 / power)
    return drawn.long().sub_(1).clamp_(0, count - 1)


def _interactions(rows: Tensor, items: Tensor, user_count: int, item_count: int) -> Interactions:
    users, own = (values.cpu().numpy().astype(np.int64) for values in (rows, items))
    return Interactions(IdMap.range(user_count), IdMap.range(item_count), users, own)
