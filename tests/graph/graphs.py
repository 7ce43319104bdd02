"""Small graphs with known corners, and the dense float64 matrices they stand for."""

from __future__ import annotations

import numpy as np
import torch

from caged.graph import (
    BipartiteGraph,
    EdgeWeights,
    Tables,
    uniform_layers,
)


def graph_of(pairs, user_count, item_count, device="cpu"):
    edges = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
    return BipartiteGraph.from_edges(edges[:, 0], edges[:, 1], user_count, item_count, device)


def random_graph(seed=0, user_count=13, item_count=9, edges=40, device="cpu"):
    """Skewed, with users and items that have no edge at all (the last of each)."""
    rng = np.random.default_rng(seed)
    users = rng.integers(0, user_count - 1, edges)
    items = np.minimum((rng.random(edges) ** 2 * (item_count - 1)).astype(int), item_count - 2)
    return graph_of(zip(users.tolist(), items.tolist(), strict=True), user_count, item_count, device)


def random_weights(graph, seed=0, dtype=torch.float64):
    """Asymmetric weights: nothing about one direction follows from the other."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(2, graph.edge_count, generator=generator, dtype=dtype) + 0.1
    return EdgeWeights(graph, values[0].to(graph.device), values[1].to(graph.device))


def dense(graph, weights):
    """The (M + N) x (M + N) matrix W in float64: W[target, source]."""
    size = graph.user_count + graph.item_count
    matrix = torch.zeros(size, size, dtype=torch.float64)
    users, items = graph.users.long().cpu(), graph.items.long().cpu() + graph.user_count
    matrix[users, items] = weights.to_user.double().cpu()
    matrix[items, users] = weights.to_item.double().cpu()
    return matrix


def dense_propagate(matrix, stacked, layer_weights):
    """sum_l a_l W^l E, term by term."""
    term, total = stacked, layer_weights[0] * stacked
    for weight in layer_weights[1:]:
        term = matrix @ term
        total = total + weight * term
    return total


CORNERS = {
    "random": random_graph,
    "one edge": lambda: graph_of([(0, 0)], 1, 1),
    "one user": lambda: graph_of([(0, 0), (0, 2), (0, 3)], 1, 5),
    "one item": lambda: graph_of([(0, 0), (3, 0)], 5, 1),
    "heavy head": lambda: graph_of([(u, 0) for u in range(30)] + [(7, 3)], 31, 4),
    "complete": lambda: graph_of([(u, i) for u in range(4) for i in range(3)], 4, 3),
}


def long_rows():
    """Item 0 and user 5 have several chunks of the CUDA kernel, item 3 has one edge more than a chunk."""
    pairs = [(u, 0) for u in range(130)] + [(5, i) for i in range(1, 80)] + [(u, 3) for u in range(65)]
    return graph_of(pairs, 131, 81)


LAYER_WEIGHTS = {
    "none": (1.0,),
    "mean of two": uniform_layers(1),
    "mean of four": uniform_layers(3),
    "uneven": (0.7, 0.0, -0.2, 0.5),
}


def tables(graph, width=5, seed=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    rows = graph.user_count + graph.item_count
    stacked = torch.randn(rows, width, generator=generator, dtype=dtype).to(graph.device)
    return Tables(*(part.clone() for part in stacked.split([graph.user_count, graph.item_count])))


def assert_same_with_gradients(ours, leaves, expected, reference):
    """`ours` of the tables `leaves` is `expected` of the same numbers in one tensor, and so are their gradients."""
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)
    seed = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2), dtype=ours.dtype)
    ours.backward(seed)
    expected.backward(seed)
    gradient = torch.cat([leaves.users.grad, leaves.items.grad])
    torch.testing.assert_close(gradient, reference.grad, rtol=1e-12, atol=1e-12)
