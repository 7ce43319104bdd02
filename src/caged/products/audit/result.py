"""`AuditResult`: everything an audit found out, for pages, tables, gates and comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import pyarrow as pa

from caged.data.ids import Array, IdMap
from caged.data.popularity import POPULAR_SHARE
from caged.evaluation.basis import Basis
from caged.evaluation.bootstrap import Interval
from caged.evaluation.metrics import MetricKey
from caged.products.audit.evidence import Evidence


class Exposure(NamedTuple):
    """Per row of the catalogue; what the charts are drawn from."""

    item_ids: IdMap
    degrees: Array  # training users
    popular: Array  # bool
    bucket: Array  # 0..9, most popular first
    relevant: Array | None  # times relevant in the test part, None without one
    shown: Mapping[int, Array]  # k -> number of lists that name the item among their first k


class ExampleItem(NamedTuple):
    item_id: str
    title: str | None
    degree: int
    popular: bool
    relevant: bool  # in the test part of this user


class ExampleUser(NamedTuple):
    """One user to look at: what they had, what they were shown."""

    user_id: str
    group: str | None  # niche-taste, diverse, blockbuster
    profile: tuple[ExampleItem, ...]  # the most telling few of the training items
    profile_size: int
    shown: tuple[ExampleItem, ...]


class ChosenGroup(NamedTuple):
    """A group that somebody chose. The shares are those of all interactions or places; users have none."""

    name: str
    key: str  # as metric keys name it
    size: int  # items, or users of the report
    history: float = math.nan
    places: float = math.nan  # the first k of all lists, at the first k
    wanted: float = math.nan


class ChosenFamily(NamedTuple):
    name: str
    key: str
    of_users: bool
    groups: tuple[ChosenGroup, ...]


class GateOutcome(NamedTuple):
    """What became of a gate, for the page."""

    expression: str
    failed: bool
    reason: str


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Everything an audit found out. Undefined values are NaN; a key without an interval is absent in `intervals`."""

    name: str  # of what was audited, for titles
    ks: tuple[int, ...]
    metrics: dict[str, float]
    users: dict[str, int]  # behind each key
    intervals: dict[str, Interval]
    counts: dict[str, int]  # users, items, rows, and every counted treatment of odd input
    notes: tuple[str, ...]  # a sentence per treatment that happened, and warnings
    evidence: Evidence  # what the accuracy rests on
    exposure: Exposure
    examples: tuple[ExampleUser, ...]
    per_user: pa.Table | None  # user_id, user_group and the per-user keys; None where too large to keep
    fingerprints: dict[str, str]  # of train, valid, test
    protocol: str | None = None
    command: str = ""
    further: dict[str, AuditResult] = field(default_factory=dict)  # the same lists against other tests, by name
    sums: pa.Table | None = None  # user_id and the numerators and denominators of the pooled keys
    bucket_mass: tuple[int, ...] = ()  # training interactions per popularity bucket
    withheld: dict[str, str] = field(default_factory=dict)  # why a key that could have an interval has none
    titles: Mapping[str, str] = field(default_factory=dict)  # of items, by id as text, as far as known
    basis: Basis | None = None  # what it was measured with
    gates: tuple[GateOutcome, ...] = ()  # conditions that somebody set, and whether they were met
    floors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # what random choice and popularity reach
    problems: tuple[str, ...] = ()  # among the notes: the input is wrong as a whole, so no gate may pass
    families: tuple[ChosenFamily, ...] = ()  # of groups that somebody chose

    @property
    def share(self) -> Fraction:
        """Of the items with training interactions that are popular."""
        return POPULAR_SHARE if self.basis is None else self.basis.share

    @property
    def keys(self) -> list[MetricKey]:
        return [MetricKey.parse(key) for key in self.metrics]
