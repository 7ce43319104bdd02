"""The augmented graph of GALORE: edges sampled by degree, item-item edges for the tail, normalised anew.

Equation numbers are those of `method.py`. Everything that changes from epoch to epoch is computed on the device and
assigned in place; the candidates of the added edges are found once, on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from caged.data.ids import Array
from caged.data.popularity import ItemGroups
from caged.graph import BipartiteGraph, degree_weights
from caged.graph.item_edges import ItemEdges
from caged.models.item_item import training_matrix
from caged.seeding import Generators

LOWEST_FACTOR = 0.5  # node factors are clipped to [LOWEST_FACTOR, 1]
LLOYD_ITERATIONS = 25  # of k-means; it has settled by then, or nearly so
BLOCK_ENTRIES = 2**21  # co-occurrence counts at a time; some 48 bytes each, with columns and sort keys


# ---------------------------------------------------------------- edge sampling


def rarity(degrees: Tensor) -> Tensor:
    """(1): g(d) = min(1, 1 / ln(d + 1)), in float64; 1 for d = 0."""
    return (1.0 / torch.log1p(degrees.double())).clamp_(max=1.0)


def keep_factors(degrees: Tensor, *, favour_rare: bool) -> Tensor:
    """(2): node factors k in [0.5, 1], float64; all 1 where the nodes with edges have equal g."""
    g = rarity(degrees)
    of_nodes = g[degrees > 0]
    lowest, highest = of_nodes.min(), of_nodes.max()
    spread = highest - lowest
    scaled = (g - lowest if favour_rare else highest - g) / spread
    return torch.where(spread > 0, scaled.clamp(LOWEST_FACTOR, 1.0), torch.ones_like(g))


def edge_chances(graph: BipartiteGraph, item_keep: str) -> Tensor:
    """k_u k_i of every edge, (E,) float64: proportional to the chance of being drawn."""
    users = keep_factors(graph.user_degrees, favour_rare=True)
    items = keep_factors(graph.item_degrees, favour_rare=item_keep == "paper")
    return users.index_select(0, graph.users) * items.index_select(0, graph.items)


def kept_count(edge_count: int, drop_rate: float) -> int:
    """floor((1 - rho) E), with rho as the decimal number that was written.

    >>> kept_count(5, 0.8), kept_count(100, 0.07)  # in floating point (1 - 0.8) * 5 is 0.999...
    (1, 93)
    """
    return math.floor((1 - Fraction(str(drop_rate))) * edge_count)


def draw_without_replacement(chances: Tensor, count: int, generator: Generator) -> Tensor:
    """Multiplicities 0 or 1, (E,) float64: `count` distinct edges, drawn one after the other by chance.

    Exponential keys Exp(1) / chance ascend in just this order (Efraimidis and Spirakis, 2006), so the edges that are
    left out are those with the largest keys.
    """
    keys = torch.empty_like(chances).exponential_(generator=generator) / chances
    dropped = keys.topk(len(chances) - count, sorted=False).indices
    return torch.ones_like(chances).index_fill_(0, dropped, 0.0)


def draw_with_replacement(chances: Tensor, count: int, generator: Generator) -> Tensor:
    """How often each edge is met in `count` independent draws, (E,) float64.

    By the inverse of the cumulated chances: `torch.multinomial` takes no more than 2^24 categories. Only the number of
    draws within each edge's share counts, so they are sorted and every edge looks up how many lie below its end, which
    walks through memory in order.
    """
    cumulated = chances.cumsum(0)
    draws = torch.rand(count, generator=generator, device=chances.device, dtype=torch.float64) * cumulated[-1]
    below = torch.searchsorted(draws.sort().values, cumulated)
    below[-1] = count  # a draw may be rounded up to the very end
    return below.diff(prepend=below.new_zeros(1)).double()


DRAWS: dict[str, Callable[[Tensor, int, Generator], Tensor]] = {
    "without": draw_without_replacement,
    "with": draw_with_replacement,
}


# ---------------------------------------------------------------- edge addition


class Candidates(NamedTuple):
    """Tail items that share a user with some head item, and the heads with which they share most."""

    tails: Tensor  # (T,) ascending
    heads: Tensor  # (T, c) most common users first; what is beyond `counts` is padding
    counts: Tensor  # (T,) between 1 and c


def candidate_heads(graph: BipartiteGraph, count: int) -> Candidates:
    """For each tail item the `count` heads with most common users, ties to the smaller row; heads without any are none.

    Heads are the most popular fifth of the items with interactions, tails all others. The counts are C = R^T R with
    tail rows and head columns only, in blocks of rows: memory beside R and the result is about 100 MB, whatever the
    size of the catalogue. Time: over the edges of the tail, the number of heads of their users.
    """
    popular = ItemGroups.from_degrees(graph.item_degrees.cpu().numpy()).popular
    heads, others = np.flatnonzero(popular), np.flatnonzero(~popular)
    columns = np.zeros((len(others), count), dtype=np.int64)
    counts = np.zeros(len(others), dtype=np.int64)
    if count and len(heads):
        matrix = training_matrix(graph)
        of_heads, of_others = matrix[:, heads], matrix.T.tocsr()[others]
        reached = of_others @ np.diff(of_heads.indptr)
        for block in _blocks(np.minimum(reached, len(heads))):
            columns[block], counts[block] = _largest(of_others[block] @ of_heads, count)
    found = counts > 0
    chosen = (others[found], heads[columns[found]] if len(heads) else columns[found], counts[found])
    return Candidates(*(torch.from_numpy(part).to(graph.device) for part in chosen))


def _blocks(entries: Array) -> Iterator[slice]:
    """Runs of rows with at most BLOCK_ENTRIES entries together, or of one row."""
    ends = np.cumsum(entries)
    first = 0
    while first < len(entries):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + BLOCK_ENTRIES, side="right")))
        yield slice(first, last)
        first = last


def _largest(products: Any, count: int) -> tuple[Array, Array]:
    """Of each CSR row the columns of its `count` largest entries, (b, count), and how many there are, (b,).

    With a dense C: `np.argsort(-C, axis=1, kind="stable")[:, :count]`, of which only entries above zero count.

    >>> from scipy.sparse import csr_matrix
    >>> columns, counts = _largest(csr_matrix([[2, 0, 5, 2], [0, 7, 0, 0], [0, 0, 0, 0]]), 2)
    >>> [row[:found].tolist() for row, found in zip(columns, counts)]
    [[2, 0], [1], []]
    """
    sizes = np.diff(products.indptr)
    rows = np.flatnonzero(sizes)
    columns = np.zeros((len(sizes), count), dtype=np.int64)
    counts = np.zeros(len(sizes), dtype=np.int64)
    width = products.shape[1]
    # One number for (larger count first, then smaller column): no two of a row are equal.
    keys = products.data.astype(np.int64) * width + (width - 1 - products.indices)
    for place in range(count if len(rows) else 0):
        best = np.maximum.reduceat(keys, products.indptr[rows])
        there = best >= 0
        columns[rows[there], place] = width - 1 - best[there] % width
        counts[rows[there]] += 1
        keys[keys == np.repeat(best, sizes[rows])] = -1  # not again
    return columns, counts


def k_means(rows: Tensor, draws: Tensor) -> Tensor:
    """Labels (N,) of the rows (N, K) in as many clusters as there are `draws`, numbers in [0, 1) that choose the start.

    Plain Lloyd iterations from a k-means++ start; a cluster that runs empty keeps its centre.
    """
    centres = _spread_out(rows, draws)
    clusters = torch.arange(len(draws), device=rows.device)
    for _ in range(LLOYD_ITERATIONS):
        members = (_nearest(rows, centres).unsqueeze(1) == clusters).to(rows.dtype)  # (N, clusters)
        sizes = members.sum(0).unsqueeze(1)
        centres = torch.where(sizes > 0, members.T @ rows / sizes.clamp(min=1), centres)
    return _nearest(rows, centres)


def _spread_out(rows: Tensor, draws: Tensor) -> Tensor:
    """First centres: each a row, drawn in proportion to its squared distance from those before."""
    chances = torch.ones(len(rows), device=rows.device, dtype=torch.float64)
    distances = torch.full_like(chances, math.inf)
    centres = []
    for draw in draws:
        cumulated = chances.cumsum(0)
        place = torch.searchsorted(cumulated, draw * cumulated[-1:], right=True).clamp_(max=len(rows) - 1)
        centres.append(rows.index_select(0, place))
        distances = torch.minimum(distances, (rows - centres[-1]).square().sum(1).double())
        chances = distances
    return torch.cat(centres)


def _nearest(rows: Tensor, centres: Tensor) -> Tensor:
    """The centre of each row, by |c|^2 - 2 x.c, which differs from the squared distance by |x|^2."""
    return (centres.square().sum(1) - 2 * rows @ centres.T).argmin(1)


# ---------------------------------------------------------------- the graph of an epoch


class Added(NamedTuple):
    """One place per tail item for an edge to a head: `there` is 1 where the edge exists, 0 where it does not."""

    tails: Tensor  # (T,)
    heads: Tensor  # (T,)
    there: Tensor  # (T,) float64


def normalised(graph: BipartiteGraph, multiplicity: Tensor, added: Added) -> tuple[Tensor, Tensor]:
    """(4): weights of the user-item edges (E,) and of the item-item edges (T,), float64; 0 at nodes without edges."""
    users = multiplicity.new_zeros(graph.user_count).index_add_(0, graph.users, multiplicity)
    items = multiplicity.new_zeros(graph.item_count).index_add_(0, graph.items, multiplicity)
    for end in (added.tails, added.heads):
        items.index_add_(0, end, added.there)

    def inverse_root(degrees: Tensor, of: Tensor) -> Tensor:
        chosen = degrees.index_select(0, of)
        return torch.where(chosen > 0, chosen.pow(-0.5), 0.0)

    between = inverse_root(users, graph.users) * inverse_root(items, graph.items)
    among = inverse_root(items, added.tails) * inverse_root(items, added.heads)
    return multiplicity * between, added.there * among


class AugmentedGraph:
    """`weights` on the pattern of the graph and `added` item-item edges, both of the current epoch.

    Before the first `rebuild` they are LightGCN's weights and no edge.
    """

    def __init__(
        self,
        graph: BipartiteGraph,
        *,
        item_keep: str,
        edge_sampling: str,
        drop_rate: float,
        candidate_count: int,
        clusters: int,
        generators: Generators,
    ) -> None:
        self.graph = graph
        self.candidates = candidate_heads(graph, candidate_count)
        self.weights = degree_weights(graph).per_edge()
        tails = self.candidates.tails
        self.added = ItemEdges(tails, tails, torch.zeros(len(tails), device=graph.device))
        self._draw = DRAWS[edge_sampling]
        self._chances = edge_chances(graph, item_keep)
        self._kept = kept_count(graph.edge_count, drop_rate)
        self._sampling = generators["edge_sampling"]
        self._addition = generators["edge_addition"]
        start = torch.rand(clusters, generator=generators.on_host("clusters"), dtype=torch.float64)
        self._cluster_start = start.to(graph.device)  # the same in every epoch

    @torch.no_grad()
    def rebuild(self, items: Tensor) -> dict[str, Any]:
        """Draw the graph of an epoch; `items` are the current layer-0 rows (N, K). Returns what the history says."""
        multiplicity = self._draw(self._chances, self._kept, self._sampling)
        added = self._choose_heads(items)
        between, among = normalised(self.graph, multiplicity, added)
        self.weights.assign(between, between)
        self.added.assign(added.tails, added.heads, among)
        return {"distinct_edges": int((multiplicity > 0).sum()), "added_edges": int(added.there.sum())}

    def _choose_heads(self, items: Tensor) -> Added:
        """(3): a uniform candidate for each tail item, there if both are in one cluster."""
        tails, heads, counts = self.candidates
        draw = torch.rand(len(tails), generator=self._addition, device=tails.device, dtype=torch.float64)
        chosen = heads.gather(1, (draw * counts).long().unsqueeze(1)).squeeze(1)
        labels = k_means(items, self._cluster_start)
        same = labels.index_select(0, tails) == labels.index_select(0, chosen)
        return Added(tails, chosen, same.double())
