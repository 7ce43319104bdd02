"""Reports and lists as Arrow tables in external identifiers, the way a run folder stores them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caged.data.ids import IdMap
from caged.evaluation.lists import Lists
from caged.evaluation.measure import Report


def per_user_table(report: Report, user_ids: IdMap) -> pa.Table:
    """`user_id` and one float64 column per per-user metric; NaN where a user has no value."""
    return pa.table({"user_id": user_ids.external(report.users), **report.per_user})


def recommendations_table(lists: Lists, user_ids: IdMap, item_ids: IdMap) -> pa.Table:
    """`user_id, item_id, score, rank`, one row per listed item, by (user row, rank); rank counts from 1."""
    flat = lists.flat()
    scores = pa.nulls(len(flat.users), pa.float32()) if flat.scores is None else flat.scores
    return pa.table(
        {
            "user_id": user_ids.external(flat.users),
            "item_id": item_ids.external(flat.items),
            "score": scores,
            "rank": flat.ranks.astype(np.int32),
        }
    )
