"""CAGED (CIKM 2025). Begin with `method`.

`estimator` is its network, `passes` and `gradients` train it, `sides` are the two directions of the graph, and
`diagnostics` is what the history tells of an update.
"""

from caged.models.caged.method import CAGED, CAGEDConfig

__all__ = ["CAGED", "CAGEDConfig"]
