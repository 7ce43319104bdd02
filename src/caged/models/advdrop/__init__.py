"""AdvDrop (WWW 2024). Begin with `method`; `adversary` draws the views of the graph."""

from caged.models.advdrop.method import AdvDrop, AdvDropConfig

__all__ = ["AdvDrop", "AdvDropConfig"]
