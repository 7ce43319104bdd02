"""Most popular: the same list for everybody, items by their number of training users.

    s_ui = d_i

The yardstick of popularity bias, and the proof that the method contract is not LightGCN in disguise: no tables, no
optimiser, no epochs. Its serving vectors have one column: 1 for every user, d_i for every item.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from caged.graph import BipartiteGraph, Tables
from caged.models.contract import DotScorer, Method, Scorer, Stage, State
from caged.seeding import Generators


@dataclass(frozen=True)
class MostPopularConfig:
    """Nothing to set."""


class MostPopular(Method[MostPopularConfig]):
    popularity: Tensor  # (N, 1)

    def stages(self) -> tuple[Stage, ...]:
        return ()

    def prepare(self, graph: BipartiteGraph, generators: Generators) -> None:
        self._graph = graph
        self.popularity = torch.zeros(graph.item_count, 1, device=graph.device)

    def fit_closed_form(self) -> None:
        # float32 holds every count up to 2^24 exactly; beyond that, neighbouring counts may tie
        self.popularity.copy_(self._graph.item_degrees.unsqueeze(1))

    def scorer(self) -> Scorer:
        everyone = torch.ones(self._graph.user_count, 1, device=self._graph.device)
        return DotScorer(Tables(everyone, self.popularity))

    def state(self) -> State:
        return State({"popularity": self.popularity}, {})
