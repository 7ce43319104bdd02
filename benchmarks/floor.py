"""The least time that a piece of work can take on this machine: counted bytes and flops over measured rates."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.timing import Ceilings
from caged.graph import BipartiteGraph, chosen_backend


class Floor(NamedTuple):
    seconds: float
    limit: str  # the rate that sets it

    def fraction(self, taken: float) -> float:
        """Of the ceiling: 1 would be as fast as the machine can."""
        return self.seconds / taken


def propagation_floor(
    graph: BipartiteGraph, width: int, layers: int, ceilings: Ceilings, *, for_a_batch: bool = False
) -> Floor:
    """Forward and backward through L layers, both directions.

    Sparse products leave out rows that a batch does not name in the last layer forward; with `for_a_batch` that layer
    is not counted at all.
    """
    if chosen_backend(graph) == "dense":
        return _dense_floor(graph, width, 2 * layers, ceilings)
    products = 2 * layers - (for_a_batch and graph.device.type == "cuda")
    return Floor(propagation_bytes(graph, width, products) / ceilings.cache_bytes_per_s, "copy in cache")


def propagation_bytes(graph: BipartiteGraph, width: int, products: int) -> int:
    """Rows of the source table, one per edge, with index and weight, and the result, in both directions."""
    number = 2 if graph.device.type == "cuda" and graph.engine.precision in ("auto", "bf16") else 4
    nodes = graph.user_count + graph.item_count
    return products * (2 * graph.edge_count * (number * width + 8) + nodes * 4 * width)


def _dense_floor(graph: BipartiteGraph, width: int, products: int, ceilings: Ceilings) -> Floor:
    """Each product multiplies and reads two M x N matrices in bfloat16, one per direction."""
    cells = products * 2 * graph.user_count * graph.item_count
    floors = {
        "matrix product": 2 * cells * width / ceilings.flops,
        "copy in memory": 2 * cells / ceilings.memory_bytes_per_s,
    }
    limit = max(floors, key=lambda name: floors[name])
    return Floor(floors[limit], limit)


def step_floor(graph: BipartiteGraph, width: int, layers: int, ceilings: Ceilings) -> Floor:
    """Propagation and Adam, which reads and writes parameter and both moments and reads the gradient."""
    adam = 7 * 4 * width * (graph.user_count + graph.item_count)
    spread = propagation_floor(graph, width, layers, ceilings, for_a_batch=True)
    return Floor(spread.seconds + adam / ceilings.cache_bytes_per_s, spread.limit)


def softmax_step_floor(
    graph: BipartiteGraph, width: int, layers: int, batch: int, candidates: int, ceilings: Ceilings
) -> Floor:
    """A step, and three products for the logits of a batch: themselves, and the gradients of both of their sides."""
    products = 3 * 2 * batch * candidates * width / ceilings.flops
    rest = step_floor(graph, width, layers, ceilings)
    return Floor(rest.seconds + products, "matrix product" if products > rest.seconds else rest.limit)
