"""The user-item graph: a fixed pattern of edges, weights on it, propagation over it, samples from it."""

from caged.graph.block_sampling import AnySampler, BlockSampler, make_sampler
from caged.graph.held import bytes_held
from caged.graph.operators import BACKENDS, PRECISIONS, Engine, Tables, check_engine, chosen_backend
from caged.graph.pattern import BipartiteGraph
from caged.graph.propagate import propagate, propagate_named, propagate_transposed, uniform_layers
from caged.graph.sampling import NEGATIVES, SAMPLERS, Batch, Epoch, OwnedItems, Sampler
from caged.graph.weights import EdgeWeights, FactoredWeights, Weights, degree_factors, degree_weights

__all__ = [
    "BACKENDS",
    "NEGATIVES",
    "PRECISIONS",
    "SAMPLERS",
    "AnySampler",
    "Batch",
    "BipartiteGraph",
    "BlockSampler",
    "EdgeWeights",
    "Engine",
    "Epoch",
    "FactoredWeights",
    "OwnedItems",
    "Sampler",
    "Tables",
    "Weights",
    "bytes_held",
    "check_engine",
    "chosen_backend",
    "degree_factors",
    "degree_weights",
    "make_sampler",
    "propagate",
    "propagate_named",
    "propagate_transposed",
    "uniform_layers",
]
