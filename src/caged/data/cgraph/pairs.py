"""A part of a graph folder as `Interactions`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions


class MappedInteractions(Interactions):
    """Pairs that lie sorted on disk. Opening reads offsets; `by_user` maps the items and makes no array of them.

    `users` and `items` are made as soon as somebody asks for them: 16 bytes per pair. Whatever is derived from it
    (`select`, `replace`) holds its pairs in memory, as any other `Interactions`.
    """

    folder: Path | None = None  # where it lies; what is derived from it lies nowhere
    sorted_by_item: tuple[Array, Array] | None = None
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
        folder: Path,
        development: str | None,
    ) -> MappedInteractions:
        """Of arrays whose order was checked when they were written."""
        part = object.__new__(cls)  # the constructor would look at every pair
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
            item_rows=item_rows,
            sorted_by_item=(item_offsets, item_users),
            folder=folder,
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
        return self.items.astype(np.int32)

    def by_user(self) -> tuple[Array, Array]:
        return self.user_offsets, self.item_rows

    def by_item(self) -> tuple[Array, Array] | None:
        return self.sorted_by_item


def of_one_folder(one: Interactions, other: Interactions) -> bool:
    """Whether both are parts of the same graph folder: then they share their rows and no pair."""
    return (
        isinstance(one, MappedInteractions)
        and isinstance(other, MappedInteractions)
        and one.folder is not None
        and one.folder == other.folder
        and one is not other
    )


def fingerprint_together(train: Interactions, valid: Interactions) -> str | None:
    """The fingerprint of both parts as one, where the import computed it."""
    if not (of_one_folder(train, valid) and isinstance(train, MappedInteractions)):
        return None
    return train.development if isinstance(valid, MappedInteractions) and valid.development else None
