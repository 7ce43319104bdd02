"""The best items for a person: over the whole catalogue, over a few rows of it, or through an index.

The first two are exact. Few rows are those of `candidates` and of filters that keep less than 5%; only their vectors
are read, and those of a filter stay gathered for the next request. An index proposes candidates, which are scored
exactly; where it cannot give enough of them, the whole catalogue is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.products.serve.filters import Kept, are_among
from caged.products.serve.index import ItemIndex
from caged.products.serve.model import ServedModel
from caged.products.serve.remembered import Remembered
from caged.products.serve.search import NEVER, Best, largest, pieces

GATHERED_BYTES = 2**28  # of vectors that pass filters


class Wanted(NamedTuple):
    """A list that can be made. Like whatever is made for every request, a tuple: those are made fastest."""

    k: int
    history: Array  # rows of the person's items
    vector: Array | None  # None where scores come from the history itself
    strength: float  # of the knob
    spread: np.float32 | None  # of the scores, for the knob; None: take it from the scores
    kept: Kept | None  # by filters
    candidates: Array | None  # ascending rows: show only these
    left_out: Array  # ascending rows: show none of these

    @property
    def rows(self) -> Array | None:
        """What may be shown, `left_out` aside; None where that is not a list."""
        if self.candidates is None:
            return None if self.kept is None else self.kept.rows
        return self.candidates if self.kept is None else self.candidates[self.kept.among(self.candidates)]

    @property
    def penalty(self) -> np.float32:
        """Of an item, by the logarithm of its popularity."""
        assert self.spread is not None
        return np.float32(self.strength) * self.spread


class Ranking:
    def __init__(self, model: ServedModel, index: ItemIndex | None = None) -> None:
        self.model, self.index = model, index
        self._gathered: Remembered[Array] = Remembered(lambda vectors: vectors.nbytes, GATHERED_BYTES)

    def best(self, wanted: Sequence[Wanted]) -> list[Best]:
        """The list of each. Those that are found in the same way are found together."""
        found: list[Best | None] = [None] * len(wanted)
        for way in (self._few, self._indexed, self._whole):
            places = [place for place, one in enumerate(found) if one is None]
            for place, one in zip(places, way([wanted[place] for place in places]), strict=True):
                found[place] = one
        return [one for one in found if one is not None]

    # ---------------------------------------------------------------- a few rows

    def _few(self, wanted: Sequence[Wanted]) -> Iterable[Best | None]:
        found: list[Best | None] = [None] * len(wanted)
        if self.model.manifest.kind != "vectors":
            return found
        allowed = {place: rows for place, one in enumerate(wanted) if (rows := one.rows) is not None}
        for group in _grouped(list(allowed), lambda place: (id(allowed[place]),)):
            rows = allowed[group[0]]
            for some in pieces(group, len(rows)):
                for place, best in zip(some, self._of_rows([wanted[place] for place in some], rows), strict=True):
                    found[place] = best
        return found

    def _of_rows(self, wanted: Sequence[Wanted], rows: Array) -> Iterable[Best]:
        """These rows are what all of them may be shown."""
        kept, vectors = wanted[0].kept, self.model.item_vectors
        if kept is not None and rows is kept.rows:
            gathered = self._gathered.get(kept.key, lambda: vectors[rows])
        else:
            gathered = vectors[rows]
        scores = self._exact(wanted, rows, gathered)
        for column, one in enumerate(wanted):
            scores[are_among(rows, one.left_out), column] = NEVER
        return [Best(rows[best.rows], best.scores) for best in largest(scores, [one.k for one in wanted])]

    def _exact(self, wanted: Sequence[Wanted], rows: Array | slice, vectors: Array) -> Array:
        """(items, people): scores of these items, with the knob; an array of its own.

        A row for each item, because products and maxima are quicker so.
        """
        scores = np.asarray(vectors @ _stacked(wanted).T)
        if any(one.strength > 0 for one in wanted):
            scores -= self.model.log_popularity[rows, None] * _penalties(wanted)
        return scores

    # ---------------------------------------------------------------- through an index

    def _indexed(self, wanted: Sequence[Wanted]) -> Iterable[Best | None]:
        found: list[Best | None] = [None] * len(wanted)
        if self.index is None:
            return found
        count_of, probes_of = self.index.candidates_for, self.index.probes_for
        places = [place for place, one in enumerate(wanted) if count_of(one.k, len(one.left_out)) is not None]
        for group in _grouped(places, lambda place: (id(wanted[place].kept), probes_of(wanted[place].strength))):
            for place, proposed in zip(group, self._proposed([wanted[place] for place in group]), strict=True):
                found[place] = self._of_proposed(wanted[place], proposed)
        return found

    def _proposed(self, wanted: Sequence[Wanted]) -> list[Array]:
        """Rows for each, all with one filter and about the same knob."""
        assert self.index is not None
        vectors = _stacked(wanted)
        left_out = max(len(one.left_out) for one in wanted)
        return self.index.propose(
            vectors,
            _penalties(wanted),
            probes=self.index.probes_for(wanted[0].strength),
            k=max(one.k for one in wanted),
            left_out=left_out,
            kept=wanted[0].kept,
        )

    def _of_proposed(self, one: Wanted, rows: Array) -> Best | None:
        """None where fewer than k are left: the whole catalogue may have more."""
        rows = rows[~are_among(rows, one.left_out)]
        if len(rows) < one.k:
            return None
        scores = self._exact([one], rows, self.model.item_vectors[rows])[:, 0]
        order = np.lexsort((rows, -scores))[: one.k]
        return Best(rows[order], scores[order])

    # ---------------------------------------------------------------- the whole catalogue

    def _whole(self, wanted: Sequence[Wanted]) -> Iterable[Best]:
        for some in pieces(wanted, len(self.model.items)):
            yield from self._of_all(some)

    def _of_all(self, wanted: Sequence[Wanted]) -> Iterable[Best]:
        if self.model.manifest.kind == "vectors":
            scores = self._exact(wanted, slice(None), self.model.item_vectors)
        else:
            scores = np.stack([self._by_history(one) for one in wanted], axis=1)
        for column, one in enumerate(wanted):
            if one.kept is not None or one.candidates is not None:
                _keep_allowed(one, scores[:, column])
        scores[_left_out(wanted)] = NEVER
        return largest(scores, [one.k for one in wanted])

    def _by_history(self, one: Wanted) -> Array:
        scores = self.model.scores_of_history(one.history)
        if one.strength > 0:
            scores -= np.float32(one.strength) * _spread(scores, one.history) * self.model.log_popularity
        return scores


def _keep_allowed(one: Wanted, scores: Array) -> None:
    """In place: minus infinity for whatever filters and `candidates` do not allow."""
    rows = one.rows
    if rows is not None:
        allowed = scores[rows]
        scores[:] = NEVER
        scores[rows] = allowed
    elif one.kept is not None:
        scores[~one.kept.marks] = NEVER  # type: ignore[operator]  # no rows: marks


def _spread(scores: Array, history: Array) -> np.float32:
    """Standard deviation of the scores over what the person has not had, as `adjust` has it."""
    left = np.delete(scores, history)
    return np.float32(left.astype(np.float64).std()) if len(left) else np.float32(0)


def _grouped(places: Sequence[int], key: Callable[[int], tuple[int, ...]]) -> list[list[int]]:
    return [list(group) for _, group in groupby(sorted(places, key=key), key=key)]


def _stacked(wanted: Sequence[Wanted]) -> Array:
    """The vectors of people whose scores come from vectors."""
    return np.concatenate([one.vector for one in wanted if one.vector is not None]).reshape(len(wanted), -1)


def _penalties(wanted: Sequence[Wanted]) -> Array:
    """One for each person, 0 where the knob is."""
    return np.array([one.penalty if one.strength > 0 else 0 for one in wanted], dtype=np.float32)


def _left_out(wanted: Sequence[Wanted]) -> tuple[Array, Array]:
    """Rows and columns of what may not be shown, in the scores (items, people)."""
    people = np.repeat(np.arange(len(wanted)), [len(one.left_out) for one in wanted])
    return np.concatenate([one.left_out for one in wanted]), people
