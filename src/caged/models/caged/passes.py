"""Training CAGED's estimator: passes over all edges, as plain calls or recorded once in a CUDA graph and replayed.

A pass takes the edges in random order and, for each batch of them, one Adam step per direction: first with users as
centres, then with items. Both ways draw the same random numbers and do the same work; a recording only saves the time
to start some two hundred kernels per batch.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from caged.cuda_graph import Work, recorded
from caged.graph import BipartiteGraph, Tables
from caged.models.caged.estimator import Estimator, PairBatch, Terms, tf32
from caged.models.caged.gradients import FlatNetwork, WrittenStep
from caged.models.caged.sides import Pairs, Side, rows_of


class Course(NamedTuple):
    """What a pass goes over, and how."""

    graph: BipartiteGraph
    sides: tuple[Side, ...]
    batch_size: int
    terms: Terms

    def mean_terms(self, totals: Tensor) -> dict[str, float]:
        """Recon and KL per pair, from their sums over a pass."""
        recon, kl = (totals / (len(self.sides) * self.graph.edge_count)).tolist()
        return {"recon": recon, "kl": kl}


class PlainPasses:
    """The obvious loop."""

    def __init__(self, estimator: Estimator, course: Course) -> None:
        self._estimator, self._course = estimator, course

    def run(self, vectors: Tables, count: int) -> dict[str, float]:
        """Train on fixed embeddings; mean terms per pair of the last pass."""
        course = self._course
        for _ in range(count):
            totals = torch.zeros(2, device=course.graph.device)
            batches = self._estimator.shuffled_batches(course.graph.edge_count, course.batch_size)
            for edges, real in zip(*batches, strict=True):
                for side in course.sides:
                    pairs = Pairs(*(part.index_select(0, edges) for part in side.edges))
                    totals += self._estimator.step(*rows_of(side, vectors), PairBatch(pairs, real), course.terms)
        return course.mean_terms(totals)


class WrittenPasses:
    """The same steps with their gradient written out, in fixed buffers through which a counter on the device walks.

    Nothing in `_next_batch` waits for the host or depends on values, so it can be recorded: once, in the first run,
    since every shape is fixed when this is made. Without `record` (CPU knows no recording) it is called instead.
    """

    def __init__(self, estimator: Estimator, course: Course, *, record: bool) -> None:
        self._estimator, self._course, self._record = estimator, course, record
        self._steps = -(-course.graph.edge_count // course.batch_size)
        self._replay: Work | None = None
        self._allocated = False

    def _allocate(self) -> None:
        """In the first run: a model that only recommends needs none of this."""
        estimator, course, graph = self._estimator, self._course, self._course.graph
        size = estimator.network.embedding_size
        half = torch.bfloat16 if estimator.precision == "bf16" else torch.float32
        self._flat = FlatNetwork(estimator.network, half)
        self._step = WrittenStep(
            estimator.network,
            self._flat,
            batch_size=course.batch_size,
            averaged=estimator.averaged,
            terms=course.terms,
            device=graph.device,
        )
        self._counter = torch.zeros(1, dtype=torch.int64, device=graph.device)
        # An edge is three rows of one gather, [e_i ; e_u ; e_i]: its left part is the pair with the user as centre, its
        # right part the one with the item.
        self._nodes = graph.users.new_zeros(self._steps, 3 * course.batch_size)
        self._real = torch.zeros(self._steps, course.batch_size, device=graph.device)
        self._table = torch.zeros(graph.user_count + graph.item_count, size, device=graph.device)
        self._rounded = self._table if half == self._table.dtype else self._table.to(half)
        self._chosen = self._nodes.new_zeros(1, 3 * course.batch_size)
        self._weight = self._real.new_zeros(1, course.batch_size)
        self._exact = self._table.new_zeros(3 * course.batch_size, size)
        self._pairs = self._exact if half == self._table.dtype else self._exact.to(half)
        self._noise = self._table.new_zeros(course.batch_size, size)
        self._allocated = True

    def run(self, vectors: Tables, count: int) -> dict[str, float]:
        if not self._allocated:
            self._allocate()
        self._flat.refresh()  # a state may have been loaded since the last run
        self._load(vectors)
        for _ in range(count):
            self._shuffle()
            self._step.totals.zero_()
            with tf32(self._estimator.precision, self._course.graph.device):
                self._pass()
        return self._course.mean_terms(self._step.totals)

    def _pass(self) -> None:
        if self._record and self._replay is None:
            self._replay = self._recorded()
            self._record = self._replay is not None
        take = self._replay or self._next_batch
        for _ in range(self._steps):
            take()

    def _load(self, vectors: Tables) -> None:
        torch.cat(vectors, out=self._table)
        if self._rounded is not self._table:
            self._rounded.copy_(self._table)

    def _shuffle(self) -> None:
        graph = self._course.graph
        edges, real = self._estimator.shuffled_batches(graph.edge_count, self._course.batch_size)
        users, items = (part.index_select(0, edges.flatten()) for part in (graph.users, graph.items + graph.user_count))
        torch.stack((items, users, items), 1, out=self._nodes.view(-1, 3))
        self._real.copy_(real)
        self._counter.zero_()

    def _next_batch(self) -> None:
        """A step per direction on the batch that the counter points to."""
        torch.index_select(self._nodes, 0, self._counter, out=self._chosen)
        torch.index_select(self._real, 0, self._counter, out=self._weight)
        torch.index_select(self._table, 0, self._chosen[0], out=self._exact)
        if self._pairs is not self._exact:
            torch.index_select(self._rounded, 0, self._chosen[0], out=self._pairs)
        self._counter.add_(1)
        size = self._estimator.network.embedding_size
        exact, pairs = (rows.view(self._course.batch_size, 3 * size) for rows in (self._exact, self._pairs))
        for side in self._course.sides:
            start = 0 if side.name == "to_user" else size
            self._noise.normal_(generator=self._estimator.noise)
            self._step(pairs[:, start : start + 2 * size], exact[:, start : start + size], self._noise, self._weight[0])
            self._estimator.optimizer.step()
            self._flat.refresh()

    def _recorded(self) -> Work | None:
        noise = self._estimator.noise
        before = {name: value.clone() for name, value in self._estimator.state().items()}
        put_back = partial(self._put_back, before, noise.get_state())
        return recorded(self._next_batch, name="the estimator's step", generators=lambda: [noise], put_back=put_back)

    def _put_back(self, before: dict[str, Tensor], stream: Tensor) -> None:
        for name, value in self._estimator.state().items():
            value.copy_(before[name])
        self._flat.refresh()
        self._estimator.noise.set_state(stream)
        self._counter.zero_()
        self._step.totals.zero_()


Passes = PlainPasses | WrittenPasses


def make_passes(estimator: Estimator, course: Course, *, record: bool) -> Passes:
    """Recorded on CUDA where asked for, plain otherwise."""
    if record and course.graph.device.type == "cuda":
        return WrittenPasses(estimator, course, record=True)
    return PlainPasses(estimator, course)
