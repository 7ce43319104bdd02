"""Training triples (user, positive, negative), a whole epoch at a time, on the graph's device.

`block_sampling` draws from graphs that are too large for whole epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from caged.errors import ConfigError, DataError, unknown
from caged.graph.pattern import BipartiteGraph
from caged.graph.replayed import ReplayedNegatives

NEGATIVES = ("fresh", "replayed")
BITMAP_BYTES = 128 * 2**20  # most memory for one bit per user and item; beyond it every negative takes a search


class Batch(NamedTuple):
    """B triples. `weight` is 1/count on the `count` real triples and 0 on padding: it turns sums into means."""

    users: Tensor  # (B,)
    positives: Tensor  # (B,)
    negatives: Tensor  # (B,)
    weight: Tensor  # (B,) float32, sums to 1


@dataclass(frozen=True, eq=False)
class Epoch:
    """Batches in a row, of a whole epoch or of a block of one: every tensor has shape (steps, B)."""

    users: Tensor
    positives: Tensor
    negatives: Tensor
    weight: Tensor

    @property
    def parts(self) -> Batch:
        return Batch(self.users, self.positives, self.negatives, self.weight)

    def __len__(self) -> int:
        """Steps."""
        return len(self.users)

    def __iter__(self) -> Iterator[Batch]:
        for step in range(len(self)):
            yield Batch(*(part[step] for part in self.parts))


class Sampler:
    """Draws epochs of triples.

    kind:
        `interaction`   every interaction once, in random order (the textbook reading of BPR training);
        `user_uniform`  as many triples, each with a uniform user and a uniform positive of that user;
        `user_equal`    floor(E / M) positives per user, with replacement (what the released CAGED code runs).
    The last two over-weight users with few interactions relative to the first.

    Negatives are uniform over the items that the user has not interacted with in training. A user who owns the whole
    catalogue has none: these users are left out of every batch and counted in `excluded_users`. With `replayed`
    negatives they come from a short stream that is the same in every epoch (`graph.replayed`).
    """

    def __init__(
        self, graph: BipartiteGraph, batch_size: int, kind: str = "interaction", negatives: str = "fresh"
    ) -> None:
        check_kinds(kind, negatives)
        self.graph = graph
        self.kind = kind
        can_learn, self.excluded_users = learners(graph)
        self.eligible_users = can_learn.nonzero().squeeze(1)
        self.eligible_edges = can_learn.index_select(0, graph.users).nonzero().squeeze(1)
        self.batch_size = min(batch_size, self.triples)  # more would be padding
        self._degrees = graph.user_degrees.long()
        self._first_edge = graph.user_offsets.long()
        # Sorted array of (user, item - position within the user's row); see _draw_negatives.
        edge = torch.arange(graph.edge_count, device=graph.device)
        rank_in_row = edge - self._first_edge.index_select(0, graph.users)
        self._gap_keys = graph.users.long() * graph.item_count + (graph.items.long() - rank_in_row)
        self._owned = OwnedItems(graph) if OwnedItems.suits(graph) else None
        replayed = negatives == "replayed"
        self._replayed = ReplayedNegatives(graph, self.batch_size, self.triples) if replayed else None

    @property
    def triples(self) -> int:
        """Real triples per epoch."""
        users, edges = len(self.eligible_users), len(self.eligible_edges)
        return edges // users * users if self.kind == "user_equal" else edges

    @property
    def steps(self) -> int:
        return -(-self.triples // self.batch_size)

    def positive_shares(self) -> Tensor:
        """(N,) float64: how often each item is the positive of a triple, in expectation; sums to 1.

        An interaction is drawn with equal probability under `interaction`, otherwise in proportion to 1/d_u.
        """
        users = self.graph.users.index_select(0, self.eligible_edges)
        items = self.graph.items.index_select(0, self.eligible_edges)
        chances = torch.ones(len(items), dtype=torch.float64, device=items.device)
        if self.kind != "interaction":
            chances /= self._degrees.index_select(0, users)
        shares = chances.new_zeros(self.graph.item_count).index_add_(0, items, chances)
        return shares / shares.sum()

    def blocks(self, generator: Generator) -> Iterator[Epoch]:
        """An epoch, as `BlockSampler` has it: here, one block."""
        yield self.epoch(generator)

    def epoch(self, generator: Generator) -> Epoch:
        edges = SAMPLERS[self.kind](self, generator)
        users = self.graph.users.index_select(0, edges)
        positives = self.graph.items.index_select(0, edges)
        negatives = self._draw_negatives(users, generator)
        # Drawing in row order keeps bitmap and binary search in cache; shuffling comes last.
        order = torch.randperm(len(edges), generator=generator, device=edges.device, dtype=users.dtype)
        if self._replayed is not None:
            users, positives = users.index_select(0, order), positives.index_select(0, order)
            negatives = self._replayed.of(users, negatives.index_select(0, order))
            order = torch.arange(len(edges), device=edges.device)  # their place decides, so they are shuffled already
        padding = self.steps * self.batch_size - len(edges)
        weight = batch_weights(self.steps, self.batch_size, padding, edges.device)
        order = torch.nn.functional.pad(order, (0, padding))

        def batches(values: Tensor) -> Tensor:
            return values.index_select(0, order).view(self.steps, self.batch_size)

        return Epoch(batches(users), batches(positives), batches(negatives), weight)

    def _draw_negatives(self, users: Tensor, generator: Generator) -> Tensor:
        """An item that the user does not own, uniformly.

        With a bitmap, any item at first; the few that turn out to be owned are drawn again, now exactly. Both kinds of
        draw are uniform over the free items, so what comes out is, too.
        """
        if self._owned is None:
            return self._search_negatives(users, generator)
        items = uniform_below(self.graph.item_count, users, generator)
        again = self._owned(users, items).nonzero().squeeze(1)
        if len(again):
            items[again] = self._search_negatives(users.index_select(0, again), generator)
        return items

    def _search_negatives(self, users: Tensor, generator: Generator) -> Tensor:
        """The r-th item that the user does not own, r uniform: exact, no rejection, one binary search.

        With the user's items n_0 < n_1 < ..., the r-th free item is r + #{j : n_j - j <= r}. n_j - j never decreases
        along a row, so (user, n_j - j) is one sorted array for all users.
        """
        wide = users.long()
        r = uniform_below(self.graph.item_count - self._degrees.index_select(0, wide), wide, generator)
        keys = wide * self.graph.item_count + r
        owned_below = torch.searchsorted(self._gap_keys, keys, right=True) - self._first_edge.index_select(0, wide)
        return (r + owned_below).to(users.dtype)


class OwnedItems:
    """One bit per user and item, set where the user owns the item; rows start at whole bytes.

    Samplers use it on CPU only, where looking up a bit is several times faster than a binary search. On CUDA the search
    is fast, and drawing again would make the host wait for the device.
    """

    def __init__(self, graph: BipartiteGraph) -> None:
        self._row_bytes = _row_bytes(graph)
        self._bits = torch.zeros(self.bytes_of(graph), dtype=torch.uint8, device=graph.device)
        one = torch.ones((), dtype=torch.uint8, device=graph.device)
        # Edges are distinct, so adding sets bits.
        self._bits.index_add_(0, self._byte(graph.users, graph.items), one << (graph.items & 7).to(torch.uint8))

    @staticmethod
    def suits(graph: BipartiteGraph) -> bool:
        return graph.device.type == "cpu" and OwnedItems.bytes_of(graph) <= BITMAP_BYTES

    @staticmethod
    def bytes_of(graph: BipartiteGraph) -> int:
        return graph.user_count * _row_bytes(graph)

    def _byte(self, users: Tensor, items: Tensor) -> Tensor:
        return users * self._row_bytes + (items >> 3)

    def __call__(self, users: Tensor, items: Tensor) -> Tensor:
        """Whether the user owns the item, as 0 or 1."""
        return (self._bits.index_select(0, self._byte(users, items)) >> (items & 7).to(torch.uint8)) & 1


def _row_bytes(graph: BipartiteGraph) -> int:
    return -(-graph.item_count // 8)


def check_kinds(kind: str, negatives: str) -> None:
    if kind not in SAMPLERS:
        raise ConfigError(unknown("sampler", kind, SAMPLERS))
    if negatives not in NEGATIVES:
        raise ConfigError(unknown("kind of negatives", negatives, NEGATIVES))


def learners(graph: BipartiteGraph) -> tuple[Tensor, int]:
    """(M,) which users own something and not everything, and how many own everything."""
    degrees = graph.user_degrees
    can_learn = (degrees > 0) & (degrees < graph.item_count)
    excluded = int((degrees >= graph.item_count).sum())
    if not bool(can_learn.any()):
        raise DataError(
            f"all {excluded} users interacted with all {graph.item_count} items; "
            "a ranking needs items that a user has not seen, add items or remove interactions"
        )
    return can_learn, excluded


def batch_weights(steps: int, batch_size: int, padding: int, device: torch.device) -> Tensor:
    """(steps, B); the last batch ends with `padding`."""
    weight = torch.full((steps, batch_size), 1.0 / batch_size, device=device)
    if padding:
        count = batch_size - padding
        weight[-1, :count] = 1.0 / count
        weight[-1, count:] = 0.0
    return weight


def uniform_below(bound: Tensor | int, like: Tensor, generator: Generator) -> Tensor:
    """Integers uniform in [0, bound), from 53 random bits each, with the shape and type of `like`."""
    draw = torch.rand(like.shape, generator=generator, device=like.device, dtype=torch.float64)
    # The largest draw is 1 - 2^-53, and its product with a bound below 2^52 rounds to less than the bound.
    return draw.mul_(bound).to(like.dtype)


def _every_edge(sampler: Sampler, generator: Generator) -> Tensor:
    return sampler.eligible_edges


def _edge_of(sampler: Sampler, users: Tensor, generator: Generator) -> Tensor:
    """A uniform interaction of each user."""
    offset = uniform_below(sampler._degrees.index_select(0, users), users, generator)
    return sampler._first_edge.index_select(0, users) + offset


def _uniform_users(sampler: Sampler, generator: Generator) -> Tensor:
    pick = torch.randint(
        len(sampler.eligible_users), (sampler.triples,), generator=generator, device=sampler.graph.device
    )
    return _edge_of(sampler, sampler.eligible_users.index_select(0, pick), generator)


def _equal_users(sampler: Sampler, generator: Generator) -> Tensor:
    per_user = sampler.triples // len(sampler.eligible_users)
    return _edge_of(sampler, sampler.eligible_users.repeat_interleave(per_user), generator)


SAMPLERS: dict[str, Callable[[Sampler, Generator], Tensor]] = {
    "interaction": _every_edge,
    "user_uniform": _uniform_users,
    "user_equal": _equal_users,
}
