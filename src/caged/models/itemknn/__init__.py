"""ItemKNN (WWW 2001). Begin with `method`; `neighbours` finds the nearest items of every item, once for
items that are `alike`."""

from caged.models.itemknn.method import ItemKNN, ItemKNNConfig

__all__ = ["ItemKNN", "ItemKNNConfig"]
