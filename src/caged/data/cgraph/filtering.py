"""Pairs on disk, and which of them are left by the smallest rating and the k-core.

The results are those of `caged.data.filters`, which holds all pairs in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from caged.arguments import at_least_one, finite_number
from caged.data.cgraph.arrays import GrowingArray, mapped, offsets_of, user_blocks
from caged.data.filters import nothing_in_core, nothing_rated, without_ratings
from caged.data.ids import Array
from caged.data.sorted_rows import SortedRows
from caged.progress import ProgressReport

BLOCK_PAIRS = 1 << 23


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Distinct pairs sorted by (user, item), on disk; with times where the split needs them."""

    users: Array  # int32
    items: Array  # int32
    times: Array | None  # int64
    user_degrees: Array
    item_degrees: Array
    distinct: int  # before any filter

    def __len__(self) -> int:
        return len(self.users)


def store_pairs(
    rows: SortedRows,
    work: Path,
    *,
    with_times: bool,
    min_rating: float | None,
    where: str,
    rating_column: str,
    progress: ProgressReport,
) -> StoredPairs:
    """Sort, merge duplicates, drop what is rated too low, and write what is left."""
    if min_rating is not None and "rating" not in rows.schema.names:
        raise without_ratings(where, rating_column)
    least = None if min_rating is None else finite_number("min_rating", min_rating)
    user_degrees, item_degrees = (np.zeros(len(side.ids), dtype=np.int64) for side in (rows.users, rows.items))
    distinct, largest = 0, -np.inf
    with (
        GrowingArray(work / "users.npy", np.int32) as users,
        GrowingArray(work / "items.npy", np.int32) as items,
        GrowingArray(work / "times.npy", np.int64) as times,
    ):
        for merged in rows.tables(progress):
            table = merged
            distinct += merged.num_rows
            if least is not None:
                rating = merged["rating"].to_numpy()
                largest = max(largest, float(rating.max(initial=-np.inf)))
                table = merged.filter(pa.array(rating >= least))
            user, item = table["user"].to_numpy(), table["item"].to_numpy()
            users.append(user)
            items.append(item)
            if with_times:
                times.append(table["timestamp"].cast(pa.int64()).to_numpy())
            count_ascending(user_degrees, user)
            item_degrees += np.bincount(item, minlength=len(item_degrees))
    if users.length == 0:
        assert min_rating is not None  # an empty log is refused before
        raise nothing_rated(where, min_rating, largest)
    return StoredPairs(
        mapped(users.path),
        mapped(items.path),
        mapped(times.path) if with_times else None,
        user_degrees,
        item_degrees,
        distinct,
    )


def count_ascending(degrees: Array, rows: Array) -> None:
    """Add how often each row occurs; of neighbouring rows, so that a block touches only its own counts."""
    if len(rows):
        first, last = int(rows[0]), int(rows[-1])
        degrees[first : last + 1] += np.bincount(rows - rows[0], minlength=last - first + 1)


@dataclass(frozen=True, eq=False)
class Core:
    """Which users and items are left, and how many pairs each of them has among themselves."""

    user_degrees: Array
    item_degrees: Array

    @property
    def users(self) -> Array:
        return self.user_degrees > 0

    @property
    def items(self) -> Array:
        return self.item_degrees > 0


def core_of(pairs: StoredPairs, k: int | None, where: str, progress: ProgressReport) -> Core:
    """The k-core; without k, whatever occurs. Every round is a pass over the pairs on disk."""
    core = Core(pairs.user_degrees, pairs.item_degrees)
    if k is None:
        return core
    at_least_one("the least number of interactions per user", k)
    while True:
        enough_users, enough_items = core.user_degrees >= k, core.item_degrees >= k
        if not ((core.users & ~enough_users).any() or (core.items & ~enough_items).any()):
            break
        left = Core(np.zeros_like(core.user_degrees), np.zeros_like(core.item_degrees))
        for start in range(0, len(pairs), BLOCK_PAIRS):
            progress(f"filtering: {k}-core", start / len(pairs))
            block = slice(start, start + BLOCK_PAIRS)
            users, items = pairs.users[block], pairs.items[block]
            kept = enough_users[users] & enough_items[items]
            count_ascending(left.user_degrees, users[kept])
            left.item_degrees[:] += np.bincount(items[kept], minlength=len(enough_items))
        core = left
    if not core.users.any():
        raise nothing_in_core(where, k, k, len(pairs))
    return core


@dataclass(frozen=True, eq=False)
class Block:
    """Pairs of whole users, in the rows of what the filters left."""

    users: Array  # int32, ascending
    items: Array  # int32
    times: Array | None


@dataclass(frozen=True, eq=False)
class FilteredPairs:
    """The pairs that are left, a block of whole users at a time, as often as needed."""

    pairs: StoredPairs
    core: Core

    def __len__(self) -> int:
        return int(self.core.user_degrees.sum())

    @property
    def user_degrees(self) -> Array:
        """Of the users that are left, in their new rows."""
        return self.core.user_degrees[self.core.users]

    def blocks(self) -> Iterator[Block]:
        everything = len(self) == len(self.pairs) and bool(self.core.users.all() and self.core.items.all())
        user_row, item_row = (
            np.cumsum(kept, dtype=np.int32) - np.int32(1) for kept in (self.core.users, self.core.items)
        )
        offsets = offsets_of(self.pairs.user_degrees)
        for first, last in user_blocks(offsets, BLOCK_PAIRS):
            place = slice(int(offsets[first]), int(offsets[last]))
            users, items = np.asarray(self.pairs.users[place]), np.asarray(self.pairs.items[place])
            times = None if self.pairs.times is None else np.asarray(self.pairs.times[place])
            if not everything:
                kept = self.core.users[users] & self.core.items[items]
                users, items = user_row[users[kept]], item_row[items[kept]]
                times = None if times is None else times[kept]
            yield Block(users, items, times)
