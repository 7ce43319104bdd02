"""ItemKNN: item-based nearest neighbours. Sarwar et al., "Item-based collaborative filtering recommendation
algorithms", WWW 2001; with shrinkage and weighting as in Ferrari Dacrema et al., "Are We Really Making Much Progress?",
RecSys 2019, where it beats many a newer method.

Two items are similar if the same users have them. A user is recommended what is similar to what the user has.

    x_ui   = R_ui * (weighting)                                                            (1)
    t_ij   = x_i . x_j / (|x_i| |x_j| + shrinkage),   i != j                               (2)
    s_ui   = sum of t_ij over j in N(u) that are among the `neighbours` of i with largest t_ij   (3)

Weightings (1), items as documents and users as terms:

| `weighting` | x_ui where R_ui = 1 |
|---|---|
| `none` | 1 |
| `tfidf` | idf_u = ln((N + 1) / (d_u + 1)): users with many items say less about each |
| `bm25` | idf_u (k1 + 1) / (1 + k1 (1 - b + b d_i / mean d)): the same, saturating for popular items |

| symbol | here |
|---|---|
| x | columns of `weighted_matrix` |
| t | `neighbours` (N, k) and `similarities` (N, k): for each target item its nearest items, padded with similarity 0 |
| R[u] t | `embedding_bag` over the neighbour lists, exact |

Deviations. Published code differs in the smoothing of idf (ours is never negative) and in whether (3) uses weighted
rows; ours uses R. Ties in (3) go to the smaller row number.

Memory: 8 N k bytes for the lists, twice while fitting, and some 200 MB for blocks of similarities; more than
`memory_gib` is an error before anything is allocated. The similarity matrix itself is never held (`neighbours`). Time:
at most that of the sum over users of d_u^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from caged.config import option
from caged.graph import BipartiteGraph
from caged.models.contract import Method, Scorer, Stage, State
from caged.models.item_item import HistoryScorer, check_memory, training_matrix
from caged.models.itemknn.neighbours import BLOCK_BYTES, Similarities, nearest_items
from caged.seeding import Generators


@dataclass(frozen=True)
class ItemKNNConfig:
    neighbours: int = option(
        100,
        "nearest items kept per item",
        source="our choice, within the range of the RecSys 2019 study",
        minimum=1,
        search=(20, 50, 100, 200, 500),
    )
    shrinkage: float = option(
        10.0,
        "in (2): pulls similarities from few common users towards 0",
        source="our choice, within the range of the RecSys 2019 study",
        minimum=0,
        search=(0.0, 10.0, 50.0, 100.0, 500.0),
    )
    weighting: str = option(
        "none",
        "weight of an interaction in (1)",
        source="our choice: plain cosine",
        choices=("none", "tfidf", "bm25"),
        search=("none", "tfidf", "bm25"),
    )
    bm25_k1: float = option(1.2, "k1 of bm25: how fast popularity saturates", source="RecSys 2019 study, code", above=0)
    bm25_b: float = option(
        0.75, "b of bm25: how much popularity counts as length", source="RecSys 2019 study, code", minimum=0, maximum=1
    )
    memory_gib: float = option(16.0, "memory limit for fitting", above=0)


def weighted_matrix(matrix: Any, weighting: str, k1: float, b: float) -> Any:
    """(1): R (M, N) as CSR -> the weighted matrix, same pattern."""
    if weighting == "none":
        return matrix
    user_degrees, item_degrees = np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=matrix.shape[1])
    idf = np.log((matrix.shape[1] + 1) / (user_degrees + 1))
    weighted = matrix.copy()
    weighted.data = np.repeat(idf, user_degrees)
    if weighting == "bm25":
        length = 1 - b + b * item_degrees / item_degrees.mean()
        weighted.data *= ((k1 + 1) / (1 + k1 * length))[matrix.indices]
    return weighted


class ItemKNN(Method[ItemKNNConfig]):
    neighbours: Tensor  # (N, k) int32
    similarities: Tensor  # (N, k) float32

    def stages(self) -> tuple[Stage, ...]:
        return ()

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        shape = (graph.item_count, min(self.config.neighbours, graph.item_count))
        check_memory(
            16 * shape[0] * shape[1] + BLOCK_BYTES,
            self.config.memory_gib,
            f"itemknn with {shape[1]} neighbours of {shape[0]} items",
            "use fewer method.neighbours",
        )
        self._graph = graph
        self.neighbours = torch.zeros(shape, dtype=torch.int32, device=graph.device)
        self.similarities = torch.zeros(shape, device=graph.device)

    def fit_closed_form(self) -> None:
        matrix = training_matrix(self._graph)
        by_user = weighted_matrix(matrix, self.config.weighting, self.config.bm25_k1, self.config.bm25_b)
        similarities = Similarities(by_user, self.config.shrinkage, unweighted=self.config.weighting == "none")
        columns, values = nearest_items(similarities, self.neighbours.shape[1])
        self.neighbours.copy_(torch.from_numpy(columns))
        self.similarities.copy_(torch.from_numpy(values))

    def scorer(self) -> Scorer:
        return HistoryScorer(self._graph, self._scores_of)

    def related(self, items: Tensor, /) -> Tensor:
        """The neighbours of item i with their similarity; all others, and items that share no user, are not near."""
        found = self.similarities.index_select(0, items)
        found = found.masked_fill(found <= 0, float("-inf"))
        rows = found.new_full((len(items), len(self.neighbours)), float("-inf"))
        return rows.scatter_reduce_(1, self.neighbours.index_select(0, items).long(), found, "amax")

    def item_arrays(self) -> dict[str, Tensor]:
        return {"neighbours": self.neighbours, "similarities": self.similarities}

    def state(self) -> State:
        return State({"neighbours": self.neighbours, "similarities": self.similarities}, {})

    def _scores_of(self, rows: Tensor) -> Tensor:
        """(3) for a block of users: every item sums over its own list."""
        table = rows.T.contiguous()  # (N, b)
        scores = F.embedding_bag(self.neighbours, table, per_sample_weights=self.similarities, mode="sum")
        return scores.T.contiguous()
