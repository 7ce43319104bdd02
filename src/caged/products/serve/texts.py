"""Items as JSON: what never changes about an item is written once, not in every list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import orjson

from caged.data.ids import Array
from caged.products.serve.model import LISTED, ServedModel


def items_json(
    model: ServedModel, rows: Array, scores: Array | None = None, *, titles: bool = True, popularity: bool = False
) -> list[dict[str, Any]]:
    """One object for each row; a title only where there is one. The score, which is new in every list, comes last."""
    items: list[dict[str, Any]] = [{"item_id": name} for name in model.items.at(rows)]
    columns: dict[str, Sequence[Any]] = {}
    if titles and model.titles is not None:
        columns["title"] = model.titles_at(rows)
    if popularity:
        columns["popularity"] = model.degrees[rows].tolist()
        columns["popularity_rank"] = model.popularity_ranks[rows].tolist()
    if scores is not None:
        columns["score"] = scores.tolist()
    for name, values in columns.items():
        for item, value in zip(items, values, strict=True):
            item[name] = value
    return items


class Shown(NamedTuple):
    """A list as somebody wants to see it."""

    rows: Array
    scores: Array
    titles: bool
    popularity: bool


class ItemTexts:
    """The items of lists as JSON, the same as `items_json` would give."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model
        self._are_kept = len(model.items) <= LISTED
        self._kept: dict[tuple[bool, bool], list[bytes]] = {}

    def prepare(self) -> None:
        """Make what most lists need."""
        if self._are_kept:
            self._beginnings(titles=True, popularity=False)

    def of(self, lists: Sequence[Shown]) -> list[bytes]:
        """An array of objects for each list."""
        if not self._are_kept:
            return [orjson.dumps(self._written(one)) for one in lists]
        numbers = iter(_numbers([one.scores for one in lists]))
        return [self._joined(one, numbers) for one in lists]

    def _written(self, one: Shown) -> list[dict[str, Any]]:
        return items_json(self._model, one.rows, one.scores, titles=one.titles, popularity=one.popularity)

    def _joined(self, one: Shown, numbers: Iterator[bytes]) -> bytes:
        rows = one.rows.tolist()
        if not rows:
            return b"[]"
        pieces = [b"}"] * (2 * len(rows) + 1)
        pieces[:-1:2] = map(self._beginnings(titles=one.titles, popularity=one.popularity).__getitem__, rows)
        pieces[1::2] = islice(numbers, len(rows))
        return b"[%b]" % b"".join(pieces)[2:]  # without what ends the item before the first

    def _beginnings(self, *, titles: bool, popularity: bool) -> list[bytes]:
        """Of each item, from the end of the item before to its score."""
        known = self._kept.get((titles, popularity))
        if known is None:
            every = items_json(self._model, np.arange(len(self._model.items)), titles=titles, popularity=popularity)
            known = self._kept[titles, popularity] = [b"}," + orjson.dumps(item)[:-1] + b',"score":' for item in every]
        return known


def _numbers(lists: Sequence[Array]) -> list[bytes]:
    """All numbers as JSON has them; of float64, as everywhere else."""
    if not any(map(len, lists)):
        return []
    every = np.concatenate(lists, dtype=np.float64)
    return orjson.dumps(every, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


def answer_text(items: bytes, less_popular: float, unknown_items: Sequence[str | int]) -> bytes:
    """An object."""
    unknown = b"[]"
    if unknown_items:  # orjson has no integers above 64 bits and no halves of characters; whoever asks may send both
        unknown = json.dumps(unknown_items, separators=(",", ":")).encode()
    return b'{"items":%b,"less_popular":%b,"unknown_items":%b}' % (items, orjson.dumps(less_popular), unknown)
