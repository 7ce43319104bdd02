"""What there is to know about a source before training on it: sizes, spread, overlap, checksums."""

from __future__ import annotations

from typing import Any

import numpy as np

from caged.data.interactions import Interactions
from caged.data.parts import NOT_LIKED
from caged.data.popularity import gini, top_share
from caged.data.shown import ShownAtRandom, popularity_contrast
from caged.data.source import Source, unlike_published


def describe(source: Source, *, filtered: bool = False) -> dict[str, Any]:
    """Statistics of a source, ready for JSON.

    Shares and Gini indices of item popularity are taken over all items that occur anywhere in the source. `published`
    says whether all pairs are the published ones; it is None for data that is not in the table of datasets, and where
    `filtered` says that a part of the pairs was left out on purpose. What was shown and not liked is a part, but no
    interaction.
    """
    contents = source.contents
    train = contents.get("train", next(iter(contents.values())))
    pairs = sum(len(part) for part in source.positives.values())
    return {
        "name": source.name,
        "path": str(source.path),
        **_from_the_table(source, filtered=filtered),
        "users": train.user_count,
        "items": train.item_count,
        "interactions": pairs,
        "density": pairs / (train.user_count * train.item_count),
        "duplicates": sum(part.merged for part in contents.values()),
        "gini": gini(train.item_degrees),
        "top_20_percent_share": top_share(train.item_degrees),
        "parts": {
            name: {**describe_part(part, train), "dropped": source.dropped.get(name, 0)}
            for name, part in contents.items()
        },
        **_popularity_contrast(source),
        "notes": list(source.notes),
    }


def _popularity_contrast(source: Source) -> dict[str, Any]:
    """Where chance showed items: how unequal popularity is in train, and what it is worth there."""
    parts = source.parts or {}
    if NOT_LIKED not in parts:
        return {}
    shown = ShownAtRandom.of(parts["test"], parts[NOT_LIKED])
    return {"popularity_contrast": popularity_contrast(parts["train"].item_groups, shown).to_json()}


def describe_part(part: Interactions, train: Interactions) -> dict[str, Any]:
    """Statistics of one part; per user counts only the users that it has."""
    users, items = part.user_degrees, part.item_degrees
    per_user = users[users > 0]
    unseen_items = (items > 0) & (train.item_degrees == 0)
    return {
        "interactions": len(part),
        "users": len(per_user),
        "items": int(np.count_nonzero(items)),
        "per_user": {
            "min": int(per_user.min()) if len(per_user) else 0,
            "median": float(np.median(per_user)) if len(per_user) else None,
            "max": int(per_user.max(initial=0)),
        },
        "gini": gini(items),
        "top_20_percent_share": top_share(items),
        "items_not_in_train": int(np.count_nonzero(unseen_items)),
        "interactions_of_items_not_in_train": int(items[unseen_items].sum()),
        "users_not_in_train": int(np.count_nonzero((users > 0) & (train.user_degrees == 0))),
        "duplicates": part.merged,
        "columns": _value_columns(part),
        "fingerprint": part.fingerprint,
    }


def _value_columns(part: Interactions) -> list[str]:
    present = {"rating": part.rating, "timestamp": part.timestamp}
    return [*(name for name, values in present.items() if values is not None), *part.columns]


def _from_the_table(source: Source, *, filtered: bool) -> dict[str, Any]:
    row = source.dataset
    if row is None:
        return {"published": None}
    return {
        "title": row.title,
        "partial": row.partial,
        "terms": row.terms,
        "citation": row.citation,
        "published": None if filtered else not unlike_published(row, source.contents),
    }
