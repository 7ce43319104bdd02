"""A vector for a person who was not in training, from a list of items.

With the layers of LightGCN written out, the vector of user u with history x_1..x_n is

    e_u = a_0 e_u^(0) + sum_j w(u, x_j) T_(x_j),    T = sum_{l=1..L} a_l E_item^(l-1)       (1)

A new person has no layer-0 vector and no edge in the graph, so the first term is 0 and the items stay as trained; that
is exact for somebody who listens: edges from items to the person only. With weights that follow from degrees,

    w(u, x) = n^(r-1) d_x^(-r)                                                              (2)

where r = 1/2 is LightGCN. Really adding the person to the graph would also change the degrees and vectors of the items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from caged.errors import ConfigError
from caged.graph import propagate

if TYPE_CHECKING:
    from caged.models.encoder import LightGCNEncoder


class FoldIn(NamedTuple):
    """(1) and (2) for any history: n^exponent times the sum of weights[x] table[x], of unit length for cosines."""

    table: Tensor  # (N, K)
    weights: Tensor  # (N,)
    exponent: float
    by_cosine: bool = False
    note: str = ""  # where a new person is not treated like those in training

    def vectors(self, items: Tensor, lengths: Tensor) -> Tensor:
        """(n, K) for n histories: `items` one after the other, `lengths` (n,) of each, at least 1."""
        owner = torch.repeat_interleave(lengths)
        rows = self.table.index_select(0, items) * self.weights.index_select(0, items).unsqueeze(1)
        summed = torch.zeros(len(lengths), self.table.shape[1], dtype=rows.dtype, device=rows.device)
        summed.index_add_(0, owner, rows)
        scaled = summed * lengths.to(rows.dtype).pow(self.exponent).unsqueeze(1)
        return torch.nn.functional.normalize(scaled, dim=1) if self.by_cosine else scaled


def fold_in_by_degree(encoder: LightGCNEncoder, r: float = 0.5, *, by_cosine: bool = False, note: str = "") -> FoldIn:
    """(1) with the weights (2)."""
    if len(encoder.layer_weights) == 1:
        raise ConfigError(
            "this model has method.layers=0: a person's vector is learned and no sum over items, so nobody new can be "
            "given one; train with at least one layer"
        )
    degrees = encoder.graph.item_degrees.double()
    weights = torch.where(degrees > 0, degrees.clamp_min(1).pow(-r), torch.zeros_like(degrees))
    with torch.no_grad():
        table = propagate(encoder.weights, encoder.layer0, encoder.layer_weights[1:]).items
    return FoldIn(table, weights.to(table.dtype), r - 1, by_cosine, note)
