"""From a question to a list: who asks, what may be shown, scores, the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from caged.arguments import described
from caged.data.ids import Array
from caged.errors import CagedError, ConfigError, DataError
from caged.products.serve.filters import ItemFilters
from caged.products.serve.model import ServedModel
from caged.products.serve.requests import Ask, Limits
from caged.products.serve.search import largest

NEVER = np.float32(-np.inf)
SCORES_AT_ONCE = 2**24  # of a batch; 64 MiB
_NO_VECTOR = np.empty(0, dtype=np.float32)
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Answer:
    """Items best first, as rows of the model."""

    items: Array
    scores: Array
    unknown_items: list[Any]  # of the history; passed over


@dataclass(frozen=True, eq=False)
class Asker:
    """What is known of the person: known ones have a row, new ones a history."""

    user: int | None
    history: Array
    unknown: list[Any]


@dataclass(frozen=True, eq=False)
class _Known:
    """A request of a batch that can be answered."""

    ask: Ask
    asker: Asker
    vector: Array  # empty where scores come from the history itself


class Engine:
    """Answers by exact search over the whole catalogue."""

    def __init__(self, model: ServedModel, limits: Limits | None = None) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.filters = ItemFilters(model.item_table)

    def warm_up(self) -> None:
        """Make what is made once, and read what answers need: the first person waits no longer than the next."""
        self.model.prepare()
        if len(self.model.users):
            self.recommend(Ask(user_id=self.model.users[0], k=1))

    def recommend(self, ask: Ask) -> Answer:
        ask.check(self.limits)
        asker = self.asker(ask)
        return self._ranked(ask, asker, self.scores(asker))

    def recommend_batch(self, asks: Sequence[Ask]) -> list[Answer | CagedError]:
        """The same for many, the scores in one product; who cannot be answered gets the reason, the others a list."""
        if len(asks) > self.limits.batch:
            raise ConfigError(f"the batch holds {len(asks):,} requests; at most {self.limits.batch:,} are allowed")
        answers: list[Answer | CagedError] = []
        for start in range(0, len(asks), self._at_once):
            answers += self._answered(asks[start : start + self._at_once])
        return answers

    @property
    def _at_once(self) -> int:
        """People whose scores are held at the same time."""
        return max(1, SCORES_AT_ONCE // max(len(self.model.items), 1))

    def _answered(self, asks: Sequence[Ask]) -> list[Answer | CagedError]:
        found = [_or_error(self._known, ask) for ask in asks]
        known = [one for one in found if isinstance(one, _Known)]
        rows: Iterator[Array]
        if known and self.model.manifest.kind == "vectors":
            rows = iter(np.stack([one.vector for one in known]) @ self.model.item_vectors.T)
        else:
            rows = (self.scores(one.asker) for one in known)
        return [
            _or_error(partial(self._ranked, one.ask, one.asker), next(rows)) if isinstance(one, _Known) else one
            for one in found
        ]

    def _known(self, ask: Ask) -> _Known:
        ask.check(self.limits)
        asker = self.asker(ask)
        vector = self._vector(asker) if self.model.manifest.kind == "vectors" else _NO_VECTOR
        return _Known(ask, asker, vector)

    # ---------------------------------------------------------------- who asks

    def asker(self, ask: Ask) -> Asker:
        model = self.model
        if ask.user_id is not None:
            user = model.users.row(ask.user_id)
            if user < 0:
                raise UnknownUserError(
                    f"user {described(ask.user_id)} is not known to this model; send the items of the person as history"
                )
            return Asker(user, model.seen(user), [])
        assert ask.history is not None  # as `check` saw to
        history, unknown = model.history_rows(ask.history)
        if len(history) == 0:
            raise DataError("the model knows none of the items in history; send at least one that it knows")
        return Asker(None, history, unknown)

    def _vector(self, asker: Asker) -> Array:
        return self.model.folded(asker.history) if asker.user is None else self.model.user_vector(asker.user)

    def scores(self, asker: Asker) -> Array:
        """(N,) float32, an array of its own."""
        if self.model.manifest.kind != "vectors":
            return self.model.scores_of_history(asker.history)
        return np.asarray(self.model.item_vectors @ self._vector(asker))

    # ---------------------------------------------------------------- what may be shown

    def _ranked(self, ask: Ask, asker: Asker, scores: Array) -> Answer:
        strength = self.strength(ask)
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

    def strength(self, ask: Ask) -> float:
        """Where the knob stands for this request."""
        return self.model.manifest.less_popular if ask.less_popular is None else ask.less_popular

    def _only(self, scores: Array, candidates: Sequence[str | int]) -> Array:
        rows = self.model.history_rows(candidates)[0]
        kept = np.full_like(scores, NEVER)
        kept[rows] = scores[rows]
        return kept

    def _spread(self, asker: Asker, scores: Array) -> np.float32:
        """Standard deviation of the scores over what the person has not had, as `adjust` has it."""
        if asker.user is not None and "user_spread" in self.model.arrays:
            return np.float32(self.model.arrays["user_spread"][asker.user])
        left = np.delete(scores, asker.history)
        return np.float32(left.astype(np.float64).std()) if len(left) else np.float32(0)

    # ---------------------------------------------------------------- items beside items

    def item_row(self, item_id: str | int) -> int:
        row = self.model.items.row(item_id)
        if row < 0:
            raise UnknownItemError(f"item {described(item_id)} is not known to this model; use one of its item ids")
        return row

    def similar(self, item_id: str | int, k: int = 10) -> Answer:
        """The nearest items by cosine, or by the weights between items."""
        row = self.item_row(item_id)
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


def _or_error(call: Callable[[T], R], given: T) -> R | CagedError:
    try:
        return call(given)
    except CagedError as error:
        return error


class UnknownUserError(DataError):
    """404 over HTTP."""


class UnknownItemError(DataError):
    """404 over HTTP."""
