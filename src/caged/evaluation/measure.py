"""`measure`: lists and a reference in, every metric out, per user first and the mean last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import BUCKETS
from caged.errors import ConfigError, DataError, unknown
from caged.evaluation import bias, exposure, ranking
from caged.evaluation.keys import METRICS, MetricKey, list_width, metric_keys
from caged.evaluation.lists import PADDING, Lists
from caged.evaluation.reference import Reference, find

Missing = Literal["zero", "skip"]
_NEVER = np.iinfo(np.int64).max - 1  # the position of a relevant item that is not in the list


@dataclass(frozen=True, eq=False)
class Report:
    """Metrics of a set of lists.

    `users` are the rows that have a list or a relevant item, ascending; the arrays of `per_user`, `sums` and
    `user_group` have one entry for each. Undefined values are NaN. `sums` holds the numerators and denominators of the
    pooled metrics, so that these can be computed again for any selection of the users.
    """

    users: Array
    metrics: dict[str, float]
    users_per_metric: dict[str, int]
    per_user: dict[str, Array]
    sums: dict[str, Array]
    counts: dict[str, int]
    user_group: Array  # int8, an index into USER_GROUPS or -1


def measure(
    lists: Lists,
    reference: Reference,
    ks: Sequence[int] = (20,),
    *,
    metrics: Sequence[str] | None = None,
    missing: Missing = "zero",
) -> Report:
    """Every metric at each of `ks`, or only the keys in `metrics` (such as `recall@20/niche`; `ks` is then not read).

    A user with relevant items and without a list counts as an empty list (accuracy 0) or, with `missing="skip"`, is
    left out; `counts["users_relevant_without_list"]` is their number either way.
    """
    if missing not in ("zero", "skip"):
        raise ConfigError(unknown("treatment of missing lists", missing, ("zero", "skip")))
    keys = _requested(ks, metrics)
    aligned = _Aligned.of(lists, reference, list_width(keys), missing)
    values = {str(key): _aggregate(aligned, key) for key in keys}
    return Report(
        users=aligned.users,
        metrics={key: value for key, (value, _) in values.items()},
        users_per_metric={key: users for key, (_, users) in values.items()},
        per_user={str(key): per_user for key, per_user in aligned.computed.items()},
        sums=aligned.sums,
        counts=_counts(lists, reference, sorted({key.k for key in keys})),
        user_group=reference.user_groups.label[aligned.users],
    )


def _requested(ks: Sequence[int], metrics: Sequence[str] | None) -> list[MetricKey]:
    if metrics is not None:
        return [MetricKey.parse(text) for text in metrics]
    if not ks or min(ks) < 1:
        raise ConfigError(f"ks is {list(ks)}; give at least one cut-off, each at least 1")
    return metric_keys(dict.fromkeys(ks))


def _counts(lists: Lists, reference: Reference, ks: Sequence[int]) -> dict[str, int]:
    lengths = lists.lengths
    listed = lists.users[lengths > 0]
    both = int(np.count_nonzero(reference.relevant_counts[None][listed]))
    return {
        "users_listed": len(listed),
        "users_relevant": len(reference.relevant_users),
        "users_relevant_without_list": len(reference.relevant_users) - both,
        "users_listed_without_relevant": len(listed) - both,
        **{f"lists_shorter_than@{k}": int(np.count_nonzero((lengths > 0) & (lengths < k))) for k in ks},
    }


# -------------------------------------------------------------------- lists beside the reference


@dataclass(eq=False)
class _Aligned:
    """One row per user of the report, with what several metrics share; nothing is computed before it is asked for."""

    reference: Reference
    users: Array
    items: Array  # (n, width), -1 throughout for a user without a list
    computed: dict[MetricKey, Array] = field(default_factory=dict)
    sums: dict[str, Array] = field(default_factory=dict)
    exposures: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, lists: Lists, reference: Reference, width: int, missing: Missing) -> _Aligned:
        _check_rows(lists, reference)
        kept = lists.lengths > 0
        listed, items = lists.users[kept], lists.items[kept, :width]
        if missing == "skip":
            return cls(reference, listed, items)
        reported = reference.relevant_counts[None] > 0
        reported[listed] = True
        users = np.flatnonzero(reported)
        if len(users) > len(listed):
            padded = np.full((len(users), items.shape[1]), PADDING, dtype=items.dtype)
            padded[np.searchsorted(users, listed)] = items
            items = padded
        return cls(reference, users, items)

    @cached_property
    def keys(self) -> Array:
        """user * N + item per place; meaningless on padding."""
        return self.users[:, None] * np.int64(max(self.reference.item_count, 1)) + self.items

    @cached_property
    def listed(self) -> Array:
        return np.asarray(self.items != PADDING)

    @cached_property
    def has_list(self) -> Array:
        return bias.list_lengths(self.items, 1) > 0

    @cached_property
    def found(self) -> Array:
        """Per place the index of the pair among the relevant ones, or -1."""
        return np.where(self.listed, find(self.reference.relevant_keys, self.keys), -1)

    @cached_property
    def hits(self) -> dict[str | None, Array]:
        hit = self.found >= 0
        popular = hit & self.reference.item_groups.popular[self.items]
        return {None: hit, "popular": popular, "niche": hit & ~popular}

    @cached_property
    def relevant(self) -> dict[str | None, Array]:
        return {group: counts[self.users] for group, counts in self.reference.relevant_counts.items()}

    @cached_property
    def unseen(self) -> Array:
        return self.listed & (find(self.reference.seen_keys, self.keys) < 0)

    @cached_property
    def relevant_pairs(self) -> tuple[Array, Array, Array]:
        """(row of the user, degree of the item, position in the list) of every relevant pair of the report."""
        part = self.reference.relevant
        if part is None or len(part) == 0:
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, nothing
        position = np.full(len(part), _NEVER, dtype=np.int64)
        row, column = np.nonzero(self.found >= 0)
        position[self.found[row, column]] = column + 1
        owner = find(self.users, part.users)
        kept = owner >= 0
        return owner[kept], self.reference.item_groups.degrees[part.items[kept]], position[kept]

    def per_user(self, name: str, k: int, group: str | None = None) -> Array:
        key = MetricKey(name, k, group)
        if key not in self.computed:
            if name in _ACCURACY:
                self.computed[key] = _ACCURACY[name](self.hits[group], self.relevant[group], k)
            else:
                self.computed[key] = _OF_LISTS[name](self, k)
        return self.computed[key]

    def summed(self, name: str, compute: Callable[[], Array]) -> Array:
        if name not in self.sums:
            self.sums[name] = compute()
        return self.sums[name]

    def exposed(self, k: int) -> Array:
        if k not in self.exposures:
            self.exposures[k] = exposure.exposure(self.items, self.reference.item_count, k)
        return self.exposures[k]

    def in_user_group(self, group: str | None) -> Array:
        if group is None:
            return np.ones(len(self.users), dtype=bool)
        return self.reference.user_groups.member(group)[self.users]


def _check_rows(lists: Lists, reference: Reference) -> None:
    if len(lists) and lists.users[-1] >= reference.user_count:
        raise DataError(
            f"lists name user row {lists.users[-1]}; the reference has the rows 0..{reference.user_count - 1}"
        )
    if lists.items.size and lists.items.max() >= reference.item_count:
        raise DataError(
            f"lists name item row {lists.items.max()}; the catalogue has the rows 0..{reference.item_count - 1}"
        )


# -------------------------------------------------------------------- the metrics by name

_ACCURACY: dict[str, Callable[[Array, Array, int], Array]] = {
    "recall": ranking.recall,
    "precision": ranking.precision,
    "hit": ranking.hit,
    "mrr": ranking.mrr,
    "map": ranking.average_precision,
    "ndcg": ranking.ndcg,
    "ndcg_hits100": ranking.ndcg_hits100,
}


def _popularity_lift(aligned: _Aligned, k: int) -> Array:
    return bias.popularity_lift(aligned.per_user("arp", k), _profile_popularity(aligned))


def _upd(aligned: _Aligned, k: int) -> Array:
    listed = bias.list_sections(aligned.items, aligned.reference.item_groups.section, k)
    return bias.upd(aligned.reference.profile_sections[aligned.users], listed)


def _profile_popularity(aligned: _Aligned) -> Array:
    return aligned.summed("profile_popularity", lambda: aligned.reference.profile_popularity[aligned.users])


_OF_LISTS: dict[str, Callable[[_Aligned, int], Array]] = {
    "arp": lambda at, k: bias.arp(at.items, at.reference.item_groups.degrees, k),
    "popularity_lift": _popularity_lift,
    "tail_share": lambda at, k: bias.tail_share(at.items, at.reference.item_groups.niche, k),
    "aclt": lambda at, k: bias.aclt(at.items, at.reference.item_groups.niche, k),
    "novelty": lambda at, k: bias.novelty(at.items, at.reference.item_groups.degrees, at.reference.trained_users, k),
    "upd": _upd,
    "pru": lambda at, k: bias.pru(*at.relevant_pairs, len(at.users), k),
}

Aggregate = tuple[float, int]  # the value and the number of users behind it


def _delta_gap(aligned: _Aligned, key: MetricKey) -> Aggregate:
    chosen = aligned.in_user_group(key.group)
    listed, profile = aligned.per_user("arp", key.k)[chosen], _profile_popularity(aligned)[chosen]
    return bias.delta_gap(listed, profile), int(np.count_nonzero(~np.isnan(listed) & ~np.isnan(profile)))


def _over_catalogue(
    compute: Callable[[Array, Array | None], float],
) -> Callable[[_Aligned, MetricKey], Aggregate]:
    def aggregate(aligned: _Aligned, key: MetricKey) -> Aggregate:
        members = None if key.group is None else aligned.reference.item_groups.member(key.group)
        return compute(aligned.exposed(key.k), members), int(aligned.has_list.sum())

    return aggregate


def _exposure_kl(aligned: _Aligned, key: MetricKey) -> Aggregate:
    groups = aligned.reference.item_groups

    def by_bucket() -> Array:
        rows, items = bias.listed_pairs(aligned.items, key.k)
        return bias.label_counts(rows, groups.bucket[items], len(aligned.users), BUCKETS)

    exposed = aligned.summed(f"bucket_exposure@{key.k}", by_bucket).sum(axis=0)
    return exposure.exposure_kl(exposed, groups.bucket_mass), int(aligned.has_list.sum())


def _exposure_rate(aligned: _Aligned, key: MetricKey) -> Aggregate:
    group = key.group
    assert group is not None  # MetricKey.parse and metric_keys give this metric by group only
    members = aligned.reference.item_groups.member(group)

    def listed_unseen() -> Array:
        counted = aligned.unseen & members[aligned.items]
        return np.asarray(np.count_nonzero(counted[:, : key.k], axis=1))

    def eligible() -> Array:
        return aligned.reference.eligible_counts[group][aligned.users] * aligned.has_list

    listed = aligned.summed(f"listed_unseen@{key.k}/{group}", listed_unseen)
    pairs = aligned.summed(f"eligible/{group}", eligible)
    return exposure.exposure_rate(listed, pairs), int(aligned.has_list.sum())


def _pooled_recall(aligned: _Aligned, key: MetricKey) -> Aggregate:
    found = aligned.summed(
        f"hits@{key.k}/{key.group}",
        lambda: np.count_nonzero(aligned.hits[key.group][:, : key.k], axis=1),
    )
    relevant = aligned.summed(f"relevant/{key.group}", lambda: aligned.relevant[key.group])
    return exposure.pooled_recall(found, relevant), int(np.count_nonzero(relevant))


def _pop_rsp(aligned: _Aligned, key: MetricKey) -> Aggregate:
    popular, users = _exposure_rate(aligned, MetricKey("exposure_rate", key.k, "popular"))
    niche, _ = _exposure_rate(aligned, MetricKey("exposure_rate", key.k, "niche"))
    return exposure.pop_rsp(popular, niche), users


def _pop_reo(aligned: _Aligned, key: MetricKey) -> Aggregate:
    popular, _ = _pooled_recall(aligned, MetricKey("pooled_recall", key.k, "popular"))
    niche, _ = _pooled_recall(aligned, MetricKey("pooled_recall", key.k, "niche"))
    return exposure.pop_reo(popular, niche), int(np.count_nonzero(aligned.relevant[None]))


_OF_CATALOGUE: dict[str, Callable[[_Aligned, MetricKey], Aggregate]] = {
    "delta_gap": _delta_gap,
    "coverage": _over_catalogue(exposure.coverage),
    "gini": _over_catalogue(lambda exposed, _: exposure.gini(exposed)),
    "entropy": _over_catalogue(lambda exposed, _: exposure.entropy(exposed)),
    "exposure_kl": _exposure_kl,
    "exposure_rate": _exposure_rate,
    "pop_rsp": _pop_rsp,
    "pooled_recall": _pooled_recall,
    "pop_reo": _pop_reo,
}


def _aggregate(aligned: _Aligned, key: MetricKey) -> Aggregate:
    if METRICS[key.name].kind == "catalogue":
        return _OF_CATALOGUE[key.name](aligned, key)
    values = aligned.per_user(key.name, key.k, key.item_group)
    values = values[aligned.in_user_group(key.user_group) & ~np.isnan(values)]
    return (float(values.mean()) if len(values) else float("nan")), len(values)
