"""Items found by a piece of their title or the beginning of their id, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import Array
from caged.errors import ConfigError
from caged.products.serve.model import ServedModel

LONGEST = 200  # characters of a search
PAGE = 1000  # items


@dataclass(frozen=True, eq=False)
class Page:
    total: int
    items: Array  # rows


class Catalogue:
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    def search(self, text: str, offset: int = 0, limit: int = 20) -> Page:
        """The item of that very id first, then the most popular; an empty text finds everything."""
        if len(text) > LONGEST:
            raise ConfigError(f"the search has {len(text):,} characters; at most {LONGEST} are allowed")
        if offset < 0 or not 1 <= limit <= PAGE:
            raise ConfigError(f"offset is {offset} and limit {limit}; allowed are 0.. and 1..{PAGE}")
        found = self._found(text.strip())
        return Page(len(found), found[offset : offset + limit])

    def _found(self, text: str) -> Array:
        ranked = self._model.by_popularity
        if not text:
            return ranked
        found = ranked[self._matching(text)[ranked]]
        exact = self._model.items.row(text)
        return found if exact < 0 else np.concatenate(([exact], found[found != exact]))

    def _matching(self, text: str) -> Array:
        """(N,) of bool."""
        matches = _flags(pc.starts_with(self._ids, text, ignore_case=True))
        if self._model.titles is not None:
            matches |= _flags(pc.match_substring(self._model.titles, text, ignore_case=True))
        return matches

    @cached_property
    def _ids(self) -> pa.Array:
        return self._model.items.values.cast(pa.string())


def _flags(found: pa.Array) -> Array:
    """A copy."""
    return np.array(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)
