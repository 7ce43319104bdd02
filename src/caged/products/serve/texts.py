"""Items as JSON: what never changes about an item is written once, not in every list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import orjson

from caged.data.ids import Array
from caged.products.serve.model import LISTED, ServedModel


def items_json(
    model: ServedModel, rows: Array, scores: Array | None = None, *, titles: bool = True, popularity: bool = False
) -> list[dict[str, Any]]:
    """One object for each row; a title only where there is one."""
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


class ItemTexts:
    """The items of lists as JSON, the same as `items_json` would give."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model
        self._are_kept = len(model.items) <= LISTED
        self._ends: dict[tuple[bool, bool], Sequence[bytes]] = {}

    def prepare(self) -> None:
        """Make what most lists need."""
        if self._are_kept:
            _ = self._beginnings
            self._endings(titles=True, popularity=False)

    def of(self, rows: Array, scores: Array, *, titles: bool, popularity: bool) -> bytes:
        """An array of objects."""
        if not self._are_kept or len(rows) == 0:
            return orjson.dumps(items_json(self._model, rows, scores, titles=titles, popularity=popularity))
        begin, end = self._beginnings, self._endings(titles=titles, popularity=popularity)
        numbers = orjson.dumps(scores.tolist())[1:-1].split(b",")
        items = [begin[row] + number + end[row] for row, number in zip(rows.tolist(), numbers, strict=True)]
        return b"[" + b",".join(items) + b"]"

    @cached_property
    def _beginnings(self) -> list[bytes]:
        """Up to the score."""
        every = np.arange(len(self._model.items))
        return [b'{"item_id":' + orjson.dumps(name) + b',"score":' for name in self._model.items.at(every)]

    def _endings(self, *, titles: bool, popularity: bool) -> Sequence[bytes]:
        """From the score on."""
        asked = (titles and self._model.titles is not None, popularity)
        known = self._ends.get(asked)
        if known is None:
            known = self._ends[asked] = self._made_endings(*asked)
        return known

    def _made_endings(self, titles: bool, popularity: bool) -> Sequence[bytes]:
        every = np.arange(len(self._model.items))
        items = items_json(self._model, every, titles=titles, popularity=popularity)
        if list(items[0]) == ["item_id"]:
            return list(repeat(b"}", len(items)))
        return [b"," + orjson.dumps({name: item[name] for name in list(item)[1:]})[1:] for item in items]


def answer_text(items: bytes, less_popular: float, unknown_items: Sequence[str | int]) -> bytes:
    """An object."""
    unknown = b"[]"
    if unknown_items:  # orjson has no integers above 64 bits and no halves of characters; whoever asks may send both
        unknown = json.dumps(unknown_items, separators=(",", ":")).encode()
    return b'{"items":%b,"less_popular":%b,"unknown_items":%b}' % (items, orjson.dumps(less_popular), unknown)
