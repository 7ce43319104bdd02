"""Tables that sort items or users into groups: an identifier and one column per family of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.arguments import described
from caged.data.families import MOST_GROUPS, NO_GROUP, Family
from caged.data.ids import Array, IdMap, is_text
from caged.data.readers.columns import Column, Columns, ids_of, listed, need_column, refuse_repeated
from caged.data.readers.files import arrow_table, line_finder, read_table, suffix_of
from caged.errors import ConfigError, DataError

Kind = Literal["item", "user"]
SEPARATORS = ("|", ";", ",")  # that people write between the groups of one item
NO_FAMILIES = ("title",)  # columns that are never meant
# What identifiers are called elsewhere; compared in lower case without underscores.
KNOWN_IDS = {"item": ("itemid", "item", "iid", "movieid", "productid"), "user": ("userid", "user", "uid", "customerid")}


@dataclass(frozen=True, eq=False)
class GroupTable:
    """The families of one file or frame; their rows are those of `ids`."""

    kind: Kind
    where: str
    ids: IdMap
    families: tuple[Family, ...]
    notes: tuple[str, ...] = ()


def read_groups(source: Any, kind: Kind, columns: Columns, separator: Any = None) -> GroupTable:
    """From `FILE`, `FILE:COLUMN,COLUMN` or a frame.

    A column makes a family, its values the groups. Named ones have to be fit for it; of a file without names every
    column is taken that is. A list column puts a row into several groups, and so does text in which `separator` stands.
    """
    if separator is not None and not (isinstance(separator, str) and separator):
        raise ConfigError(f"the group separator is {described(separator)}; give the text between two groups, such as |")
    path, wanted = _path_and_columns(source)
    where = f"the frame of {kind} groups" if path is None else str(path)
    id_name = columns.item if kind == "item" else columns.user
    chosen = _GroupColumns(ids=columns.ids, id_name=id_name, kind=kind, wanted=wanted)
    if path is None:
        table = arrow_table(source)
        table = table.select(chosen.find(table.column_names, where))
    else:
        table = read_table(path, chosen, f"table of {kind} groups")
    if table.num_rows == 0:
        raise DataError(f"{where} holds no {kind}s; give a table with a row per {kind}, or leave it out")
    name = chosen.identifier(table.column_names)
    line_of = None if path is None else line_finder(path)
    ids, rows = IdMap.numbered(ids_of(Column(table[name], name, where, line_of=line_of), columns.ids))
    taken = (
        []
        if name in (id_name, f"{kind}_id")
        else [f"{where}: '{name}' was taken for the {kind}s by its name; name another one with --{kind}-column."]
    )
    families, notes = _families(
        table.drop_columns([name]), _Rows(kind, where, ids, rows), separator, named=bool(wanted)
    )
    return GroupTable(kind, where, ids, tuple(families), (*taken, *notes))


def _path_and_columns(source: Any) -> tuple[Path | None, tuple[str, ...]]:
    """`movies.csv:genre,decade` is a file and two columns, unless a file of that very name exists."""
    if not isinstance(source, str | Path):
        return None, ()
    text = str(source)
    file, colon, names = text.rpartition(":")
    if Path(text).exists() or not colon or suffix_of(Path(file)) is None:
        return Path(text), ()
    wanted = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    if not all(wanted):
        raise ConfigError(f"'{text}' names an empty column; write FILE:COLUMN or FILE:COLUMN,COLUMN")
    return Path(file), wanted


@dataclass(frozen=True)
class _GroupColumns(Columns):
    """The identifier and the columns that were asked for, or all others."""

    id_name: str = ""
    kind: Kind = "item"
    wanted: tuple[str, ...] = ()

    def find(self, found: Sequence[str], where: str, *, hint: str = "") -> list[str]:
        identifier = self.identifier(found)
        fix = f"{'or ' if hint else ''}rename the column of the {self.kind}s, or name it with --{self.kind}-column"
        need_column(identifier, found, where, fix=fix, hint=hint)
        others = [name for name in found if name != identifier and name.lower() not in NO_FAMILIES]
        for name in self.wanted:
            need_column(name, found, where, fix=f"name one of the others behind {where}:")
        read = [identifier, *(self.wanted or others)]
        refuse_repeated([name for name in found if name in read], where)
        if len(read) == 1:
            raise DataError(
                f"{where} has no column but '{identifier}', found: {listed(found)}; add one that says the group of "
                f"each {self.kind}"
            )
        return read

    def identifier(self, found: Sequence[str]) -> str:
        """As in the logs, or the usual name, or a well-known one."""
        usual = Columns.item if self.kind == "item" else Columns.user
        known = [name for name in found if name.lower().replace("_", "") in KNOWN_IDS[self.kind]]
        return next((name for name in (self.id_name, usual, *known) if name in found), self.id_name)

    def identifiers(self, found: Sequence[str]) -> tuple[str, ...]:
        return (self.identifier(found),)


# -------------------------------------------------------------------- from columns to families


class _Rows(NamedTuple):
    """Whom the rows of a table are about."""

    kind: Kind
    where: str
    ids: IdMap
    rows: Array  # per row of the table, in `ids`


class _Unfit(Exception):  # noqa: N818 - whether it is an error depends on who chose the column
    """Why a column makes no family."""


def _families(table: pa.Table, about: _Rows, separator: str | None, *, named: bool) -> tuple[list[Family], list[str]]:
    found, unfit, notes = [], [], []
    for name in table.column_names:
        column = Column(table[name], name, about.where)
        try:
            family = _family(column, about, separator)
        except _Unfit as problem:
            if named:
                raise DataError(f"{about.where}: column '{name}' {problem}") from problem
            unfit.append(f"column '{name}' {problem}")
            continue
        found.append(family)
        several = next((group for group in family.groups if "|" in group), None)
        if several is not None and separator is None:
            notes.append(
                f"{about.where}: '{several}' in column '{name}' is one group; --group-separator '|' makes it several."
            )
    if not found:
        raise DataError(f"{about.where} has no column that sorts {about.kind}s into groups: {'; '.join(unfit)}")
    return found, [*(f"{about.where}: {problem}: left out." for problem in unfit), *notes]


def _family(column: Column, about: _Rows, separator: str | None) -> Family:
    places, texts = _texts(column, separator)
    names = sorted(pc.unique(texts).to_pylist())
    if not names:
        raise _Unfit("holds no value; choose another column")
    if len(names) > MOST_GROUPS:
        raise _Unfit(_too_many(column, texts, len(names), separator))
    codes = pc.index_in(texts, value_set=pa.array(names, type=texts.type)).to_numpy()
    masks = np.zeros(len(about.rows), dtype=np.uint64)  # the groups of a row, a bit for each: at most 64
    np.bitwise_or.at(masks, places, np.uint64(1) << codes.astype(np.uint64))
    return Family(column.name, tuple(names), _labels(_of_each(masks, about, column.name, names), len(names)))


def _texts(column: Column, separator: str | None) -> tuple[Array, pa.Array]:
    """The groups as text, and the row of the table in which each stands; what is empty is left out."""
    values, places = column.values, np.arange(len(column.values))
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type):
        places = pc.list_parent_indices(values).to_numpy()
        values = pc.list_flatten(values)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
    texts = _as_text(values)
    if separator is not None and is_text(values.type):
        parts = pc.split_pattern(texts, separator)
        places, texts = places[pc.list_parent_indices(parts).to_numpy()], pc.list_flatten(parts)
    texts = pc.utf8_trim_whitespace(texts)
    there = pc.fill_null(pc.not_equal(texts, ""), False)
    return places[there.to_numpy(zero_copy_only=False)], texts.filter(there)


def _as_text(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = values.cast(pa.float64())
        numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
        whole = pc.fill_null(pc.and_(pc.equal(pc.trunc(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53)), False)
        if pc.all(pc.or_(whole, numbers.is_null())).as_py():  # a frame's way with integers and missing values
            numbers = numbers.cast(pa.int64())
        return numbers.cast(pa.large_string())
    simple = is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind)
    if not simple and not pa.types.is_null(kind):
        raise _Unfit(f"has type {kind}; groups are text, whole numbers, or lists of these")
    return values.cast(pa.large_string())


def _too_many(column: Column, texts: pa.Array, count: int, separator: str | None) -> str:
    example = texts[0].as_py()
    if pa.types.is_floating(column.values.type) or pa.types.is_integer(column.values.type):
        return (
            f"holds {count:,} different numbers (such as {example}) where at most {MOST_GROUPS} groups are allowed; "
            f"cut them into bands first, such as 18-24"
        )
    fits = separator is None and next((one for one in SEPARATORS if _groups_split_by(texts, one) <= MOST_GROUPS), None)
    hint = f"; if '{fits}' stands between several groups, say so with --group-separator '{fits}'" if fits else ""
    shown = example if len(example) <= 40 else f"{example[:40]}..."
    return (
        f"holds {count:,} different values (such as {shown!r}) where at most {MOST_GROUPS} groups are allowed; choose "
        f"another column, or merge the rare ones{hint}"
    )


def _groups_split_by(texts: pa.Array, separator: str) -> int:
    return len(pc.unique(pc.utf8_trim_whitespace(pc.list_flatten(pc.split_pattern(texts, separator)))))


def _of_each(masks: Array, about: _Rows, name: str, groups: Sequence[str]) -> Array:
    """The groups of each identifier; several rows about one have to agree, apart from those that say nothing."""
    merged = np.zeros(len(about.ids), dtype=np.uint64)
    np.bitwise_or.at(merged, about.rows, masks)
    contradicting = (masks != 0) & (masks != merged[about.rows])
    if contradicting.any():
        row = about.rows[int(contradicting.argmax())]
        said = [_named(mask, groups) for mask in np.unique(masks[(about.rows == row) & (masks != 0)])[:2]]
        raise DataError(
            f"{about.where}: {about.kind} {about.ids.values[int(row)].as_py()!r} has {name} {said[0]} in one row and "
            f"{said[1]} in another; keep one row per {about.kind}, where it has several groups as a list, or as text "
            f"with --group-separator"
        )
    return merged


def _named(mask: Any, groups: Sequence[str]) -> str:
    return " and ".join(repr(group) for code, group in enumerate(groups) if int(mask) >> code & 1)


def _labels(masks: Array, groups: int) -> Array:
    members = [np.flatnonzero((masks >> np.uint64(code)) & np.uint64(1)) for code in range(groups)]
    taken = np.zeros(len(masks), dtype=np.int64)
    for rows in members:
        taken[rows] += 1
    labels = np.full((int(taken.max(initial=1)), len(masks)), NO_GROUP, dtype=np.int8)
    taken[:] = 0
    for code, rows in enumerate(members):
        labels[taken[rows], rows] = code
        taken[rows] += 1
    return labels
