"""EASE: Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019.

Predict a user's row of the training matrix R from itself, by a linear item-item model that may not use an item to
predict that item. The ridge regression has a closed form:

    min_B |R - R B|^2 + lambda |B|^2   subject to diag(B) = 0                              (1)
    P = (R^T R + lambda I)^-1,    B_ij = -P_ij / P_jj,   B_jj = 0                          (2)
    s_u = R[u] B                                                                           (3)

| symbol | here |
|---|---|
| lambda | `ridge` |
| R^T R | `gram`, from a sparse product, exact |
| B | `weights`, (N, N), row = what the user has, column = what is predicted |

Deviations. None known. The matrix is positive definite, so P comes from a Cholesky factor instead of a general inverse.

Memory: at most three N x N matrices at a time while fitting (of Gram matrix, factor, inverse and a working copy, beside
some columns) in the chosen precision, and B in float32, that is 28 N^2 bytes in float64 and 16 N^2 in float32; more
than `memory_gib` is an error before anything is allocated. Time: about N^3 multiplications, however many users.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from caged.config import option
from caged.errors import DeviceError
from caged.graph import BipartiteGraph
from caged.models.contract import Method, Scorer, Stage, State
from caged.models.item_item import HistoryScorer, check_memory, training_matrix
from caged.seeding import Generators
from caged.threads import threads

PRECISIONS = {"float64": torch.float64, "float32": torch.float32}
GRAM_BLOCK_CELLS = 2**24  # of the Gram matrix that one sparse product may fill
THREADS_TO_SOLVE = 4  # from here on solving is faster than LAPACK's inverse on one thread
SOLVE_COLUMNS = 2048  # of the unit matrix at a time


@dataclass(frozen=True)
class EASEConfig:
    ridge: float = option(
        500.0,
        "lambda in (1): larger is smoother and closer to popularity",
        source="EASE paper, ML-20M",
        above=0,
        search=(10.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2000.0),
    )
    precision: str = option("float64", "numbers of (2)", choices=tuple(PRECISIONS))
    memory_gib: float = option(16.0, "memory limit for fitting", above=0)


def needed_bytes(item_count: int, precision: str) -> int:
    """Three matrices while fitting and one that stays."""
    return item_count**2 * (3 * PRECISIONS[precision].itemsize + 4)


def gram_matrix(graph: BipartiteGraph, dtype: torch.dtype) -> Tensor:
    """R^T R, (N, N): how many users two items share; exact in float32 up to 2^24 users."""
    matrix = training_matrix(graph)
    by_item = matrix.T.tocsr()
    gram = torch.empty(graph.item_count, graph.item_count, dtype=dtype)
    block = max(1, GRAM_BLOCK_CELLS // graph.item_count)
    for first in range(0, graph.item_count, block):
        rows = (by_item[first : first + block] @ matrix).toarray()
        gram[first : first + block] = torch.from_numpy(rows)
    return gram.to(graph.device)


def inverse_of(factor: Tensor) -> Tensor:
    """(L L^T)^-1, symmetric.

    LAPACK's inverse from a factor (potri) does the least work. On a few threads that have to share their cores its
    threads wait for each other, up to a hundred times as long as one thread takes; so it gets one. With many threads,
    solving for blocks of the unit matrix wins, although it multiplies three times as much.
    """
    if factor.device.type != "cpu":
        return torch.cholesky_inverse(factor)
    if torch.get_num_threads() < THREADS_TO_SOLVE:
        with threads(1):
            return torch.cholesky_inverse(factor)
    inverse = torch.empty_like(factor)
    for first in range(0, len(factor), SOLVE_COLUMNS):
        block = slice(first, min(first + SOLVE_COLUMNS, len(factor)))
        unit = torch.zeros(len(factor), block.stop - block.start, dtype=factor.dtype)
        unit[block].fill_diagonal_(1.0)
        inverse[:, block] = torch.cholesky_solve(unit, factor)
    return inverse


def ease_weights(gram: Tensor, ridge: float) -> Tensor:
    """(2); `gram` is overwritten, and freed where nobody else holds it."""
    gram.diagonal().add_(ridge)
    factor, failed = torch.linalg.cholesky_ex(gram)
    if bool(failed):
        raise DeviceError(
            f"R^T R + {ridge:g} I is not positive definite in {str(factor.dtype).removeprefix('torch.')}; use "
            "method.precision=float64 or a larger method.ridge"
        )
    del gram
    inverse = inverse_of(factor)
    weights = inverse.div_(-inverse.diagonal().clone())
    weights.diagonal().zero_()
    return weights


class EASE(Method[EASEConfig]):
    weights: Tensor  # (N, N) float32

    def stages(self) -> tuple[Stage, ...]:
        return ()

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        count = graph.item_count
        check_memory(
            needed_bytes(count, self.config.precision),
            self.config.memory_gib,
            f"ease on {count} items in {self.config.precision}",
            "use method.precision=float32 or a method whose size is linear in the catalogue, such as itemknn",
        )
        self._graph = graph
        self.weights = torch.zeros(count, count, device=graph.device)

    def fit_closed_form(self) -> None:
        precision = PRECISIONS[self.config.precision]
        self.weights.copy_(ease_weights(gram_matrix(self._graph, precision), self.config.ridge))

    def scorer(self) -> Scorer:
        return HistoryScorer(self._graph, lambda rows: rows @ self.weights)

    def related(self, items: Tensor, /) -> Tensor:
        """Row i of B: what having item i adds to the score of every other item."""
        return self.weights.index_select(0, items)

    def item_arrays(self) -> dict[str, Tensor]:
        return {"item_weights": self.weights}

    def state(self) -> State:
        return State({"weights": self.weights}, {})
