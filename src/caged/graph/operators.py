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


class Operator(Protocol):
    """The matrix W of one set of edge weights."""

    skips_rows: bool  # whether `rows` saves any work

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        """Take new weights, in place."""

    def apply(
        self, tables: Tables, layer_weights: Sequence[float], *, transposed: bool, rows: Tensor | None = None
    ) -> Tables:
        """sum_l layer_weights[l] * W^l tables, or with W^T.

        `rows` (M + N,) flags the nodes whose rows of the result will be read, users first; others may be wrong. It is
        for W only.
        """


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


def make_operator(graph: BipartiteGraph, to_user: Tensor, to_item: Tensor) -> Operator:
    check_engine(graph.engine, graph.device)
    from caged.graph.kernels import CpuOperator, DenseOperator, SparseOperator  # they take `Tables` from here

    if graph.device.type == "cpu":
        return CpuOperator(graph, to_user, to_item)
    if chosen_backend(graph) == "dense":
        return DenseOperator(graph, to_user, to_item, graph.engine.precision)
    return SparseOperator(graph, to_user, to_item, graph.engine.precision)


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
