"""What the explorer's page asks, answered from one artefact or two: plain dicts, no HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caged.arguments import described, whole_number
from caged.data.ids import Array
from caged.errors import CagedError, ConfigError
from caged.models import display_name
from caged.products.serve.engine import Answer, Engine, UnknownUserError
from caged.products.serve.explanation import explain
from caged.products.serve.explorer.shelf import Shelf
from caged.products.serve.manifest import Manifest
from caged.products.serve.requests import Ask

LENGTH = 20  # of lists
SIMILAR = 10
REASONS = 8
MOST_MODELS = 2
PRICED = ("recall", "tail_share")  # of the metrics that a price is told in

Body = Mapping[str, Any]


class Answers:
    """Rows stay inside: everybody outside speaks of ids."""

    def __init__(self, engines: Sequence[Engine], shelves: Sequence[Shelf] | None = None) -> None:
        if not 1 <= len(engines) <= MOST_MODELS:
            raise ConfigError(f"the explorer shows one artefact or {MOST_MODELS}; got {len(engines)}")
        self.engines = list(engines)
        self.shelves = list(shelves or [Shelf(engine.model) for engine in engines])

    def about(self, _: Body) -> dict[str, Any]:
        first = self.shelves[0]
        return {
            "models": [
                {"name": name, **_about_model(engine)} for name, engine in zip(self.names(), self.engines, strict=True)
            ],
            "starts": first.starts(),
            "sample": first.sample(),
        }

    def names(self) -> list[str]:
        """Two of the same method are told apart by their place."""
        shown = [display_name(engine.model.manifest.method) for engine in self.engines]
        if len(set(shown)) == len(shown):
            return shown
        return [f"{name} ({letter})" for name, letter in zip(shown, "AB", strict=True)]

    def search(self, body: Body) -> dict[str, Any]:
        return self.shelves[0].find(body.get("q"))

    def person(self, body: Body) -> dict[str, Any]:
        """As the first artefact that knows them has them."""
        wanted = body.get("user_id")
        for shelf in self.shelves:
            row = shelf.model.users.row(wanted)
            if row >= 0:
                return shelf.person(row)
        raise UnknownUserError(f"user {described(wanted)} is not known here; search for another id")

    # ---------------------------------------------------------------- lists

    def lists(self, body: Body) -> dict[str, Any]:
        """A list per artefact, and how many items they share. What one cannot answer does not keep the other back."""
        knobs = body.get("less_popular")
        if not isinstance(knobs, list) or len(knobs) != len(self.engines):
            raise ConfigError(f"less_popular is {described(knobs)}; give a list with a number for each artefact")
        found = [self._list(place, body, knob) for place, knob in enumerate(knobs)]
        names = [{item["id"] for item in one.get("items", ())} for one in found]
        return {"lists": found, "shared": sorted(set.intersection(*names)) if len(names) > 1 else []}

    def _list(self, place: int, body: Body, knob: Any) -> dict[str, Any]:
        engine, shelf = self.engines[place], self.shelves[place]
        as_trained = Ask(body.get("user_id"), body.get("history"), k=min(LENGTH, engine.limits.k), less_popular=0.0)
        try:
            before = engine.recommend(as_trained)
            after = engine.recommend(as_trained._replace(less_popular=knob))
        except CagedError as error:
            return {"error": str(error)}
        return _compared(shelf, before, after)

    # ---------------------------------------------------------------- reasons and neighbours

    def why(self, body: Body) -> dict[str, Any]:
        """The items of the history that count most: what each adds to the score, or how near it is."""
        place = whole_number("model", body.get("model"), least=0, most=len(self.engines) - 1, advice="")
        engine, shelf = self.engines[place], self.shelves[place]
        ask = Ask(body.get("user_id"), body.get("history"))
        found = explain(engine, ask, _text(body.get("item_id")))
        history, values, whole = found.history, found.contributions, abs(found.score)
        if values is None:
            history, values = _nearest(engine, history, found.item)
            whole = 1.0
        counting = np.flatnonzero(values > 0)[:REASONS]
        shares = (values[counting] / whole).tolist() if whole > 0 else [0.0] * len(counting)
        shown = shelf.items(history[counting])
        return {
            "adds_up": found.contributions is not None,
            "of": len(history),
            "rest": None if found.rest is None or not whole else found.rest / whole,
            "reasons": [{**item, "share": share} for item, share in zip(shown, shares, strict=True)],
        }

    def similar(self, body: Body) -> dict[str, Any]:
        """An item, and what is near it in each artefact."""
        wanted = _text(body.get("item_id"))
        row = self.engines[0].item_row(wanted)
        lists: list[dict[str, Any]] = []
        for engine, shelf in zip(self.engines, self.shelves, strict=True):
            try:
                near = engine.similar(wanted, min(SIMILAR, engine.limits.k))
                lists.append({"items": shelf.items(near.items)})
            except CagedError as error:
                lists.append({"error": str(error)})
        return {"item": self.shelves[0].items(np.array([row]))[0], "lists": lists}


def _text(wanted: Any) -> str:
    if not isinstance(wanted, str):
        raise ConfigError(f"item_id is {described(wanted)}; give the id as text")
    return wanted


def _nearest(engine: Engine, history: Array, item: int) -> tuple[Array, Array]:
    """By cosine, for methods whose scores are no sum over the history."""
    (direction,) = engine.model.directions(np.array([item]))
    near = np.asarray(engine.model.directions(history) @ direction, dtype=np.float64)
    order = np.argsort(-near, kind="stable")
    return history[order], near[order]


def _compared(shelf: Shelf, before: Answer, after: Answer) -> dict[str, Any]:
    """The list, where each item came from, what fell out of it, and what that does to its popularity."""
    earlier = {int(row): place for place, row in enumerate(before.items, start=1)}
    left = before.items[~np.isin(before.items, after.items)]
    shown = zip(after.items, shelf.items(after.items), strict=True)
    items = [{**item, "rank_before": earlier.get(int(row))} for row, item in shown]
    degrees = shelf.model.degrees
    return {
        "items": items,
        "left": shelf.items(left),
        "niche_share": [shelf.niche_share(one.items) for one in (before, after)],
        "people": [float(degrees[one.items].mean()) if len(one.items) else 0.0 for one in (before, after)],
        "unknown_items": [str(one) for one in after.unknown_items],
    }


def _about_model(engine: Engine) -> dict[str, Any]:
    manifest = engine.model.manifest
    return {
        "method": manifest.method,
        "dataset": manifest.origin.get("dataset"),
        "users": manifest.users,
        "items": manifest.items,
        "less_popular": manifest.less_popular,
        "new_people_refused": manifest.fold_in_refused,
        "price": _price(manifest),
    }


def _price(manifest: Manifest) -> dict[str, Any] | None:
    """What each notch was measured to do for everybody; the test part says more than the one that chose."""
    curve = manifest.price.get("curve", {})
    part = next((name for name in ("test", "valid") if curve.get(name)), None)
    if part is None:
        return None
    k = manifest.price["k"]
    notches = [
        {"strength": point["strength"], **{name: point["metrics"].get(f"{name}@{k}") for name in PRICED}}
        for point in curve[part]
    ]
    return {"part": part, "k": k, "notches": notches}
