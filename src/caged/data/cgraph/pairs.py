"""A part of a graph folder as `Interactions`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from caged.data.cgraph.layout import ITEMS_BY_USER, USERS_BY_ITEM
from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.errors import DataError

BLOCK = 1 << 24  # pairs that are checked at a time


class MappedInteractions(Interactions):
    """Pairs that lie sorted on disk. Opening reads offsets; `by_user` maps the items and makes no array of them, but
    the first call reads them once, to see that they are the rows of these offsets.

    `users` and `items` are made as soon as somebody asks for them: 16 bytes per pair. Whatever is derived from it
    (`select`, `replace`) holds its pairs in memory, as any other `Interactions`.
    """

    place: Path | None = None  # the folder of the part; what is derived from it lies nowhere
    mapped: tuple[Array, Array, Array] | None = None  # items by user; offsets of items, users by item
    development: str | None = None  # of train and valid: the fingerprint of both together

    @classmethod
    def over(
        cls,
        user_ids: IdMap,
        item_ids: IdMap,
        user_offsets: Array,
        item_rows: Array,
        item_offsets: Array,
        item_users: Array,
        *,
        fingerprint: str,
        merged: int,
        place: Path,
        development: str | None,
    ) -> MappedInteractions:
        """Of arrays that were sorted when they were written."""
        part = object.__new__(cls)  # the constructor would make arrays of all pairs
        part.__dict__.update(
            user_ids=user_ids,
            item_ids=item_ids,
            rating=None,
            timestamp=None,
            columns={},
            merged=merged,
            timestamp_unit="s",
            notes=(),
            # What other interactions derive from their pairs when they are asked.
            user_offsets=user_offsets,
            user_degrees=np.diff(user_offsets),
            item_degrees=np.diff(item_offsets),
            fingerprint=fingerprint,
            mapped=(item_rows, item_offsets, item_users),
            place=place,
            development=development,
        )
        return part

    def __len__(self) -> int:
        return int(self.user_offsets[-1])

    @cached_property
    def users(self) -> Array:
        return np.repeat(np.arange(self.user_count, dtype=np.int64), self.user_degrees)

    @cached_property
    def items(self) -> Array:
        return self.item_rows.astype(np.int64)

    @cached_property
    def item_rows(self) -> Array:
        """int32."""
        if self.mapped is None or self.place is None:
            return self.items.astype(np.int32)
        check_rows(self.place / ITEMS_BY_USER, self.mapped[0], self.user_offsets, self.item_degrees)
        return self.mapped[0]

    @cached_property
    def item_order(self) -> tuple[Array, Array] | None:
        """Offsets of items, and the users of each."""
        if self.mapped is None or self.place is None:
            return None
        _, offsets, users = self.mapped
        check_rows(self.place / USERS_BY_ITEM, users, offsets, self.user_degrees)
        return offsets, users

    def check(self) -> None:
        """Both orders now, and not when somebody first asks for them."""
        self.by_user()
        self.by_item()

    def by_user(self) -> tuple[Array, Array]:
        return self.user_offsets, self.item_rows

    def by_item(self) -> tuple[Array, Array] | None:
        return self.item_order


def check_rows(path: Path, rows: Array, offsets: Array, degrees: Array, block: int = BLOCK) -> None:
    """Refuse rows that do not ascend, or that name anything more or less often than `degrees`, those of the others."""
    counts = np.zeros(len(degrees), dtype=np.int64)
    block = max(block, len(degrees))  # each takes a count of everything
    for first in range(0, len(rows), block):
        begin = max(first - 1, 0)  # one more, for the order across blocks
        here = np.asarray(rows[begin : first + block])
        starts = np.flatnonzero(here[1:] <= here[:-1]) + begin + 1  # nothing but a new row may do so
        named = here[first - begin :]
        if (
            int(named.min()) < 0
            or int(named.max()) >= len(degrees)
            or not np.array_equal(offsets[np.searchsorted(offsets, starts)], starts)
        ):
            raise _damaged(path)
        counts += np.bincount(named, minlength=len(degrees))
    if not np.array_equal(counts, degrees):
        raise _damaged(path)


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is damaged: its pairs are not those of its offsets; import the log again, or copy the whole folder "
        f"again"
    )


def of_one_folder(one: Interactions, other: Interactions) -> bool:
    """Whether both are parts of the same graph folder: then they share their rows and no pair."""
    return (
        isinstance(one, MappedInteractions)
        and isinstance(other, MappedInteractions)
        and one.place is not None
        and other.place is not None
        and one.place.parent == other.place.parent
        and one is not other
    )


def fingerprint_together(train: Interactions, valid: Interactions) -> str | None:
    """The fingerprint of both parts as one, where the import computed it."""
    if not (of_one_folder(train, valid) and isinstance(train, MappedInteractions)):
        return None
    return train.development if isinstance(valid, MappedInteractions) and valid.development else None
