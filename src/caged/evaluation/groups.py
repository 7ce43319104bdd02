"""Which groups metrics are reported for: popular and niche items, taste groups of users, and what somebody chose."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from caged.data.families import Family
from caged.data.ids import Array, IdMap
from caged.data.interactions import Interactions
from caged.data.matching import check_kind
from caged.data.popularity import (
    ITEM_GROUPS,
    POPULAR_SHARE,
    USER_GROUPS,
    ItemGroups,
    UserGroups,
    popular_share,
)
from caged.data.readers.columns import Columns
from caged.data.readers.files import DEFAULT_COLUMNS
from caged.data.readers.group_tables import GroupTable, Kind, read_groups
from caged.errors import ConfigError, DataError
from caged.evaluation.group_names import NONE_CHOSEN, GroupName, GroupNames
from caged.evaluation.item_vectors import ItemVectors, UnitVectors, read_item_vectors


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of the items and users of one catalogue, and the items' vectors where somebody gave them.

    Families are by name, as metric keys write it.
    """

    train: Interactions
    popular_share: Fraction = POPULAR_SHARE
    item_families: Mapping[str, Family] = field(default_factory=dict)
    user_families: Mapping[str, Family] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)  # of what the tables say, by family
    notes: tuple[str, ...] = ()
    vectors: UnitVectors | None = None

    @cached_property
    def items(self) -> ItemGroups:
        if self.popular_share == POPULAR_SHARE:
            return self.train.item_groups
        return ItemGroups.from_degrees(self.train.item_degrees, self.popular_share)

    @cached_property
    def users(self) -> UserGroups:
        if self.popular_share == POPULAR_SHARE:
            return self.train.user_groups
        return UserGroups.from_interactions(self.train.users, self.train.items, self.train.user_count, self.items)

    @cached_property
    def names(self) -> GroupNames:
        if not self.item_families and not self.user_families and self.vectors is None:
            return NONE_CHOSEN
        return GroupNames(
            _named(self.item_families, of_users=False),
            _named(self.user_families, of_users=True),
            vectors=self.vectors is not None,
        )

    def item_family(self, group: str) -> tuple[Family, int]:
        """The family of a chosen group of items, and which of its groups it is."""
        return _found(group, self.item_families)

    def items_in(self, group: str) -> Array:
        """Mask of the items in a group, built in or chosen."""
        if group in ITEM_GROUPS:
            return self.items.member(group)
        family, place = self.item_family(group)
        return family.member(place)

    def users_in(self, group: str, rows: Array) -> Array:
        """Which of these users are in a group, built in or chosen."""
        if group in USER_GROUPS:
            return np.asarray(self.users.label[rows] == USER_GROUPS.index(group))
        family, place = _found(group, self.user_families)
        return np.asarray((family.labels[:, rows] == place).any(axis=0))


def _named(families: Mapping[str, Family], *, of_users: bool) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(str(GroupName(family.name, group, of_users)) for group in family.groups)
        for name, family in families.items()
    }


def _found(group: str, families: Mapping[str, Family]) -> tuple[Family, int]:
    named = GroupName.parse(group)
    family = families.get(str(named._replace(group=None)))
    if family is None or named.group not in family.groups:
        raise ConfigError(f"there is no group '{group}'; give it with --item-groups or --user-groups")
    return family, family.groups.index(named.group)


# -------------------------------------------------------------------- what somebody chose


