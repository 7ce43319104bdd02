"""The two weights that every edge carries, and those that follow from degrees."""

from __future__ import annotations

import torch
from torch import Tensor

from caged.graph.operators import make_operator
from caged.graph.pattern import BipartiteGraph


class EdgeWeights:
    """Two weights per edge: `to_user` (message user <- item) and `to_item` (message item <- user), user-major.

    `operator` holds the same weights in the form that propagation wants. New values are assigned in place, so whoever
    holds these buffers (a captured step among them) sees the change.
    """

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor) -> None:
        self.to_user = to_user.detach().clone()
        self.to_item = to_item.detach().clone()
        self.operator = make_operator(graph, self.to_user, self.to_item)

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        self.to_user.copy_(to_user)
        self.to_item.copy_(to_item)
        self.operator.assign(self.to_user, self.to_item)


def degree_weights(graph: BipartiteGraph, r: float = 0.5, dtype: torch.dtype = torch.float32) -> EdgeWeights:
    """W_r = D^(r-1) A D^(-r): the message to x from y has weight 1 / (d_x^(1-r) d_y^r).

    r = 1/2 is LightGCN's 1/sqrt(d_x d_y), r = 0 the mean over neighbours. One function serves LightGCN and AdjNorm, so
    that r = 1/2 gives both the same bits. Powers are taken in float64; a node without edges has no weight to speak of,
    so 0^(-p) never occurs here.
    """
    user_degree = graph.user_degrees.to(torch.float64).index_select(0, graph.users)
    item_degree = graph.item_degrees.to(torch.float64).index_select(0, graph.items)

    def weight(target: Tensor, source: Tensor) -> Tensor:
        return (target.pow(r - 1) * source.pow(-r)).to(dtype)

    return EdgeWeights(graph, weight(user_degree, item_degree), weight(item_degree, user_degree))
