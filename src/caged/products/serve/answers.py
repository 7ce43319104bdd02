"""Answers as JSON: rows become ids, titles and popularity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caged.data.ids import Array
from caged.errors import CagedError
from caged.products.serve.engine import Answer, Engine, UnknownItemError, UnknownUserError
from caged.products.serve.explanation import Explanation
from caged.products.serve.gate import OverloadError
from caged.products.serve.requests import Ask
from caged.products.serve.served import Current

ABOUT_ORIGIN = ("dataset", "protocol", "seed", "trained", "versions", "adjustment")


def status_of(error: CagedError) -> int:
    """Of HTTP, for what cannot be answered."""
    if isinstance(error, OverloadError):
        return 503
    return 404 if isinstance(error, UnknownUserError | UnknownItemError | UnknownModelError) else 422


class UnknownModelError(CagedError):
    """404 over HTTP."""


def source(current: Current) -> dict[str, Any]:
    return {"model": current.name, "version": current.version}


def items_json(
    engine: Engine, rows: Array, scores: Array | None = None, *, titles: bool = True, popularity: bool = False
) -> list[dict[str, Any]]:
    """One object for each row; a title only where there is one."""
    model = engine.model
    items: list[dict[str, Any]] = [{"item_id": name} for name in model.items.at(rows)]
    columns: dict[str, Sequence[Any]] = {}
    if scores is not None:
        columns["score"] = scores.tolist()
    if titles and model.titles is not None:
        columns["title"] = model.titles_at(rows)
    if popularity:
        columns["popularity"] = model.degrees[rows].tolist()
        columns["popularity_rank"] = model.popularity_ranks[rows].tolist()
    for name, values in columns.items():
        for item, value in zip(items, values, strict=True):
            item[name] = value
    return items


def answer_json(engine: Engine, ask: Ask, answer: Answer, *, titles: bool, popularity: bool) -> dict[str, Any]:
    return {
        "items": items_json(engine, answer.items, answer.scores, titles=titles, popularity=popularity),
        "less_popular": engine.strength(ask),
        "unknown_items": answer.unknown_items,
    }


def refusal_json(error: CagedError) -> dict[str, Any]:
    """In the place of an answer of a batch."""
    return {"error": str(error), "status": status_of(error)}


def explanation_json(engine: Engine, found: Explanation, k: int) -> dict[str, Any]:
    (item,) = items_json(engine, np.array([found.item]))
    reasons = []
    if found.contributions is not None:
        reasons = items_json(engine, found.history[:k], popularity=True)
        for reason, contribution in zip(reasons, found.contributions[:k].tolist(), strict=True):
            reason["contribution"] = contribution
    return {
        **item,
        "score": found.score,
        "available": found.contributions is not None,
        "reasons": reasons,
        "history": len(found.history),
        "rest": found.rest,
        "note": found.note,
    }


def about_json(current: Current) -> dict[str, Any]:
    """What a client may want to show: where the model comes from, what it knows, what each notch of the knob costs."""
    manifest = current.engine.model.manifest
    return {
        **source(current),
        "method": manifest.method,
        "users": manifest.users,
        "items": manifest.items,
        "attributes": dict(manifest.attributes),
        "titles": current.engine.model.titles is not None,
        "less_popular": manifest.less_popular,
        "new_people": not manifest.fold_in_refused,
        "new_people_note": manifest.fold_in_refused or (manifest.fold_in.note if manifest.fold_in else ""),
        "search": "exact",
        "origin": {name: manifest.origin[name] for name in ABOUT_ORIGIN if name in manifest.origin},
        "audit": dict(manifest.audit),
        "price": dict(manifest.price),
    }
