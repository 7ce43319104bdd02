"""GALORE (CIKM 2023). Begin with `method`; `graph` adds and drops edges."""

from caged.models.galore.method import GALORE, GALOREConfig

__all__ = ["GALORE", "GALOREConfig"]
