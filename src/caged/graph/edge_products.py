"""Messages whose weights follow from the embeddings: values on the fixed pattern that change with every batch.

Nodes are one table of M + N rows, users first. With scored rows h, sent rows d (h itself, or h after dropout), a
function a and constant factors w per edge e = (u, i) and direction,

    c_e = h_u . h_i                                         one product per edge, the same in both directions    (1)
    m_u = sum_i a(c_e) w_e^user d_i,    m_i = sum_u a(c_e) w_e^item d_u                                          (2)

The weight of a message is differentiated through its source only, its target counts as constant. With v = a(c) w and
the gradient g of m:

    d_i : sum_u v_e^user g_u                   b_e^user = g_u . d_i           (item <- user likewise)             (3)
    h_i : sum_u b_e^user w_e^user a'(c_e) h_u                                                                    (4)

So a layer costs one round of edge products (SDDMM) and one of weighted sums (SpMM) forward, two of each backward, and
no tensor of E x K numbers exists. Forms of these two operations:

| form | where | edge products | weighted sums |
|---|---|---|---|
| `CpuProducts` | CPU | `sampled_addmm` | `embedding_bag`, as in `cpu.py` |
| `SparseProducts` | CUDA | one Triton launch | that of `cuda.py` |
| `DenseProducts` | CUDA | U V^T on the tensor cores, read at the edges | values in M x N matrices, two products |

The dense form is taken where propagation takes it. It holds two matrices and one more for a moment, so that together
with those of propagation it stays within 5/8 of the memory that was free. On CPU every form is deterministic.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from caged.graph.kernels.cpu import CpuOperator
from caged.graph.kernels.cuda import PADDING
from caged.graph.operators import Tables, chosen_backend
from caged.graph.pattern import INT32_MAX, BipartiteGraph

# Edges x columns that masked messages take at a time: within the cache of a CPU, few launches on a GPU.
MASKED_CELLS = {"cpu": 2**18, "cuda": 2**26}

EdgeFunction = Callable[[Tensor], tuple[Tensor, Tensor]]  # (E,) products c -> a(c) and its slope a'(c)


class EdgeValues(NamedTuple):
    """A value per edge and direction, user-major; both may be one tensor."""

    to_user: Tensor  # (E,)  message user <- item
    to_item: Tensor  # (E,)  message item <- user

    def times(self, values: Tensor) -> EdgeValues:
        """Both directions times `values` (E,)."""
        to_user = self.to_user * values
        return EdgeValues(to_user, to_user if self.to_item is self.to_user else self.to_item * values)

    @property
    def swapped(self) -> EdgeValues:
        """The same edges run backwards: `sums` of it collects at the source of a message what lies at its target.

        Both sums of the gradient are of this kind, (3) over the targets' gradients and (4) over the targets' rows.
        """
        return EdgeValues(self.to_item, self.to_user)


class EdgeProducts(Protocol):
    """The two operations on the pattern of a graph, for tables in the form that `enter` gives."""

    def enter(self, nodes: Tensor) -> Tensor:
        """(M + N, K) rows in the form, and the precision, of this back end."""

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """(E,) products of the user's row in `left` and the item's row in `right`."""

    def sums(self, values: EdgeValues, nodes: Tensor) -> Tensor:
        """(M + N, K): sum_i to_user[e] nodes[i] for every user, sum_u to_item[e] nodes[u] for every item."""


def make_edge_products(graph: BipartiteGraph) -> EdgeProducts:
    """The form that suits the device and the density of the graph."""
    if graph.device.type == "cpu":
        return CpuProducts(graph)
    precision = graph.engine.precision
    table_type = torch.float32 if precision in ("float32", "tf32") else torch.bfloat16
    if chosen_backend(graph) == "dense":
        return DenseProducts(graph, table_type, tf32=precision == "tf32")
    return SparseProducts(graph, table_type)


# ---------------------------------------------------------------- the differentiable layer


def adaptive_messages(
    products: EdgeProducts,
    scored: Tensor,
    factors: EdgeValues,
    weight: EdgeFunction | None,
    *,
    sent: Tensor | None = None,
    masks: MessageMasks | None = None,
) -> Tensor:
    """(2): (M + N, K) sums of the messages along all edges, with the gradients (3) and (4).

    `sent` are the rows d, `scored` itself where it is None; `masks` drop single entries of single messages. Without a
    `weight`, a = 1.
    """
    messages = _Messages(products) if masks is None else masks
    out: Tensor = _AdaptiveMessages.apply(scored, sent, products, messages, factors, weight)  # type: ignore[no-untyped-call]
    return out


class _Messages:
    """Whole rows along the edges."""

    def __init__(self, products: EdgeProducts) -> None:
        self._products = products

    def send(self, values: EdgeValues, nodes: Tensor) -> Tensor:
        return self._products.sums(values, nodes)

    def send_back(self, values: EdgeValues, gradient: Tensor) -> Tensor:
        """The transpose of `send`: from targets to sources."""
        return self._products.sums(values.swapped, gradient)

    def dots(self, gradient: Tensor, nodes: Tensor) -> EdgeValues:
        """Gradient of the target times row of the source, for both directions."""
        return EdgeValues(self._products.dots(gradient, nodes), self._products.dots(nodes, gradient))


class MessageMasks:
    """Messages of which single entries are kept: a mask of E x K per direction, walked through in runs of edges.

    The masks are the only tensors of that size, a byte per entry; they are kept from forward to backward.
    """

    def __init__(self, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor) -> None:
        self._keep = EdgeValues(to_user, to_item)
        self._users, self._items = graph.users, graph.items + graph.user_count
        self._node_count = graph.user_count + graph.item_count
        run = max(1, MASKED_CELLS[graph.device.type] // to_user.shape[1])
        self._runs = [slice(first, first + run) for first in range(0, graph.edge_count, run)]

    def send(self, values: EdgeValues, nodes: Tensor) -> Tensor:
        return self._sums(values, self._keep, nodes)

    def send_back(self, values: EdgeValues, gradient: Tensor) -> Tensor:
        return self._sums(values.swapped, self._keep.swapped, gradient)

    def dots(self, gradient: Tensor, nodes: Tensor) -> EdgeValues:
        def of_direction(targets: Tensor, sources: Tensor, keep: Tensor) -> Tensor:
            parts = []
            for run in self._runs:
                rows = gradient.index_select(0, targets[run]).mul_(nodes.index_select(0, sources[run]))
                parts.append(rows.mul_(keep[run]).sum(1, dtype=_sum_type(rows)))
            return torch.cat(parts)

        return EdgeValues(
            of_direction(self._users, self._items, self._keep.to_user),
            of_direction(self._items, self._users, self._keep.to_item),
        )

    def _sums(self, values: EdgeValues, keep: EdgeValues, nodes: Tensor) -> Tensor:
        out = values.to_user.new_zeros(self._node_count, nodes.shape[1])
        for run in self._runs:
            for targets, sources, value, kept in (
                (self._users, self._items, values.to_user, keep.to_user),
                (self._items, self._users, values.to_item, keep.to_item),
            ):
                rows = nodes.index_select(0, sources[run]).to(value.dtype)
                out.index_add_(0, targets[run], rows.mul_(kept[run]).mul_(value[run].unsqueeze(1)))
        return out


class _AdaptiveMessages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scored: Tensor,
        sent: Tensor | None,
        products: EdgeProducts,
        messages: _Messages | MessageMasks,
        factors: EdgeValues,
        weight: EdgeFunction | None,
    ) -> Tensor:
        own = products.enter(scored)
        other = own if sent is None else products.enter(sent)
        values, slope = factors, None
        if weight is not None:
            size, slope = weight(products.dots(own, own))
            values = factors.times(size)
        ctx.fixed = (products, messages, factors, sent is not None, slope is not None)
        ctx.save_for_backward(own, other, *values, *(() if slope is None else (slope,)))
        return messages.send(values, other)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        products, messages, factors, sent_apart, adaptive = ctx.fixed
        own, other, to_user, to_item, *slope = ctx.saved_tensors
        given = products.enter(gradient.contiguous())
        to_sent = messages.send_back(EdgeValues(to_user, to_item), given)  # (3)
        to_scored = None
        if adaptive:
            dots, steep = messages.dots(given, other), factors.times(slope[0])
            pull = EdgeValues(dots.to_user * steep.to_user, dots.to_item * steep.to_item)
            # (4), backwards along the edges as in `send_back`: what pulls at a target's message acts on its source.
            to_scored = products.sums(pull.swapped, own)
        if not sent_apart:
            to_scored, to_sent = to_sent if to_scored is None else to_scored.add_(to_sent), None
        return (to_scored, to_sent, None, None, None, None)


# ---------------------------------------------------------------- the three forms


class CpuProducts:
    """Row by row of the pattern: no intermediate tensors, each number summed by one thread in a fixed order."""

    def __init__(self, graph: BipartiteGraph) -> None:
        self._graph = graph
        self._shape = (graph.user_count, graph.item_count)
        zeros = torch.zeros(graph.edge_count)
        with warnings.catch_warnings():  # that this layout is in beta state
            warnings.simplefilter("ignore", UserWarning)
            self._pattern = torch.sparse_csr_tensor(
                graph.user_offsets, graph.items, zeros, self._shape, check_invariants=False
            )

    def enter(self, nodes: Tensor) -> Tensor:
        return nodes

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        users = self._graph.user_count
        found: Tensor = torch.sparse.sampled_addmm(self._pattern.to(left.dtype), left[:users], right[users:].T)
        return found.values()

    def sums(self, values: EdgeValues, nodes: Tensor) -> Tensor:
        operator = CpuOperator.of_edges(self._graph, values.to_user, values.to_item)
        users = self._graph.user_count
        tables = Tables(nodes[:users], nodes[users:])
        return torch.cat(operator.apply(tables, (0.0, 1.0), transposed=False))


class SparseProducts:
    """A gather of two rows per edge; sums over the stacked pattern of `cuda.py`."""

    def __init__(self, graph: BipartiteGraph, table_type: torch.dtype) -> None:
        self._graph = graph
        self._table_type = table_type

    def enter(self, nodes: Tensor) -> Tensor:
        return nodes.to(self._table_type)

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        from caged.graph.kernels.triton_edges import edge_dots

        graph = self._graph
        of_items = right[graph.user_count :]
        out: Tensor = edge_dots(left, of_items, graph.users, graph.items)
        return out

    def sums(self, values: EdgeValues, nodes: Tensor) -> Tensor:
        from caged.graph.kernels.triton_products import add_weighted_rows

        graph = self._graph
        each = (values.to_user.contiguous(), values.to_item.index_select(0, graph.by_item))
        out: Tensor = add_weighted_rows(None, 0.0, nodes, 1.0, graph.sparse_layout, values=each)
        return out


class DenseProducts:
    """Products of whole matrices. Cells beside the edges are computed and never read, or zero and never written."""

    def __init__(self, graph: BipartiteGraph, table_type: torch.dtype, *, tf32: bool = False) -> None:
        self._users, self._items = graph.user_count, graph.item_count
        self._table_type = table_type
        self._tf32 = tf32
        columns = -(-self._items // PADDING) * PADDING
        self._padding = columns - self._items
        on_gpu = graph.device.type == "cuda"
        cells = graph.users.long() * columns + graph.items.long()  # of the edges, in a padded M x N matrix
        self._cells = cells.int() if on_gpu and self._users * columns <= INT32_MAX else cells
        self._matrices = [
            torch.zeros(self._users, columns, dtype=table_type, device=graph.device) for _ in EdgeValues._fields
        ]
        self._side = torch.cuda.Stream(graph.device) if on_gpu else None

    def enter(self, nodes: Tensor) -> Tensor:
        """Rounded, and zero rows for the padding of the items at the end."""
        rows = len(nodes)
        entered = nodes.new_empty(rows + self._padding, nodes.shape[1], dtype=self._table_type)
        entered[:rows] = nodes
        entered[rows:] = 0
        return entered

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        self._set_tf32()
        matrix = left[: self._users] @ right[self._users :].T
        if matrix.is_cuda:
            from caged.graph.kernels.triton_edges import read_cells

            out: Tensor = read_cells(matrix, self._cells)
            return out
        return matrix.view(-1).gather(0, self._cells).to(_sum_type(matrix))

    def sums(self, values: EdgeValues, nodes: Tensor) -> Tensor:
        self._set_tf32()
        to_user = self._matrix(0, values.to_user)
        to_item = to_user if values.to_item is values.to_user else self._matrix(1, values.to_item)
        out = nodes.new_empty(self._users + self._items, nodes.shape[1], dtype=_sum_type(nodes))
        of_users, of_items = nodes[: self._users], nodes[self._users :]
        if self._side is None:
            _product(to_user, of_items, out[: self._users])
            _product(to_item.T[: self._items], of_users, out[self._users :])
            return out
        # Neither product fills the chip, so they run side by side. All memory belongs to the stream of the caller.
        main = torch.cuda.current_stream(nodes.device)
        self._side.wait_stream(main)
        with torch.cuda.stream(self._side):
            _product(to_item.T[: self._items], of_users, out[self._users :])
        _product(to_user, of_items, out[: self._users])
        main.wait_stream(self._side)
        return out

    def _matrix(self, which: int, values: Tensor) -> Tensor:
        matrix = self._matrices[which]
        if matrix.is_cuda:
            from caged.graph.kernels.triton_edges import write_cells

            write_cells(matrix, self._cells, values.contiguous())
        else:
            matrix.view(-1).scatter_(0, self._cells, values.to(matrix.dtype))
        return matrix

    def _set_tf32(self) -> None:
        if self._side is not None and self._tf32 != torch.backends.cuda.matmul.allow_tf32:
            torch.backends.cuda.matmul.allow_tf32 = self._tf32


def _product(matrix: Tensor, table: Tensor, out: Tensor) -> None:
    """matrix @ table into `out`, accumulated in float32 (or float64)."""
    if matrix.dtype == torch.bfloat16:
        torch.mm(matrix, table, out_dtype=torch.float32, out=out)
    else:
        torch.mm(matrix, table, out=out)


def _sum_type(values: Tensor) -> torch.dtype:
    """The type that sums are kept in."""
    return torch.float32 if values.dtype == torch.bfloat16 else values.dtype
