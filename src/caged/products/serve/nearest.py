"""Items beside items: by cosine, or by the weights between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caged.data.ids import Array
from caged.products.serve.model import ServedModel
from caged.products.serve.search import NEVER, Best, largest, pieces


def nearest(model: ServedModel, rows: Sequence[int], counts: Sequence[int]) -> list[Best]:
    """So many items like each of these, which is not like itself.

    Several are found in one product: all vectors are read once for all of them.
    """
    found: list[Best] = []
    for some in pieces(range(len(rows)), len(model.items)):
        asked = np.array([rows[place] for place in some])
        scores = _relations(model, asked)
        scores[asked, np.arange(len(asked))] = NEVER
        found += largest(scores, [counts[place] for place in some])
    return found


def _relations(model: ServedModel, rows: Array) -> Array:
    """(items, len(rows)) of float32, an array of its own."""
    if model.manifest.kind == "item_weights":
        return np.array(model.arrays["item_weights"][rows].T, dtype=np.float32, order="C")
    if model.manifest.kind == "neighbours":
        scores = np.full((len(model.items), len(rows)), NEVER)
        values = model.arrays["similarities"][rows]
        column, place = np.nonzero(values > 0)
        scores[model.arrays["neighbours"][rows[column], place], column] = values[column, place]
        return scores
    scores = np.asarray(model.item_vectors @ model.directions(rows).T)
    scores *= model.to_unit_length[:, None]
    return scores
