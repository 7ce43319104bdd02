"""The adversary of AdvDrop: the probability of every directed edge, the ARM estimator, and the maps that it trains.

Equation numbers are those of `method.py`. Nothing here goes through autograd. Propagation is evaluated, never
differentiated; the rest of the chain is short enough to be written down. With d the gradient with respect to the
centred logits, (2E,), and W the matrix with the entries of `centred(d)` on the pattern of the graph,

    dalpha = centred(d)             centring subtracts means: it is a projection, and its own adjoint
    dk = W q,    dq = W^T k
    dQ = (dq / |x|)^T x,    dK' = (dk / |x|)^T x,    and column sums for the biases
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn

from caged.graph import BipartiteGraph
from caged.graph.edge_products import CpuProducts, EdgeProducts, EdgeValues, SparseProducts
from caged.optimiser import adam_with_moments

SMALLEST_NORM = 1e-12


# ---------------------------------------------------------------- the ARM estimator


def arm_masks(u: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """(7): two antithetic samples of Bernoulli(keep) from one uniform number each.

    >>> u, keep = torch.tensor([0.1, 0.3, 0.9]), torch.tensor([0.8, 0.8, 0.8])
    >>> [mask.tolist() for mask in arm_masks(u, keep)]
    [[False, True, True], [True, True, False]]
    """
    return u > 1 - keep, u < keep


def arm_gradient(u: Tensor, first: Tensor, second: Tensor, coefficient: float) -> Tensor:
    """(8): the gradient that descends on -L_inv, with L_inv = `first` under m1 and `second` under m2.

    Without the coefficient, -g averages to dE[L_inv]/dlogit.

    >>> arm_gradient(torch.tensor([0.5, 0.75]), torch.tensor(3.0), torch.tensor(1.0), coefficient=5.0).tolist()
    [-0.0, -2.5]
    """
    return coefficient * (second - first) * (u - 0.5)


# ---------------------------------------------------------------- edge logits


class DirectedEdges:
    """The 2E entries of A~ as messages: those to users first, then those to items, both user-major.

    Nodes 0..M-1 are users, M..M+N-1 items. `center` says which end of a message is the centring node.
    """

    def __init__(self, graph: BipartiteGraph, center: str) -> None:
        users, items = graph.users, graph.items + graph.user_count
        self.centres = torch.cat((items, users) if center == "sender" else (users, items))
        # Every node is the centre of one direction of its edges; one without edges is nobody's.
        self.degrees = torch.cat((graph.user_degrees, graph.item_degrees)).clamp(min=1).float()
        # In float32 also where propagation is not: rows of ten numbers are no work for tensor cores.
        on_gpu = graph.device.type == "cuda"
        self._products: EdgeProducts = SparseProducts(graph, torch.float32) if on_gpu else CpuProducts(graph)

    def dots(self, of_senders: Tensor, of_receivers: Tensor) -> Tensor:
        """(2E,) products of the sender's row and the receiver's row; the tables have a row per node."""
        to_user = self._products.dots(of_receivers, of_senders)
        return torch.cat((to_user, self._products.dots(of_senders, of_receivers)))

    def to_receivers(self, values: Tensor, nodes: Tensor) -> Tensor:
        """W nodes: (2E,) values times the rows of the senders, summed for every receiver."""
        return self._products.sums(EdgeValues(*values.chunk(2)), nodes)

    def to_senders(self, values: Tensor, nodes: Tensor) -> Tensor:
        """W^T nodes."""
        return self._products.sums(EdgeValues(*values.chunk(2)).swapped, nodes)

    def centred(self, values: Tensor) -> Tensor:
        """(2): minus the mean over the entries of the same centre."""
        sums = torch.zeros_like(self.degrees).index_add_(0, self.centres, values)
        return values - (sums / self.degrees).index_select(0, self.centres)


# ---------------------------------------------------------------- what is trained


class Adversary:
    """Q and K' with their Adam: what lives on from one adversarial phase to the next."""

    def __init__(
        self, edges: DirectedEdges, *, embedding_size: int, width: int, learning_rate: float, start: Generator
    ) -> None:
        self.edges = edges
        device = edges.centres.device
        bound = 1 / math.sqrt(embedding_size)  # of torch's linear layers, weights and biases alike

        def uniform(*shape: int) -> nn.Parameter:
            values = torch.empty(shape).uniform_(-bound, bound, generator=start)
            return nn.Parameter(values.to(device), requires_grad=False)

        self.weight = uniform(2 * width, embedding_size)  # rows of Q, then of K'
        self.bias = uniform(2 * width)
        trained = [self.weight, self.bias]
        self.optimizer = adam_with_moments(trained, learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Maps and moments, by name."""
        tensors = {}
        for name, values in (("weight", self.weight), ("bias", self.bias)):
            tensors[f"adversary.{name}"] = values.data
            for moment, value in self.optimizer.state[values].items():
                tensors[f"adversary_adam.{name}.{moment}"] = value
        return tensors

    @torch.no_grad()
    def logits(self, tables: tuple[Tensor, Tensor]) -> Tensor:
        """(1) and (2): centred logits of all directed edges, (2E,), from tables of layer 0."""
        return self.edges.centred(self.edges.dots(*self._mapped(*_rows_and_norms(tables))))

    @torch.no_grad()
    def step(self, tables: tuple[Tensor, Tensor], gradient: Tensor) -> None:
        """One Adam step; `gradient` (2E,) is with respect to the `logits` of `tables`."""
        self.weight.grad, self.bias.grad = self.gradients(tables, gradient)
        self.optimizer.step()

    def gradients(self, tables: tuple[Tensor, Tensor], gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Of `weight` and `bias`, by the chain in the docstring of this module."""
        rows, norms = _rows_and_norms(tables)
        q, k = self._mapped(rows, norms)
        of_alpha = self.edges.centred(gradient)
        of_q, of_k = self.edges.to_senders(of_alpha, k), self.edges.to_receivers(of_alpha, q)
        of_mapped = torch.cat((of_q, of_k), dim=1)  # (M + N, 2 width)
        return (of_mapped / norms).T @ rows, of_mapped.sum(0)

    def _mapped(self, rows: Tensor, norms: Tensor) -> tuple[Tensor, Tensor]:
        """Q x^ and K' x^ of every node, (M + N, width) each; the unit rows x^ themselves are not needed."""
        q, k = (rows @ self.weight.T / norms + self.bias).chunk(2, dim=1)
        return q.contiguous(), k.contiguous()


def _rows_and_norms(tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    rows = torch.cat(tables).detach()
    return rows, torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(SMALLEST_NORM)
