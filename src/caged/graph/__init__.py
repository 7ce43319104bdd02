"""The user-item graph: a fixed pattern of edges, weights on it, propagation over it, samples from it."""

from caged.graph.bipartite import BipartiteGraph, EdgeWeights
from caged.graph.normalize import degree_weights
from caged.graph.propagate import Tables, aggregate, propagate, propagate_transposed, uniform_layers
from caged.graph.sampling import SAMPLERS, Batch, Epoch, Sampler

__all__ = [
    "SAMPLERS",
    "Batch",
    "BipartiteGraph",
    "EdgeWeights",
    "Epoch",
    "Sampler",
    "Tables",
    "aggregate",
    "degree_weights",
    "propagate",
    "propagate_transposed",
    "uniform_layers",
]
