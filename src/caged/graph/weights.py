"""The two weights that every edge carries: stored per edge where a method changes them, else as factors per node."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from caged.graph.operators import (
    Factors,
    Operator,
    Tables,
    check_engine,
    edge_values,
    make_factored_operator,
    make_operator,
)
from caged.graph.pattern import BipartiteGraph


class Weights(Protocol):
    """Two weights per edge: `to_user` (message user <- item) and `to_item` (message item <- user), user-major.

    `operator` holds the same weights in the form that propagation wants.
    """

    @property
    def to_user(self) -> Tensor: ...

    @property
    def to_item(self) -> Tensor: ...

    @property
    def operator(self) -> Operator: ...


class EdgeWeights:
    """`Weights` of any kind, stored edge by edge.

    New values are assigned in place, so whoever holds these buffers (a captured step among them) sees the change.
    """

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor) -> None:
        self.to_user = to_user.detach().clone()
        self.to_item = to_item.detach().clone()
        self.operator = make_operator(graph, self.to_user, self.to_item)

    def assign(self, to_user: Tensor, to_item: Tensor) -> None:
        self.to_user.copy_(to_user)
        self.to_item.copy_(to_item)
        self.operator.assign(self.to_user, self.to_item)


class FactoredWeights:
    """`Weights` that are products of a number of the target and one of the source. They never change."""

    def __init__(self, graph: BipartiteGraph, factors: Factors, dtype: torch.dtype = torch.float32) -> None:
        """`factors` in float64; `dtype` is that of the weights."""
        check_engine(graph.engine, graph.device)
        self._graph, self._factors, self._dtype = graph, factors, dtype

    @cached_property
    def operator(self) -> Operator:
        """Made when it is first used: a method that goes on with `per_edge`, or recommends later, has no use for it."""
        return make_factored_operator(self._graph, self._factors, self._dtype)

    @property
    def to_user(self) -> Tensor:
        """Multiplied out on every call, and not kept."""
        return edge_values(self._graph, self._factors, self._dtype)

    @property
    def to_item(self) -> Tensor:
        return edge_values(self._graph, self._factors.transposed, self._dtype)

    def per_edge(self) -> EdgeWeights:
        """The same weights for a method that will change them."""
        return EdgeWeights(self._graph, self.to_user, self.to_item)


def degree_factors(user_degrees: Tensor, item_degrees: Tensor, r: float) -> Factors:
    """Of D^(r-1) A D^(-r), in float64; 0 for a node without edges, which neither sends nor receives."""

    def powers(exponent: float) -> Tables:
        degrees = (side.to(torch.float64) for side in (user_degrees, item_degrees))
        return Tables(*(torch.where(side > 0, side.pow(exponent), 0.0) for side in degrees))

    sent = powers(-r)
    return Factors(sent, sent if r - 1 == -r else powers(r - 1))


def degree_weights(graph: BipartiteGraph, r: float = 0.5, dtype: torch.dtype = torch.float32) -> FactoredWeights:
    """W_r = D^(r-1) A D^(-r): the message to x from y has weight 1 / (d_x^(1-r) d_y^r).

    r = 1/2 is LightGCN's 1/sqrt(d_x d_y), r = 0 the mean over neighbours. One function serves LightGCN and AdjNorm, so
    that r = 1/2 gives both the same bits.
    """
    return FactoredWeights(graph, degree_factors(graph.user_degrees, graph.item_degrees, r), dtype)
