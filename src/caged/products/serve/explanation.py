"""Why an item: what each item of the history adds to its score.

With fold-in, the vector of a person is a sum over the history, so the score of item v is a sum, too: item x adds
n^exponent weights[x] table[x] . e_v (divided by the length of the person's vector for cosines). People of the training
have a learned vector besides; what it adds is the rest. Methods that score by weights between items are a sum anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caged.data.ids import Array
from caged.products.serve.engine import Engine
from caged.products.serve.requests import Ask

ROUNDING = 1e-5  # of what is added up


@dataclass(frozen=True, eq=False)
class Explanation:
    item: int
    score: float
    history: Array  # rows, largest contribution first
    contributions: Array | None  # in that order; None where the score cannot be taken apart
    note: str

    @property
    def rest(self) -> float | None:
        return None if self.contributions is None else self.score - float(self.contributions.sum())


def explain(engine: Engine, ask: Ask, item_id: str | int) -> Explanation:
    """Of the score as trained; the knob takes away the same from an item whatever the history."""
    ask.check(engine.limits)
    item = engine.item_row(item_id)
    asker = engine.asker(ask)
    score = float(engine.scores(asker)[item])
    history = asker.history
    if asker.user is not None and engine.model.manifest.kind == "vectors":
        history = engine.model.trained_on(asker.user)
    contributions = _contributions(engine, history, asker.user, item)
    if contributions is None:
        note = f"the score is not a sum over the history: {engine.model.manifest.fold_in_refused}"
        return Explanation(item, score, history, None, note)
    order = np.argsort(-contributions, kind="stable")
    found = Explanation(item, score, history[order], contributions[order], "")
    return Explanation(item, score, found.history, found.contributions, _note(engine, found))


def _note(engine: Engine, found: Explanation) -> str:
    how = engine.model.manifest.fold_in
    notes = [] if how is None or not how.note else [how.note]
    added = 0.0 if found.contributions is None else float(np.abs(found.contributions).sum())
    if found.rest is not None and abs(found.rest) > ROUNDING * added:
        notes.append("the rest is what training learned about the person beside the sum over the history")
    return "; ".join(notes)


def _contributions(engine: Engine, history: Array, user: int | None, item: int) -> Array | None:
    model = engine.model
    if model.manifest.kind == "item_weights":
        return np.asarray(model.arrays["item_weights"][history, item], dtype=np.float64)
    if model.manifest.kind == "neighbours":
        near, similarities = (model.arrays[name][item] for name in ("neighbours", "similarities"))
        return np.array([similarities[near == row].sum(dtype=np.float64) for row in history], dtype=np.float64)
    how = model.manifest.fold_in
    if how is None:
        return None
    if len(history) == 0:
        return np.empty(0)
    weights = model.arrays["fold_weights"][history].astype(np.float64) * len(history) ** how.exponent
    rows = model.arrays["fold_table"][history].astype(np.float64)
    parts = weights * (rows @ model.item_vectors[item].astype(np.float64))
    if not how.by_cosine:
        return np.asarray(parts)
    length = float(np.linalg.norm(weights @ rows)) if user is None else float(model.arrays["user_lengths"][user])
    return np.asarray(parts / length if length > 0 else parts)
