"""Reports and lists as Arrow tables in external identifiers, the way a run folder stores them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caged.data.ids import Array, IdMap
from caged.data.popularity import USER_GROUPS
from caged.evaluation.lists import Lists
from caged.evaluation.measure import Report


def per_user_table(report: Report, user_ids: IdMap) -> pa.Table:
    """`user_id`, `user_group` (null without a profile), for each group of users that somebody chose who is in it, and
    one float64 column per per-user metric, NaN where a user has no value."""
    group = pa.DictionaryArray.from_arrays(
        pa.array(report.user_group, mask=report.user_group < 0), pa.array(USER_GROUPS)
    ).cast(pa.string())
    chosen = [] if report.groups is None else report.groups.names.of_users
    members = {name: report.members(name) for name in chosen}
    return pa.table({"user_id": user_ids.external(report.users), "user_group": group, **members, **report.per_user})


def sums_table(report: Report, user_ids: IdMap) -> pa.Table:
    """`user_id` and what each user adds to the pooled metrics, a column per sum; of tables (`bucket_exposure@k`) one
    column per bucket, `bucket_exposure@k/0` and so on."""
    columns: dict[str, Array] = {}
    for name, values in report.sums.items():
        columns |= {name: values} if values.ndim == 1 else {f"{name}/{n}": column for n, column in enumerate(values.T)}
    mass = ",".join(str(count) for count in report.bucket_mass)  # the other half of `exposure_kl`
    return pa.table({"user_id": user_ids.external(report.users), **columns}, metadata={"bucket_mass": mass})


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
