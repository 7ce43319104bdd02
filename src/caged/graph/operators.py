"""Which form a propagation takes on which machine.

`auto` compares the cost of one layer: sparse products read 2 E K numbers through the cache, dense ones multiply
2 M N K of them on the tensor cores. K cancels, so the choice depends on density alone, and on memory for the two
dense matrices. The constants were measured on one H200; they decide speed, never results beyond rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor

from caged.errors import ConfigError, DeviceError, unknown

if TYPE_CHECKING:
    from caged.graph.pattern import BipartiteGraph

BACKENDS = ("auto", "sparse", "dense")
PRECISIONS = ("auto", "float32", "tf32", "bf16")
DENSE_DENSITY = 0.01  # above it the dense product wins
DENSE_MEMORY_SHARE = 0.25  # of the free memory that the dense matrices may take


class Tables(NamedTuple):
    """One row per user and one per item; layer-0 embeddings, their propagated form, gradients, or what ranks."""

    users: Tensor  # (M, K)
    items: Tensor  # (N, K)


class Factors(NamedTuple):
    """Weights that are products of two numbers per node: W[x, y] = received[x] * sent[y] along every edge."""

    sent: Tables  # (M,) and (N,): of the node that a message comes from
    received: Tables  # of the node that it goes to; the same tensors as `sent` where W is symmetric

    @property
    def transposed(self) -> Factors:
        return Factors(self.received, self.sent)


class Operator(Protocol):
    """The matrix W of one set of edge weights."""

    skips_rows: bool  # whether `rows` saves any work

    def apply(
        self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool, rows: Tensor | None = None
    ) -> Tables:
        """sum_l layer_weights[l] * W^l tables, or with W^T.

        `rows` (M + N,) flags nodes, users first. With W only their rows of the result are read, others may be wrong;
        with W^T only their rows of `tables` are not zero.
        """


class EdgeOperator(Operator, Protocol):
    """One whose weights may change."""

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        """Take new weights, in place. It may read these tensors later, so they must outlive it."""


@dataclass(frozen=True)
class Engine:
    """How propagation is to be computed; `auto` leaves it to the cost model."""

    backend: str = "auto"
    precision: str = "auto"

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ConfigError(unknown("backend", self.backend, BACKENDS))
        if self.precision not in PRECISIONS:
            raise ConfigError(unknown("precision", self.precision, PRECISIONS))


def check_engine(engine: Engine, device: torch.device) -> None:
    """Before anything is allocated: what the device cannot do is an error."""
    if device.type == "cpu" and (engine.backend == "dense" or engine.precision not in ("auto", "float32")):
        raise DeviceError(
            f"on CPU propagation is sparse in float32, but train.backend is {engine.backend} and train.precision is "
            f"{engine.precision}; leave both at auto, or use --device cuda"
        )


def make_operator(graph: BipartiteGraph, to_user: Tensor, to_item: Tensor) -> EdgeOperator:
    """From a weight per edge and direction."""
    check_engine(graph.engine, graph.device)
    from caged.graph.kernels import CpuOperator, DenseOperator, SparseOperator  # they take `Tables` from here

    if graph.device.type == "cpu":
        return CpuOperator.of_edges(graph, to_user, to_item)
    if chosen_backend(graph) == "dense":
        return DenseOperator(graph, to_user, to_item, graph.engine.precision)
    return SparseOperator(graph, to_user, to_item, graph.engine.precision)


def make_factored_operator(graph: BipartiteGraph, factors: Factors, dtype: torch.dtype) -> Operator:
    """From factors, in float64, of weights that are rounded to `dtype`.

    The sparse form on CUDA keeps no number per edge. The others multiply the factors out: on CPU `embedding_bag` wants
    its weights edge by edge, and a dense graph is small.
    """
    check_engine(graph.engine, graph.device)
    from caged.graph.kernels import CpuOperator, DenseOperator, FactoredOperator

    if graph.device.type == "cpu":
        return CpuOperator.of_factors(graph, factors, dtype)
    if chosen_backend(graph) == "dense":
        to_user, to_item = (edge_values(graph, part, dtype) for part in (factors, factors.transposed))
        return DenseOperator(graph, to_user, to_item, graph.engine.precision)
    return FactoredOperator(graph, factors, graph.engine.precision)


def edge_values(graph: BipartiteGraph, factors: Factors, dtype: torch.dtype) -> Tensor:
    """The weights to users that the factors stand for, user-major; those to items are the ones of the transpose."""
    values = factors.received.users.index_select(0, graph.users)
    return values.mul_(factors.sent.items.index_select(0, graph.items)).to(dtype)


def chosen_backend(graph: BipartiteGraph) -> str:
    """`sparse` or `dense`."""
    if graph.engine.backend != "auto":
        return graph.engine.backend
    if graph.device.type == "cpu":
        return "sparse"
    cells = graph.user_count * graph.item_count
    needed = 2 * cells * (4 if graph.engine.precision in ("float32", "tf32") else 2)
    free, _ = torch.cuda.mem_get_info(graph.device)
    fits = needed <= DENSE_MEMORY_SHARE * free
    return "dense" if fits and graph.edge_count / cells >= DENSE_DENSITY else "sparse"
