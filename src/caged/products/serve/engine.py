"""From a question to a list: who asks, what may be shown, scores, the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from caged.data.ids import Array
from caged.errors import ConfigError, DataError
from caged.products.serve.filters import ItemFilters
from caged.products.serve.model import ServedModel
from caged.products.serve.requests import Ask, Limits
from caged.products.serve.search import largest

NEVER = np.float32(-np.inf)


@dataclass(frozen=True, eq=False)
class Answer:
    """Items best first, as rows of the model."""

    items: Array
    scores: Array
    unknown_items: list[Any]  # of the history; passed over


@dataclass(frozen=True, eq=False)
class _Asker:
    """What is known of the person: known ones have a row, new ones a history."""

    user: int | None
    history: Array
    unknown: list[Any]


class Engine:
    """Answers by exact search over the whole catalogue."""

    def __init__(self, model: ServedModel, limits: Limits | None = None) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.filters = ItemFilters(model.item_table)

    def recommend(self, ask: Ask) -> Answer:
        ask.check(self.limits)
        asker = self._asker(ask)
        return self._ranked(ask, asker, self._scores(asker))

    def recommend_batch(self, asks: Sequence[Ask]) -> list[Answer]:
        """The same for many, the scores of known people in one product."""
        if len(asks) > self.limits.batch:
            raise ConfigError(f"the batch holds {len(asks):,} requests; at most {self.limits.batch:,} are allowed")
        for ask in asks:
            ask.check(self.limits)
        askers = [self._asker(ask) for ask in asks]
        if self.model.manifest.kind != "vectors":
            return [self._ranked(ask, asker, self._scores(asker)) for ask, asker in zip(asks, askers, strict=True)]
        vectors = np.stack([self._vector(asker) for asker in askers])
        scores = vectors @ self.model.item_vectors.T
        return [self._ranked(ask, asker, row) for ask, asker, row in zip(asks, askers, scores, strict=True)]

    # ---------------------------------------------------------------- who asks

    def _asker(self, ask: Ask) -> _Asker:
        model = self.model
        if ask.user_id is not None:
            user = model.users.row(ask.user_id)
            if user < 0:
                raise UnknownUserError(
                    f"user {ask.user_id!r} is not known to this model; send the items of the person as history"
                )
            return _Asker(user, model.seen(user), [])
        assert ask.history is not None  # as `check` saw to
        history, unknown = model.history_rows(ask.history)
        if len(history) == 0:
            raise DataError("the model knows none of the items in history; send at least one that it knows")
        return _Asker(None, history, unknown)

    def _vector(self, asker: _Asker) -> Array:
        return self.model.folded(asker.history) if asker.user is None else self.model.user_vector(asker.user)

    def _scores(self, asker: _Asker) -> Array:
        """(N,) float32, an array of its own."""
        if self.model.manifest.kind != "vectors":
            return self.model.scores_of_history(asker.history)
        return np.asarray(self.model.item_vectors @ self._vector(asker))

    # ---------------------------------------------------------------- what may be shown

    def _ranked(self, ask: Ask, asker: _Asker, scores: Array) -> Answer:
        strength = self.model.manifest.less_popular if ask.less_popular is None else ask.less_popular
        if strength > 0:
            scores = scores - np.float32(strength) * self._spread(asker, scores) * self.model.log_popularity
        allowed = self.filters.allowed(ask.filters)
        if allowed is not None:
            scores = np.where(allowed, scores, NEVER)
        if ask.candidates is not None:
            scores = self._only(scores, ask.candidates)
        if ask.exclude:
            scores[self.model.history_rows(ask.exclude)[0]] = NEVER
        if ask.exclude_seen:
            scores[asker.history] = NEVER
        best = largest(scores, ask.k)
        return Answer(best, scores[best], asker.unknown)

    def _only(self, scores: Array, candidates: Sequence[str | int]) -> Array:
        rows = self.model.history_rows(candidates)[0]
        kept = np.full_like(scores, NEVER)
        kept[rows] = scores[rows]
        return kept

    def _spread(self, asker: _Asker, scores: Array) -> np.float32:
        """Standard deviation of the scores over what the person has not had, as `adjust` has it."""
        if asker.user is not None and "user_spread" in self.model.arrays:
            return np.float32(self.model.arrays["user_spread"][asker.user])
        left = np.delete(scores, asker.history)
        return np.float32(left.astype(np.float64).std()) if len(left) else np.float32(0)

    # ---------------------------------------------------------------- items beside items

    def similar(self, item_id: str | int, k: int = 10) -> Answer:
        """The nearest items by cosine, or by the weights between items."""
        row = self.model.items.row(item_id)
        if row < 0:
            raise UnknownItemError(f"item {item_id!r} is not known to this model; use one of its item ids")
        if not 1 <= k <= self.limits.k:
            raise ConfigError(f"k is {k}; allowed are 1..{self.limits.k}")
        scores = np.array(self._relation(row), dtype=np.float32)
        scores[row] = NEVER
        best = largest(scores, k)
        return Answer(best, scores[best], [])

    def _relation(self, row: int) -> Array:
        model = self.model
        if model.manifest.kind == "item_weights":
            return np.asarray(model.arrays["item_weights"][row])
        if model.manifest.kind == "neighbours":
            found = np.full(len(model.items), NEVER)
            values = model.arrays["similarities"][row]
            found[model.arrays["neighbours"][row][values > 0]] = values[values > 0]
            return found
        return np.asarray(model.item_directions @ model.item_directions[row])


class UnknownUserError(DataError):
    """404 over HTTP."""


class UnknownItemError(DataError):
    """404 over HTTP."""
