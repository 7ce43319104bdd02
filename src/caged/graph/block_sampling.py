"""Training triples of a large graph, some batches at a time: nothing is kept, or drawn ahead, for every interaction.

`Sampler` draws an epoch at once: its triples, the copy in batches, and two int64 arrays per interaction to draw from.
That is 40 bytes per interaction, most of the memory that training would take at 10^9 of them. Here an epoch is an order
that `Permutation` computes place by place, the user of an interaction is found in the offsets of the users, and the
item that a user does not own in the user's own row. What is kept grows with users and items only.

A block is a function of its epoch's seed and its number, and the seed is the only draw from the sampling stream in an
epoch. So a resumed run draws the blocks of one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from caged.errors import ConfigError
from caged.graph.pattern import BipartiteGraph
from caged.graph.permutation import Permutation
from caged.graph.sampling import Epoch, Sampler, batch_weights, check_kinds, learners, uniform_below
from caged.seeding import derive

BLOCKS_ABOVE = 2**26  # interactions; up to here `Sampler` draws epochs
BLOCK_TRIPLES = 2**24  # of a block, or one batch where that is more


class _Positives(NamedTuple):
    users: Tensor  # (n,) int64
    edges: Tensor  # (n,) int64


class BlockSampler:
    """Draws what `Sampler` draws, of the same kinds and with the same chances, in blocks; its draws are other ones."""

    def __init__(
        self, graph: BipartiteGraph, batch_size: int, kind: str = "interaction", negatives: str = "fresh"
    ) -> None:
        check_kinds(kind, negatives)
        if negatives != "fresh":
            raise ConfigError(
                f"train.negatives is '{negatives}' and the training part has {graph.edge_count:,} interactions; it "
                f"works with up to {BLOCKS_ABOVE:,}, use train.negatives=fresh"
            )
        self.graph = graph
        self.kind = kind
        can_learn, self.excluded_users = learners(graph)
        self._first_edge = graph.user_offsets.long()
        self._degrees = self._first_edge.diff()
        self._longest_row = int(self._degrees.max())
        # Users who are left out have no places among the eligible interactions.
        places = (self._degrees * can_learn).cumsum(0)
        self._first_place = torch.nn.functional.pad(places, (1, 0))
        self._eligible_edges = int(places[-1])
        self.batch_size = min(batch_size, self.triples)
        self.block_steps = max(1, BLOCK_TRIPLES // self.batch_size)

    @cached_property
    def eligible_users(self) -> Tensor:
        """For the kinds that draw users."""
        return learners(self.graph)[0].nonzero().squeeze(1)

    @property
    def triples(self) -> int:
        """Real triples per epoch."""
        if self.kind != "user_equal":
            return self._eligible_edges
        users = len(self.eligible_users)
        return self._eligible_edges // users * users

    @property
    def steps(self) -> int:
        return -(-self.triples // self.batch_size)

    def blocks(self, generator: Generator) -> Iterator[Epoch]:
        """An epoch; each of its blocks is drawn when it is asked for."""
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        for number in range(-(-self.steps // self.block_steps)):
            yield self.block(seed, number)

    def block(self, seed: int, number: int) -> Epoch:
        """Block `number` of the epoch with this seed."""
        device = self.graph.device
        steps = min(self.block_steps, self.steps - number * self.block_steps)
        start = number * self.block_steps * self.batch_size
        count = min(steps * self.batch_size, self.triples - start)
        generator = torch.Generator(device).manual_seed(derive(seed, f"block {number}"))
        places = torch.arange(start, start + count, device=device)
        users, edges = _POSITIVES[self.kind](self, places, Permutation(self.triples, seed), generator)
        padding = steps * self.batch_size - count

        def batches(values: Tensor) -> Tensor:
            padded = torch.cat((values, values[:1].expand(padding))) if padding else values
            return padded.view(steps, self.batch_size)

        return Epoch(
            batches(users.to(self.graph.items.dtype)),
            batches(self.graph.items.index_select(0, edges)),
            batches(self._draw_negatives(users, generator)),
            batch_weights(steps, self.batch_size, padding, device),
        )

    def positive_shares(self) -> Tensor:
        """As `Sampler.positive_shares`."""
        if self.kind == "interaction":  # users who are left out own every item
            shares = self.graph.item_degrees.double() - self.excluded_users
            return shares / shares.sum()
        shares = torch.zeros(self.graph.item_count, dtype=torch.float64, device=self.graph.device)
        for start in range(0, self._eligible_edges, BLOCK_TRIPLES):
            stop = min(start + BLOCK_TRIPLES, self._eligible_edges)
            users, edges = self._at(torch.arange(start, stop, device=self.graph.device))
            chances = 1.0 / self._degrees.index_select(0, users)
            shares.index_add_(0, self.graph.items.index_select(0, edges), chances.double())
        return shares / shares.sum()

    # ---------------------------------------------------------------- positives

    def _at(self, places: Tensor) -> _Positives:
        """The eligible interactions at these places, in the order of the graph."""
        users = torch.searchsorted(self._first_place, places, right=True).sub_(1)
        shift = self._first_edge.index_select(0, users) - self._first_place.index_select(0, users)
        return _Positives(users, shift.add_(places))

    def _of(self, users: Tensor, generator: Generator) -> _Positives:
        """A uniform interaction of each user."""
        offset = uniform_below(self._degrees.index_select(0, users), users, generator)
        return _Positives(users, offset.add_(self._first_edge.index_select(0, users)))

    def _every_edge(self, places: Tensor, order: Permutation, generator: Generator) -> _Positives:
        return self._at(order(places))

    def _uniform_users(self, places: Tensor, order: Permutation, generator: Generator) -> _Positives:
        pick = uniform_below(len(self.eligible_users), places, generator)
        return self._of(self.eligible_users.index_select(0, pick), generator)

    def _equal_users(self, places: Tensor, order: Permutation, generator: Generator) -> _Positives:
        turn = order(places).remainder_(len(self.eligible_users))
        return self._of(self.eligible_users.index_select(0, turn), generator)

    # ---------------------------------------------------------------- negatives

    def _draw_negatives(self, users: Tensor, generator: Generator) -> Tensor:
        """The r-th item that the user does not own, r uniform; see `Sampler._search_negatives`."""
        degrees = self._degrees.index_select(0, users)
        r = uniform_below(self.graph.item_count - degrees, users, generator)
        owned_below = self._count_up_to(r, self._first_edge.index_select(0, users), degrees)
        return r.add_(owned_below).to(self.graph.items.dtype)

    def _count_up_to(self, r: Tensor, first: Tensor, high: Tensor) -> Tensor:
        """#{j : n_j - j <= r} of the items n_0 < n_1 < ... that begin at `first`, by a binary search in every row.

        `high` is how many there are; it is used up.
        """
        items, last = self.graph.items, self.graph.edge_count - 1
        low = torch.zeros_like(r)
        for _ in range(self._longest_row.bit_length()):
            middle = (low + high).bitwise_right_shift_(1)
            there = items.index_select(0, (first + middle).clamp_(max=last))
            # Where the search has ended, middle = low = high, and what lies there is of no concern.
            counted = (middle < high).logical_and_(there - middle <= r)
            low = torch.where(counted, middle + 1, low)
            high = torch.where(counted, high, middle)
        return low


_POSITIVES: dict[str, Callable[[BlockSampler, Tensor, Permutation, Generator], _Positives]] = {
    "interaction": BlockSampler._every_edge,
    "user_uniform": BlockSampler._uniform_users,
    "user_equal": BlockSampler._equal_users,
}

AnySampler = Sampler | BlockSampler


def make_sampler(
    graph: BipartiteGraph, batch_size: int, kind: str = "interaction", negatives: str = "fresh"
) -> AnySampler:
    """One that draws epochs, or one that draws blocks where the graph is large."""
    make = BlockSampler if graph.edge_count > BLOCKS_ABOVE else Sampler
    return make(graph, batch_size, kind, negatives)
