"""The user-item graph: a fixed pattern of edges, weights on it, propagation over it, samples from it."""

from caged.graph.bipartite import BipartiteGraph, EdgeWeights
from caged.graph.normalize import degree_weights
from caged.graph.operators import BACKENDS, PRECISIONS, Engine, check_engine, chosen_backend
from caged.graph.propagate import propagate, propagate_transposed, uniform_layers
from caged.graph.sampling import SAMPLERS, Batch, Epoch, Sampler
from caged.graph.tables import Tables

__all__ = [
    "BACKENDS",
    "PRECISIONS",
    "SAMPLERS",
    "Batch",
    "BipartiteGraph",
    "EdgeWeights",
    "Engine",
    "Epoch",
    "Sampler",
    "Tables",
    "check_engine",
    "chosen_backend",
    "degree_weights",
    "propagate",
    "propagate_transposed",
    "uniform_layers",
]
