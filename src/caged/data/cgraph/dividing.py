"""Which part each pair goes to, a block of users at a time: the same parts as `caged.data.splits` makes in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caged.arguments import checked_seed
from caged.data.cgraph.filtering import Block, FilteredPairs
from caged.data.ids import Array
from caged.data.sorted_rows import needed_polars
from caged.data.splits.kinds import (
    FEWEST_TO_SPLIT,
    JSON,
    KINDS,
    TimeCuts,
    check_splittable,
    held_out_only,
    held_out_per_user,
    random_parameters,
    random_split_generator,
    users_kept_in_train,
    without_timestamps,
)
from caged.errors import DataError, unknown

BINS = 1 << 16  # of a histogram that looks for a place in the order of timestamps
OUT_OF_CORE = ("random", "time", "leave_last_out")


class Divider(Protocol):
    """Decides block by block, in order; each block once."""

    parameters: Mapping[str, JSON]

    def __call__(self, block: Block) -> tuple[Array, Array]:
        """Two masks over the pairs: in validation, in test."""

    def notes(self, users: Sequence[Array], items: Sequence[Array]) -> dict[str, int]:
        """What was counted meanwhile; the degrees are those of train, valid and test."""


@dataclass(frozen=True)
class SplitAs:
    """How to split, as the user asked for it."""

    kind: str = "random"
    seed: int = 1
    test_share: float | None = None
    valid_share: float | None = None

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        if self.kind not in KINDS:
            raise DataError(unknown("kind of split", self.kind, KINDS))
        if self.kind not in OUT_OF_CORE:
            raise DataError(
                f"split '{self.kind}' needs all pairs in memory, so a graph cannot be split that way while it is "
                f"imported; use {', '.join(OUT_OF_CORE)}, or caged data split"
            )
        given = [name for name in ("test_share", "valid_share") if getattr(self, name) is not None]
        if given and self.kind != "time":
            raise DataError(f"split '{self.kind}' has no {given[0]} to set (taken by: time); leave it out")

    @property
    def needs_times(self) -> bool:
        return self.kind != "random"

    def divider(self, pairs: FilteredPairs, unit: str) -> Divider:
        if self.kind == "random":
            return RandomDivider(pairs.user_degrees, self.seed)
        if self.kind == "leave_last_out":
            return LastDivider(pairs.user_degrees)
        shares = {"test_share": self.test_share, "valid_share": self.valid_share}
        defaults = {"test_share": 0.2, "valid_share": 0.1}
        return TimeDivider(pairs, unit, **{name: defaults[name] if v is None else v for name, v in shares.items()})


class RandomDivider:
    def __init__(self, user_degrees: Array, seed: int) -> None:
        self._degrees = user_degrees
        self._test, self._valid = held_out_per_user(user_degrees)
        self._generator = random_split_generator(seed)
        self.parameters: Mapping[str, JSON] = random_parameters(seed)

    def __call__(self, block: Block) -> tuple[Array, Array]:
        # Drawn block after block, the numbers are those of one draw for all pairs.
        rank = ranks_of_users(block.users, self._generator.random(len(block.users)))
        test = self._test[block.users]
        in_test = rank < test
        return ~in_test & (rank < test + self._valid[block.users]), in_test

    def notes(self, users: Sequence[Array], items: Sequence[Array]) -> dict[str, int]:
        return {"users_kept_in_train": users_kept_in_train(self._degrees)}


class LastDivider:
    def __init__(self, user_degrees: Array) -> None:
        check_splittable(user_degrees)
        self._degrees = user_degrees
        self.parameters: Mapping[str, JSON] = {}

    def __call__(self, block: Block) -> tuple[Array, Array]:
        # Of equal times the later pair is the one with the larger item, as the pairs are sorted.
        degrees = self._degrees[block.users]
        from_the_end = degrees - 1 - ranks_of_users(block.users, _times(block, "leave_last_out"))
        splittable = degrees >= FEWEST_TO_SPLIT
        return splittable & (from_the_end == 1), splittable & (from_the_end == 0)

    def notes(self, users: Sequence[Array], items: Sequence[Array]) -> dict[str, int]:
        return {"users_kept_in_train": users_kept_in_train(self._degrees), **_without_training(users, items)}


class TimeDivider:
    def __init__(self, pairs: FilteredPairs, unit: str, *, test_share: float, valid_share: float) -> None:
        self._pairs = pairs
        self._cuts = TimeCuts.of(
            len(pairs),
            lambda place: nth_smallest(self._all_times, place),
            lambda moment: sum(int(np.count_nonzero(times == moment)) for times in self._all_times()),
            test_share=test_share,
            valid_share=valid_share,
        )
        self.parameters: Mapping[str, JSON] = self._cuts.parameters(unit)

    def _all_times(self) -> Iterator[Array]:
        return (_times(block, "time") for block in self._pairs.blocks())

    def __call__(self, block: Block) -> tuple[Array, Array]:
        return self._cuts.divide(_times(block, "time"))

    def notes(self, users: Sequence[Array], items: Sequence[Array]) -> dict[str, int]:
        return _without_training(users, items)


class Pieces(Protocol):
    """A new pass over some values, piece by piece."""

    def __call__(self) -> Iterator[Array]: ...


def nth_smallest(pieces: Pieces, place: int) -> int:
    """The integer at a place, from 0, of the ascending order of all pieces, which are never held together.

    Every pass counts the values in bins and goes on within the bin that holds the place.

    >>> nth_smallest(lambda: iter([np.array([5, 900000]), np.array([7, 5])]), 2)
    7
    """
    low = min(int(piece.min()) for piece in pieces() if len(piece))
    high = max(int(piece.max()) for piece in pieces() if len(piece))
    before = 0  # values below `low`
    while low < high:
        width = -(-(high - low + 1) // BINS)
        counts = np.zeros(BINS, dtype=np.int64)
        for piece in pieces():
            inside = piece[(piece >= low) & (piece <= high)]
            above = inside.astype(np.uint64) - np.uint64(low % 2**64)  # exact where a difference of int64 overflows
            counts += np.bincount((above // np.uint64(width)).astype(np.int64), minlength=BINS)
        chosen = int(np.searchsorted(np.cumsum(counts), place - before, side="right"))
        before += int(counts[:chosen].sum())
        low, high = low + chosen * width, min(high, low + (chosen + 1) * width - 1)
    return low


def ranks_of_users(users: Array, key: Array) -> Array:
    """For each pair its position 0..n-1 among the n pairs of its user by `key`; equal keys in the order of the pairs.

    >>> ranks_of_users(np.array([0, 0, 1, 1]), np.array([5, 3, 1, 1])).tolist()
    [1, 0, 0, 1]
    """
    pl = needed_polars()
    ranks = pl.DataFrame({"user": users, "key": key}).select(pl.col("key").rank("ordinal").over("user"))
    return np.asarray(ranks["key"].to_numpy().astype(np.int64) - 1)


def _times(block: Block, kind: str) -> Array:
    if block.times is None:
        raise without_timestamps(kind)
    return block.times


def _without_training(users: Sequence[Array], items: Sequence[Array]) -> dict[str, int]:
    return {
        "users_without_training": held_out_only(users[0], users[1:]),
        "items_without_training": held_out_only(items[0], items[1:]),
    }
