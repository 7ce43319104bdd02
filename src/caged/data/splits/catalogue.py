"""The catalogue of a split without what only its test parts name.

Users and items of the test part are known by name only, yet every one of them takes a row in the tables of a model: the
initial values of the others, and with them the trained model, depend on how many rows there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from caged.data.filters import within
from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.splits.kinds import Split
from caged.errors import DataError


@dataclass(frozen=True, eq=False)
class TrainingCatalogue:
    """A split in the rows of the users and items that training may see, and further tests in the same rows."""

    split: Split
    further: Mapping[str, Interactions]
    notes: tuple[str, ...]


def training_catalogue(
    parts: Split, further: Mapping[str, Interactions] | None = None, *, listed: IdMap | None = None
) -> TrainingCatalogue:
    """Only the users and items of train and validation, and the items `listed` in an item table.

    The pairs of test parts that name others are left out, since no list can hold them; the notes count them.
    """
    seen = [part for part in (parts.train, parts.valid) if part is not None]
    users = np.any([part.user_degrees > 0 for part in seen], axis=0)
    items = np.any([part.item_degrees > 0 for part in seen], axis=0) | _rows_in(listed, parts.train.item_ids)
    notes: list[str] = []

    def moved(name: str, part: Interactions) -> Interactions:
        kept = within(part, users, items)
        if len(kept) == 0:
            raise DataError(
                f"no pair of {name} has a user and an item that training sees, so --catalogue train leaves nothing to "
                f"measure; use --catalogue all, or give parts of one log"
            )
        left_out = len(part) - len(kept)
        if left_out:
            notes.append(
                f"{left_out:,} of the {len(part):,} pairs of {name} ({left_out / len(part):.1%}) name users or items "
                f"that training never sees: left out, as --catalogue train asks"
            )
        return kept

    moved_parts = {name: moved(name, part) for name, part in parts.parts.items()}
    moved_further = {name: moved(name, part) for name, part in (further or {}).items()}
    return TrainingCatalogue(replace(parts, **moved_parts), moved_further, tuple(notes))  # type: ignore[arg-type]


def _rows_in(listed: IdMap | None, ids: IdMap) -> Array:
    """Which of `ids` are listed."""
    if listed is None:
        return np.zeros(len(ids), dtype=bool)
    return np.asarray(listed.rows(ids.values) >= 0)