@dataclass(frozen=True, eq=False)
class Grouping:
    """A share of popular items, tables of groups and vectors, before it is known which catalogue they meet."""

    popular_share: Fraction = POPULAR_SHARE
    tables: tuple[GroupTable, ...] = ()
    vectors: ItemVectors | None = None

    @cached_property
    def names(self) -> GroupNames:
        of_items, of_users = (_named(self._families(kind), of_users=kind == "user") for kind in ("item", "user"))
        return GroupNames(of_items, of_users, vectors=self.vectors is not None)

    def of(self, train: Interactions) -> Groups:
        """In the rows of a catalogue; identifiers that it does not know are left out and told."""
        notes: list[str] = []
        moved: dict[Kind, dict[str, Family]] = {"item": {}, "user": {}}
        for table in self.tables:
            known = train.item_ids if table.kind == "item" else train.user_ids
            rows = _rows_in(table, table.kind, known)
            notes += [*table.notes, *_about_ids(table, table.kind, rows)]
            for family in table.families:
                there = family.at(rows)
                notes += _about_ungrouped(there, table.kind)
                moved[table.kind][_name(family, table.kind)] = there
        checksums = {_name(family, table.kind): _checksum(family, table.ids) for table, family in self._each()}
        vectors = None
        if self.vectors is not None:
            rows = _rows_in(self.vectors, "item", train.item_ids)
            vectors = self.vectors.at(rows)
            notes += [*_about_ids(self.vectors, "item", rows), *vectors.notes]
        return Groups(train, self.popular_share, moved["item"], moved["user"], checksums, tuple(notes), vectors)

    def _families(self, kind: Kind) -> dict[str, Family]:
        return {_name(family, kind): family for table, family in self._each() if table.kind == kind}

    def _each(self) -> Iterable[tuple[GroupTable, Family]]:
        return ((table, family) for table in self.tables for family in table.families)


USUAL = Grouping()


def grouping(
    share: Any = None,
    item_groups: Any = None,
    user_groups: Any = None,
    *,
    separator: Any = None,
    item_vectors: Any = None,
    columns: Columns = DEFAULT_COLUMNS,
) -> Grouping:
    """What the options of a command, or of `caged.audit`, ask for: files and frames, one or several of the groups."""
    tables = [
        read_groups(source, kind, columns, separator)
        for kind, given in _given(item_groups, user_groups)
        for source in given
    ]
    names = [(table.kind, family.name) for table in tables for family in table.families]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two tables of {twice[0]} groups have a column '{twice[1]}'; leave one out or rename it")
    vectors = None if item_vectors is None else read_item_vectors(item_vectors, columns)
    return Grouping(POPULAR_SHARE if share is None else popular_share(share), tuple(tables), vectors)


def _given(item_groups: Any, user_groups: Any) -> list[tuple[Kind, Sequence[Any]]]:
    return [("item", _several(item_groups)), ("user", _several(user_groups))]


def _several(given: Any) -> Sequence[Any]:
    if given is None:
        return ()
    return given if isinstance(given, list | tuple) else (given,)


def _name(family: Family, kind: Kind) -> str:
    return str(GroupName(family.name, None, kind == "user"))


def _rows_in(table: GroupTable | ItemVectors, kind: Kind, known: IdMap) -> Array:
    """Per row of the catalogue the row of the table, -1 where it says nothing about it."""
    check_kind(table.where, f"{kind}_id", table.ids, known)
    rows = table.ids.rows(known.values)
    if not (rows >= 0).any():
        one, other = (ids.values[0].as_py() for ids in (table.ids, known))
        raise DataError(
            f"{table.where} has no {kind} in common with the logs (such as {one!r} here, {other!r} there), so it says "
            f"nothing about them; write the {kind} ids of both alike"
        )
    return rows


def _about_ids(table: GroupTable | ItemVectors, kind: Kind, rows: Array) -> list[str]:
    unknown = len(table.ids) - int(np.count_nonzero(rows >= 0))
    if not unknown:
        return []
    return [f"{table.where}: {unknown:,} of its {len(table.ids):,} {kind}s occur in no log and no list: left out."]


def _about_ungrouped(family: Family, kind: Kind) -> list[str]:
    if not family.ungrouped:
        return []
    return [f"{family.name}: {family.ungrouped:,} of the {len(family):,} {kind}s are in no group and count in none."]


def _checksum(family: Family, ids: IdMap) -> str:
    """Of who is in which group; equal whatever the order and format of a file."""
    digest = hashlib.sha256()
    names = ids.values.cast(pa.large_string())
    for code, group in enumerate(family.groups):
        members = names.filter(pa.array(family.member(code)))
        digest.update(f"{len(group)} {group} {len(members)}\n".encode())
        for name in members:
            text = name.as_py()
            digest.update(f"{len(text)} {text}\n".encode())
    return digest.hexdigest()
