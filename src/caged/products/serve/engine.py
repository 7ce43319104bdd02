"""From a question to a list: who asks, what may be shown, scores, the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from caged.arguments import described
from caged.data.ids import Array
from caged.errors import CagedError, ConfigError, DataError
from caged.products.serve.filters import ItemFilters
from caged.products.serve.index import INSTALL, ItemIndex, library
from caged.products.serve.model import ServedModel
from caged.products.serve.nearest import nearest
from caged.products.serve.ranking import Ranking, Wanted
from caged.products.serve.requests import Ask, AskItem, Limits


class Answer(NamedTuple):
    """Items best first, as rows of the model."""

    items: Array
    scores: Array
    unknown_items: list[Any]  # of the history; passed over


class Asker(NamedTuple):
    """What is known of the person: known ones have a row, new ones a history."""

    user: int | None
    history: Array
    unknown: list[Any]


class _Prepared(NamedTuple):
    """A request that can be answered."""

    wanted: Wanted
    unknown: list[Any]  # of the history


class Engine:
    """Answers by exact search, or through the index of the artefact where it has one."""

    def __init__(self, model: ServedModel, limits: Limits | None = None, *, use_index: bool = True) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.filters = ItemFilters(model.item_table)
        faiss = library() if use_index and model.manifest.index is not None else None
        self.ranking = Ranking(model, None if faiss is None else ItemIndex.load(model, faiss))

    @property
    def search(self) -> str:
        """How lists are found, in words."""
        stated = self.model.manifest.index
        if stated is None:
            return "exact search"
        if self.ranking.index is None:
            return f"exact search, because faiss is not installed and the index needs it; {INSTALL}"
        worst = min(notch.recall for notch in stated.notches)
        return (
            f"index: {stated.notches[0].recall:.3f} of the exact top {stated.k}, at least {worst:.3f} along the knob "
            f"(measured on {stated.people:,} people)"
        )

    def warm_up(self) -> None:
        """Make what is made once, and read what answers need: the first person waits no longer than the next."""
        self.model.prepare()
        if len(self.model.users):
            self.recommend(Ask(user_id=self.model.users[0], k=1))

    def recommend(self, ask: Ask) -> Answer:
        (answer,) = self.recommend_batch([ask])
        if isinstance(answer, CagedError):
            raise answer
        return answer

    def recommend_batch(self, asks: Sequence[Ask]) -> list[Answer | CagedError]:
        """For many, in one product; who cannot be answered gets the reason, the others their lists."""
        if len(asks) > self.limits.batch:
            raise ConfigError(f"the batch holds {len(asks):,} requests; at most {self.limits.batch:,} are allowed")
        found = [self._prepared(ask) for ask in asks]
        lists = iter(self.ranking.best([one.wanted for one in found if isinstance(one, _Prepared)]))
        return [Answer(*next(lists), one.unknown) if isinstance(one, _Prepared) else one for one in found]

    def _prepared(self, ask: Ask) -> _Prepared | CagedError:
        """Whatever can be wrong with a request shows here."""
        try:
            ask.check(self.limits)
            asker = self.asker(ask)
            vector = self._vector(asker) if self.model.manifest.kind == "vectors" else None
            strength = self.strength(ask)
            wanted = Wanted(
                k=ask.k,
                history=asker.history,
                vector=vector,
                strength=strength,
                spread=None if strength == 0 or vector is None else self._spread(asker, vector),
                kept=self.filters.kept(ask.filters),
                candidates=None if ask.candidates is None else self.model.history_rows(ask.candidates)[0],
                left_out=self._left_out(ask, asker),
            )
            return _Prepared(wanted, asker.unknown)
        except CagedError as error:
            return error.with_traceback(None)  # whose frames would hold the model until garbage is collected

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

    def _left_out(self, ask: Ask, asker: Asker) -> Array:
        seen = asker.history if ask.exclude_seen else asker.history[:0]
        return np.union1d(seen, self.model.history_rows(ask.exclude)[0]) if ask.exclude else seen

    # ---------------------------------------------------------------- the knob

    def strength(self, ask: Ask) -> float:
        """Where the knob stands for this request."""
        return self.model.manifest.less_popular if ask.less_popular is None else ask.less_popular

    def _spread(self, asker: Asker, vector: Array) -> np.float32:
        """Standard deviation of the scores over what the person has not had, as `adjust` has it."""
        if asker.user is not None and "user_spread" in self.model.arrays:
            return np.float32(self.model.arrays["user_spread"][asker.user])
        return self.model.moments.spread(vector, self.model.item_vectors[asker.history])

    # ---------------------------------------------------------------- items beside items

    def item_row(self, item_id: str | int) -> int:
        row = self.model.items.row(item_id)
        if row < 0:
            raise UnknownItemError(f"item {described(item_id)} is not known to this model; use one of its item ids")
        return row

    def similar(self, item_id: str | int, k: int = 10) -> Answer:
        """The nearest items by cosine, or by the weights between items."""
        (answer,) = self.similar_batch([AskItem(item_id, k)])
        if isinstance(answer, CagedError):
            raise answer
        return answer

    def similar_batch(self, asks: Sequence[AskItem]) -> list[Answer | CagedError]:
        """For many, in one product; what cannot be answered gets the reason."""
        found = [self._checked(ask) for ask in asks]
        counts = [ask.k for ask, row in zip(asks, found, strict=True) if isinstance(row, int)]
        lists = iter(nearest(self.model, [row for row in found if isinstance(row, int)], counts))
        return [Answer(*next(lists), []) if isinstance(row, int) else row for row in found]

    def _checked(self, ask: AskItem) -> int | CagedError:
        """The row of the item."""
        try:
            row = self.item_row(ask.item_id)
            ask.check(self.limits)
        except CagedError as error:
            return error.with_traceback(None)
        return row


class UnknownUserError(DataError):
    """404 over HTTP."""


class UnknownItemError(DataError):
    """404 over HTTP."""
