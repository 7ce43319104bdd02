"""What answers hold beside lists, and what is said where there is no answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from caged.errors import CagedError
from caged.products.serve.engine import Engine, UnknownItemError, UnknownUserError
from caged.products.serve.explanation import Explanation
from caged.products.serve.gate import OverloadError
from caged.products.serve.served import Current
from caged.products.serve.texts import items_json

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


def refusal_json(error: CagedError) -> dict[str, Any]:
    """In the place of an answer of a batch."""
    return {"error": str(error), "status": status_of(error)}


def explanation_json(engine: Engine, found: Explanation, k: int) -> dict[str, Any]:
    (item,) = items_json(engine.model, np.array([found.item]))
    reasons = []
    if found.contributions is not None:
        reasons = items_json(engine.model, found.history[:k], popularity=True)
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
        "search": current.engine.search,
        "origin": {name: manifest.origin[name] for name in ABOUT_ORIGIN if name in manifest.origin},
        "audit": dict(manifest.audit),
        "price": dict(manifest.price),
    }
