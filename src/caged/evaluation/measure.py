"""`measure`: lists and a reference in, every metric out, per user first and the mean last.

Users are measured in blocks, so that memory does not grow with them; what the metrics need of a block are sums over
its users and how often each item was shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from caged.data.ids import Array
from caged.data.popularity import USER_GROUPS
from caged.errors import ConfigError, DataError, unknown
from caged.evaluation.aligned import Aligned
from caged.evaluation.floors import shown_floors
from caged.evaluation.formulas import PLACES, ItemSum, Shown
from caged.evaluation.groups import Groups
from caged.evaluation.lists import PADDING, Lists, PackedLists
from caged.evaluation.metrics import (
    Mean,
    MetricKey,
    OfItems,
    OfSums,
    Sum,
    UserColumns,
    list_ks,
    list_width,
    metric_keys,
    with_sums,
)
from caged.evaluation.parallel import in_order
from caged.evaluation.reference import Reference
from caged.evaluation.shown import ShownScores

Missing = Literal["zero", "skip"]
BLOCK_PLACES = 1 << 20  # list places that are measured at a time


class Moments(NamedTuple):
    """Of what the users add to a key: sums, and sums of products."""

    sums: Array  # (m,)
    products: Array  # (m, m)

    @property
    def users(self) -> int:
        """How many are behind the value."""
        return int(self.sums[-1])


@dataclass(frozen=True, eq=False)
class Report:
    """Metrics of a set of lists.

    `users` are the rows that have a list or a relevant item, ascending; the arrays of `per_user`, `sums` and
    `user_group` have one entry for each. Undefined values are NaN. `sums` holds the numerators and denominators of the
    pooled metrics, so that these can be computed again for any selection of the users. Above the `per_user_limit` of
    `measure` there are no `per_user` and no `sums`; `moments` then hold what intervals need.
    """

    users: Array
    metrics: dict[str, float]
    users_per_metric: dict[str, int]
    per_user: dict[str, Array]
    sums: dict[str, Array]
    counts: dict[str, int]
    user_group: Array  # int8, an index into USER_GROUPS or -1
    exposures: dict[int, Array] = field(default_factory=dict)  # k -> number of lists with the item in their first k
    bucket_mass: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # training interactions per bucket
    moments: dict[str, Moments] = field(default_factory=dict)
    groups: Groups | None = None  # that somebody chose
    floors: dict[str, dict[str, float]] = field(default_factory=dict)  # see `shown_floors`; of the keys that have some

    @property
    def keys(self) -> list[MetricKey]:
        return [MetricKey.parse(key) for key in self.metrics]

    def members(self, group: str) -> Array:
        """Which of the users are in a group."""
        if self.groups is None or group in USER_GROUPS:
            return np.asarray(self.user_group == USER_GROUPS.index(group))
        return self.groups.users_in(group, self.users)

    def groups_of(self, family: str) -> Sequence[str]:
        return () if self.groups is None else self.groups.names.items[family]

    def per_user_of(self, key: MetricKey) -> Array:
        return self.per_user[key]

    def sum_of(self, part: Sum, k: int, group: str = "") -> Array:
        return self.sums[part.name(k, group)]


def measure(
    lists: Lists | PackedLists,
    reference: Reference,
    ks: Sequence[int] = (20,),
    *,
    metrics: Sequence[str] | None = None,
    missing: Missing = "zero",
    per_user_limit: int | None = None,
    scores: Array | None = None,
) -> Report:
    """Every metric at each of `ks`, or only the keys in `metrics` (such as `recall@20/niche`; `ks` is then not read).

    A user with relevant items and without a list counts as an empty list (accuracy 0) or, with `missing="skip"`, is
    left out; `counts["users_relevant_without_list"]` is their number either way. The report keeps the values of every
    user, unless there are more than `per_user_limit`. `scores` are those of `reference.candidates`, for the keys that
    rest on what was shown at random.
    """
    if missing not in ("zero", "skip"):
        raise ConfigError(unknown("treatment of missing lists", missing, ("zero", "skip")))
    keys = _requested(ks, metrics, reference.groups)
    _check_rows(lists, reference)
    users = _users_of(lists, reference, missing)
    kept = per_user_limit is None or len(users) <= per_user_limit
    candidates = reference.candidates
    shown = None if candidates is None or scores is None else ShownScores(candidates, scores)
    tally = _Tally(keys, reference, keep_per_user=kept)
    width = min(list_width(keys), int(lists.lengths.max(initial=0)))

    def measured(rows: Array) -> _Measured:
        # As NumPy wants its indices; else each of the many look-ups would convert them again.
        return tally.measured(Aligned(reference, rows, _padded(lists, rows, width).astype(np.intp), shown))

    for _, block in in_order(measured, _blocks(users, width)):
        tally.add(block)
    report = tally.report(users, _counts(lists, reference, sorted(list_ks(keys))))
    return report if shown is None else replace(report, floors=shown_floors(reference, shown.candidates, keys, users))


def _requested(ks: Sequence[int], metrics: Sequence[str] | None, groups: Groups) -> list[MetricKey]:
    if metrics is not None:
        return [MetricKey.parse(text) for text in metrics]
    if not ks or min(ks) < 1:
        raise ConfigError(f"ks is {list(ks)}; give at least one cut-off, each at least 1")
    return metric_keys(dict.fromkeys(ks), groups.names)


def _check_rows(lists: Lists | PackedLists, reference: Reference) -> None:
    if len(lists) and lists.users[-1] >= reference.user_count:
        raise DataError(
            f"lists name user row {lists.users[-1]}; the reference has the rows 0..{reference.user_count - 1}"
        )
    if lists.items.size and lists.items.max() >= reference.item_count:
        raise DataError(
            f"lists name item row {lists.items.max()}; the catalogue has the rows 0..{reference.item_count - 1}"
        )


def _counts(lists: Lists | PackedLists, reference: Reference, ks: Sequence[int]) -> dict[str, int]:
    lengths = lists.lengths
    listed = lists.users[lengths > 0]
    both = int(np.count_nonzero(reference.relevant_counts[None][listed]))
    return {
        "users_listed": len(listed),
        "users_relevant": len(reference.relevant_users),
        "users_relevant_without_list": len(reference.relevant_users) - both,
        "users_listed_without_relevant": len(listed) - both,
        **_shown_counts(reference),
        **{f"lists_shorter_than@{k}": int(np.count_nonzero((lengths > 0) & (lengths < k))) for k in ks},
    }


def _shown_counts(reference: Reference) -> dict[str, int]:
    if reference.shown is None or reference.candidates is None:
        return {}
    return {
        "shown_liked": len(reference.shown.liked),
        "shown_not_liked": len(reference.shown.not_liked),
        "users_shown_both": len(reference.candidates.users),
    }


# -------------------------------------------------------------------- blocks of users


def _users_of(lists: Lists | PackedLists, reference: Reference, missing: Missing) -> Array:
    listed = lists.users[lists.lengths > 0]
    if missing == "skip":
        return listed
    reported = reference.relevant_counts[None] > 0
    reported[listed] = True
    return np.flatnonzero(reported)


def _blocks(users: Array, width: int) -> Iterator[Array]:
    """Some thousands at a time; at least one block, be it empty."""
    size = max(1, BLOCK_PLACES // max(width, 1))
    for start in range(0, max(len(users), 1), size):
        yield users[start : start + size]


def _padded(lists: Lists | PackedLists, users: Array, width: int) -> Array:
    """The lists of these users, padding throughout for those that have none."""
    if len(users) == 0:
        return np.empty((0, width), dtype=lists.items.dtype)
    start, stop = (int(place) for place in np.searchsorted(lists.users, [users[0], users[-1] + 1]))
    items, listed = lists.block(start, stop, width), lists.users[start:stop]
    if items.shape == (len(users), width):  # then these are the users: both are ascending, and one holds the other
        return items
    has_list = (items[:, :1] != PADDING).any(axis=1)
    padded = np.full((len(users), width), PADDING, dtype=items.dtype)
    padded[np.searchsorted(users, listed[has_list]), : items.shape[1]] = items[has_list]
    return padded


# -------------------------------------------------------------------- sums over blocks


@dataclass(eq=False)
class _Block:
    """The users of one block and what was computed of them, each thing once."""

    aligned: Aligned
    per_user: dict[str, Array] = field(default_factory=dict)
    sums: dict[str, Array] = field(default_factory=dict)

    @property
    def groups(self) -> Groups:
        return self.aligned.reference.groups

    def members(self, group: str) -> Array:
        return self.groups.users_in(group, self.aligned.users)

    def groups_of(self, family: str) -> Sequence[str]:
        return self.groups.names.items[family]

    def per_user_of(self, key: MetricKey) -> Array:
        if key not in self.per_user:
            formula = key.metric.formula
            assert isinstance(formula, Mean), f"{key} has no value per user"
            self.per_user[key] = formula.of_user(self.aligned, key.k, key.group)
        return self.per_user[key]

    def sum_of(self, part: Sum, k: int, group: str = "") -> Array:
        name = part.name(k, group)
        if name not in self.sums:
            self.sums[name] = part.of_lists(self.aligned, k, group)
        return self.sums[name]


_OfItem = tuple[str, int]  # the name of an `ItemSum` and a cut-off


class _Measured(NamedTuple):
    """What is left of a block."""

    moments: dict[str, Moments]
    shown: dict[_OfItem, Array]
    listed_users: int
    per_user: dict[str, Array]
    sums: dict[str, Array]


class _Tally:
    """Sums for each key, how much items were shown, and perhaps values per user, of all blocks so far."""

    def __init__(self, keys: Sequence[MetricKey], reference: Reference, *, keep_per_user: bool) -> None:
        self.keys, self.reference, self.keep_per_user = keys, reference, keep_per_user
        self.formulas = with_sums(keys)
        self.moments: dict[str, Moments] = {}
        self.item_sums = {(part.name, key.k): part for key in keys if (part := _item_sum(key)) is not None}
        self.shown: dict[_OfItem, Array] = {}
        self.listed_users = 0
        self.per_user: list[dict[str, Array]] = []
        self.sums: list[dict[str, Array]] = []

    def measured(self, aligned: Aligned) -> _Measured:
        """Everything about one block; changes nothing, so that blocks can be measured at the same time."""
        block = _Block(aligned)
        moments: dict[str, Moments] = {
            key: moments_of(key, formula, block, with_products=not self.keep_per_user)
            for key, formula in self.formulas.items()
        }
        shown = {(name, k): part.of_lists(aligned, k) for (name, k), part in self.item_sums.items()}
        kept = (block.per_user, block.sums) if self.keep_per_user else ({}, {})
        return _Measured(moments, shown, int(aligned.has_list.sum()), *kept)

    def add(self, block: _Measured) -> None:
        for key, moments in block.moments.items():
            self.moments[key] = _added(self.moments[key], moments) if key in self.moments else moments
        for place, shown in block.shown.items():
            self.shown[place] = self.shown[place] + shown if place in self.shown else shown
        self.listed_users += block.listed_users
        self.per_user.append(block.per_user)
        self.sums.append(block.sums)

    def report(self, users: Array, counts: dict[str, int]) -> Report:
        values = {key: self._value(key) for key in self.keys}
        return Report(
            users=users,
            metrics={key: value for key, (value, _) in values.items()},
            users_per_metric={key: count for key, (_, count) in values.items()},
            per_user=_joined(self.per_user),
            sums=_joined(self.sums),
            counts=counts,
            user_group=self.reference.user_groups.label[users],
            exposures={k: shown for (name, k), shown in self.shown.items() if name == PLACES.name},
            bucket_mass=self.reference.item_groups.bucket_mass,
            moments={} if self.keep_per_user else self.moments,
            groups=self.reference.chosen,
        )

    def _value(self, key: MetricKey) -> tuple[float, int]:
        """The value and the number of users behind it."""
        formula = key.metric.formula
        if isinstance(formula, OfItems):
            members = None if key.group is None else self.reference.groups.items_in(key.group)
            shown = Shown(self.shown[formula.shown.name, key.k], self.listed_users, members)
            return formula.value(shown), self.listed_users
        moments = self.moments[key]
        formula = formula.fitted(len(moments.sums))
        return float(formula.value(moments.sums, self.reference.item_groups.bucket_mass)), moments.users


def _item_sum(key: MetricKey) -> ItemSum | None:
    formula = key.metric.formula
    return formula.shown if isinstance(formula, OfItems) else None


def moments_of(key: MetricKey, formula: OfSums, users: UserColumns, *, with_products: bool = True) -> Moments:
    parts = columns_of(key, formula, users)
    sums = np.array([float(part.sum()) for part in parts])  # one by one: NumPy adds long columns pairwise, tables not
    if not with_products:
        return Moments(sums, np.zeros((0, 0)))
    if len(parts) == 2:  # a mean: values that are 0 where undefined, and which are defined
        return Moments(sums, np.array([[np.square(parts[0]).sum(), sums[0]], [sums[0], sums[1]]]))
    table = np.stack(parts, dtype=np.float64)
    # Not a matrix product: blocks are measured on several threads, and BLAS would start its own in each of them.
    return Moments(sums, np.einsum("in,jn->ij", table, table))


def columns_of(key: MetricKey, formula: OfSums, users: UserColumns) -> list[Array]:
    """What each user adds, one array per sum."""
    return [column for part in formula.adds(users, key) for column in (part.T if part.ndim == 2 else [part])]


def _added(a: Moments, b: Moments) -> Moments:
    return Moments(a.sums + b.sums, a.products + b.products)


def _joined(blocks: Sequence[dict[str, Array]]) -> dict[str, Array]:
    if len(blocks) == 1:
        return blocks[0]
    return {key: np.concatenate([block[key] for block in blocks]) for key in (blocks[0] if blocks else {})}
