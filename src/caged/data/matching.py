"""Whether the parts of a split name the same users and items: `5` here and `5.0` there never match."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.errors import DataError

LITTLE = 0.5  # of a part's users or items: where fewer are in train, somebody should look


def check_kinds(train: Interactions, others: Mapping[str, Interactions], item_table: IdMap | None = None) -> None:
    """Integers here and text there are an error: better said than counted as unknown."""
    for name, part in others.items():
        check_kind(name, "user_id", part.user_ids, train.user_ids)
        check_kind(name, "item_id", part.item_ids, train.item_ids)
    if item_table is not None:
        check_kind("the item table", "item_id", item_table, train.item_ids)


def check_kind(name: str, column: str, ids: IdMap, train: IdMap) -> None:
    if len(ids) and len(train) and ids.are_integers != train.are_integers:
        kinds = ("text", "integers") if train.are_integers else ("integers", "text")
        raise DataError(
            f"column '{column}' of {name} holds {kinds[0]} (such as {ids.values[len(ids) - 1].as_py()!r}) where "
            f"train has {kinds[1]} (such as {train.values[0].as_py()!r}), so nothing would match; write both as "
            f"the same type, or read all ids as text with --ids text"
        )


def check_overlap(train: Interactions, others: Mapping[str, Interactions]) -> tuple[str, ...]:
    """Notes about parts of which train knows little; an error where it knows nothing. All share their id maps."""
    notes = []
    for name, part in others.items():
        for kind, ids, here, there in (
            ("user", train.user_ids, part.user_degrees, train.user_degrees),
            ("item", train.item_ids, part.item_degrees, train.item_degrees),
        ):
            named = np.flatnonzero(here)
            known = int(np.count_nonzero(there[named]))
            if len(named) and known == 0:
                raise _nothing_in_common(name, kind, ids, named, np.flatnonzero(there))
            if known < LITTLE * len(named):
                notes.append(
                    f"only {known:,} of the {len(named):,} {kind}s of {name} ({known / len(named):.1%}) are in train: "
                    f"nothing was learned about the others; if that is a surprise, do both files write their ids alike?"
                )
    return tuple(notes)


def _nothing_in_common(name: str, kind: str, ids: IdMap, here: Array, there: Array) -> DataError:
    one, other = (ids.external(rows[:1])[0].as_py() for rows in (here, there))
    return DataError(
        f"{name} has no {kind} in common with train (such as {one!r} here, {other!r} there), so nothing could be "
        f"measured; write the {kind} ids of both alike, or give parts of one log"
    )
