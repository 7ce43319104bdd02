"""The best of many scores, exactly, and in the order that lists have everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from caged.data.ids import Array

NEVER = np.float32(-np.inf)  # the score of what may not be shown
SCORES_AT_ONCE = 2**20  # of a batch; 4 MiB stay in the cache
TOGETHER = 16  # people whose scores of a large catalogue are one product: several times as fast as one by one
SCORES_AT_MOST = 2**24  # which is 64 MiB
GROUP = 16  # rows whose maximum stands for them
SMALLEST = np.finfo(np.float32).min  # that is finite
SCORE_BITS = 32
SIGN = np.uint32(1 << 31)

T = TypeVar("T")


class Best(NamedTuple):
    """Best first: score descending, then the smaller row."""

    rows: Array
    scores: Array


def pieces(asked: Sequence[T], items: int) -> Iterator[Sequence[T]]:
    """So many at a time that their scores of so many items stay small."""
    items = max(items, 1)
    at_once = max(1, SCORES_AT_ONCE // items, min(TOGETHER, SCORES_AT_MOST // items))
    return (asked[first : first + at_once] for first in range(0, len(asked), at_once))


def largest(scores: Array, counts: Sequence[int]) -> list[Best]:
    """Of every column of `scores`, (items, people) of float32, so many of the largest that are finite.

    >>> [best] = largest(np.array([0.5, 0.9, -np.inf, 0.9, 0.5], dtype=np.float32)[:, None], [3])
    >>> best.rows.tolist()
    [1, 3, 0]
    """
    items, people = scores.shape
    most = min(max(counts, default=0), items)
    if most <= 0:
        return [Best(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))] * people
    scores = np.ascontiguousarray(scores)
    places = _reaching(scores, most)
    owner, rows, values = _ordered(places, scores.reshape(-1)[places], people, items)
    ends = np.cumsum(np.bincount(owner, minlength=people)).tolist()
    cuts = [slice(start, min(end, start + k)) for k, start, end in zip(counts, [0, *ends[:-1]], ends, strict=True)]
    return [Best(rows[cut], values[cut]) for cut in cuts]


def _reaching(scores: Array, k: int) -> Array:
    """Flat places of the k largest finite scores of every column and of few others, in any order.

    Of groups of rows, k have a maximum that reaches the k-th largest maximum, so at least k scores reach it, and
    whatever does is in such a group. Group g holds the rows g, g + G, g + 2G, ...: all maxima are one quick pass.
    """
    items, people = scores.shape
    groups = items // GROUP
    if 2 * k > groups:
        return np.flatnonzero(scores >= _kth(scores, k))
    grouped = GROUP * groups
    cells = scores[:grouped].reshape(GROUP, groups * people)  # a cell is a group of somebody; its members are a column
    maxima = cells.max(axis=0)
    enough = _kth(maxima.reshape(groups, people), k)
    hit = np.flatnonzero(maxima.reshape(groups, people) >= enough)
    member, which = np.divmod(np.flatnonzero(cells[:, hit] >= enough[hit % people]), len(hit))
    reached = member * (groups * people) + hit[which]
    if grouped == items:
        return np.asarray(reached)
    return np.concatenate((reached, grouped * people + np.flatnonzero(scores[grouped:] >= enough)))


def _kth(values: Array, k: int) -> Array:
    """(people,): the k-th largest of each column, or the smallest finite number where fewer are finite."""
    place = len(values) - k
    return np.asarray(np.maximum(np.partition(np.ascontiguousarray(values.T), place, axis=1)[:, place], SMALLEST))


def _ordered(places: Array, scores: Array, people: int, items: int) -> tuple[Array, Array, Array]:
    """People, rows and scores, by person, then as lists are.

    One number says all three, so that one plain sort does: several times as fast as a sort by three keys.
    """
    rows, owner = np.divmod(places, people)
    row_bits = items.bit_length()
    assert people.bit_length() + SCORE_BITS + row_bits <= 64
    falling = _turned((scores + np.float32(0)).view(np.uint32))  # adding 0 makes -0.0, which equals 0.0, look like it
    keys = ((owner.astype(np.uint64) << SCORE_BITS | falling) << row_bits) | rows.astype(np.uint64)
    keys.sort()
    owner, rows = keys >> (SCORE_BITS + row_bits), keys & ((1 << row_bits) - 1)
    scores = _turned((keys >> row_bits).astype(np.uint32)).view(np.float32)
    return owner.astype(np.int64), rows.astype(np.int64), scores


def _turned(bits: Array) -> Array:
    """The bits of floats as integers that are the smaller, the larger the float; and back."""
    return np.where(bits & SIGN, bits, bits ^ ~SIGN)
