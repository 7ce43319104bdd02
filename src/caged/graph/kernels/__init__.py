"""How propagation is computed: compiled loops on CPU, Triton and dense products on CUDA.

cpu               rows summed by `embedding_bag`, an equal share of edges per thread
cuda              the sparse and the dense form on a GPU
triton_products   weighted sums of rows
triton_edges      products and rows of single edges
triton_softmax    unit rows, logits and gradients of a sampled softmax
triton_triples    scores, losses and gradients of training triples

The Triton files are imported only where there is a GPU.
"""

from caged.graph.kernels.cpu import CpuLayout, CpuOperator
from caged.graph.kernels.cuda import DenseOperator, FactoredOperator, SparseLayout, SparseOperator

__all__ = ["CpuLayout", "CpuOperator", "DenseOperator", "FactoredOperator", "SparseLayout", "SparseOperator"]
