"""What an audit compares lists with: train, perhaps valid, tests and an item table; files, folders or frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from caged.data.ids import IdMap
from caged.data.interactions import Interactions
from caged.data.known import DATASETS, dataset_in
from caged.data.matching import check_kinds
from caged.data.parts import NOT_LIKED
from caged.data.readers.canonical import is_canonical
from caged.data.readers.columns import Column, Columns, ids_of, need_column, refuse_repeated
from caged.data.readers.files import (
    DEFAULT_COLUMNS,
    arrow_table,
    line_finder,
    read_frame_part,
    read_part,
    read_table,
    reader_for,
)
from caged.data.readers.folders import read_part_files
from caged.data.shown import SOURCE
from caged.data.source import Source, holds_part_files, load
from caged.data.splits.kinds import Split
from caged.errors import DataError

Log = Any  # a path, the name of a dataset, a frame, Interactions, Split or Source


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The parts as they were read; `joined_by` puts them on shared id maps."""

    train: Interactions
    valid: Interactions | None
    test: Interactions | None
    further: Mapping[str, Interactions] = field(default_factory=dict)
    catalogue: IdMap | None = None  # of the item table
    titles: Mapping[str, str] = field(default_factory=dict)  # by item id as text
    not_liked: Interactions | None = None  # what was shown at random; `test` holds what was liked

    @property
    def parts(self) -> dict[str, Interactions]:
        named = {"train": self.train, "valid": self.valid, "test": self.test, NOT_LIKED: self.not_liked, **self.further}
        return {name: part for name, part in named.items() if part is not None}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd when the logs were read."""
        return tuple(f"{name}: {note}." for name, part in self.parts.items() for note in part.notes)

    @cached_property
    def user_ids(self) -> IdMap:
        return IdMap.union(part.user_ids for part in self.parts.values())

    @cached_property
    def item_ids(self) -> IdMap:
        listed = [] if self.catalogue is None else [self.catalogue]
        return IdMap.union([*(part.item_ids for part in self.parts.values()), *listed])

    def joined_by(self, users: IdMap, items: IdMap) -> AuditInputs:
        """All parts in the rows of one catalogue, together with the users and items that only lists name."""
        user_ids = IdMap.union([self.user_ids, users]) if len(users) else self.user_ids
        item_ids = IdMap.union([self.item_ids, items]) if len(items) else self.item_ids

        def moved(part: Interactions | None) -> Interactions | None:
            return None if part is None else part.reindexed(user_ids, item_ids)

        return replace(
            self,
            train=self.train.reindexed(user_ids, item_ids),
            valid=moved(self.valid),
            test=moved(self.test),
            not_liked=moved(self.not_liked),
            further={name: part.reindexed(user_ids, item_ids) for name, part in self.further.items()},
        )


def read_inputs(
    train: Log,
    *,
    valid: Log | None = None,
    test: Log | None = None,
    test_negative: Log | None = None,
    further_tests: Mapping[str, Log] | None = None,
    items: Any = None,
    columns: Columns = DEFAULT_COLUMNS,
    min_rating: float | None = None,
) -> AuditInputs:
    """Read everything. Where `train` is already split, its other parts are taken unless others are given."""
    how = _Reading(columns, min_rating)
    given = _parts_of(train, "train", how)
    if test is not None:
        given.pop(NOT_LIKED, None)  # it belongs to another test
    # Beside what was not liked, the source says which of the test pairs were shown at random.
    marked = how if test_negative is None else replace(how, columns=columns.keeping_if_there(SOURCE))
    unfiltered = replace(marked, min_rating=None)  # what was not liked may be rated as low as it is
    held_out = {
        name: given.get(name) if source is None else _part(source, name, reading)
        for name, source, reading in (
            ("valid", valid, how),
            ("test", test, marked),
            (NOT_LIKED, test_negative, unfiltered),
        )
    }
    if held_out[NOT_LIKED] is not None and held_out["test"] is None:
        raise DataError("what was shown and not liked is given without a test part with what was liked; give it too")
    if "train" not in given:
        raise DataError("the split given as train has no training part; give the log that the recommender learned from")
    catalogue, titles = (None, {}) if items is None else _item_table(items, columns)
    inputs = AuditInputs(
        given["train"],
        held_out["valid"],
        held_out["test"],
        {name: _part(source, "test", how) for name, source in (further_tests or {}).items()},
        catalogue,
        titles,
        held_out[NOT_LIKED],
    )
    check_kinds(inputs.train, inputs.parts, inputs.catalogue)
    return inputs


@dataclass(frozen=True)
class _Reading:
    """How files and frames are read."""

    columns: Columns = DEFAULT_COLUMNS
    min_rating: float | None = None


def _parts_of(source: Log, alone: str, how: _Reading) -> dict[str, Interactions]:
    """What a source holds, by part; a plain log is the part `alone`."""
    if isinstance(source, Interactions):
        return {alone: source}
    if isinstance(source, Split):
        return dict(source.parts)
    if isinstance(source, str | Path):
        path = Path(source)
        if str(source) not in DATASETS and (path.suffix or path.exists()) and (path.is_file() or is_canonical(path)):
            return {alone: read_part(path, columns=how.columns, min_rating=how.min_rating)}
        if str(source) not in DATASETS and dataset_in(path) is None and holds_part_files(path):
            return {alone: read_part_files(path, columns=how.columns, min_rating=how.min_rating)}
        if str(source) not in DATASETS and not path.is_dir():
            reader_for(path)  # says that it does not exist, or what is wrong with its name
        source = load(source, columns=how.columns, min_rating=how.min_rating)
    if isinstance(source, Source):
        return {alone: source.log} if source.log is not None else dict(source.parts or {})
    return {alone: read_frame_part(source, columns=how.columns, min_rating=how.min_rating)}


def _part(source: Log, name: str, how: _Reading) -> Interactions:
    parts = _parts_of(source, name, how)
    if name not in parts:
        raise DataError(f"what was given as {name} has no {name} part, only {', '.join(parts)}; give the {name} file")
    return parts[name]


# ---------------------------------------------------------------- the item table


_ITEM_NAMES = ("item_id", "product_id")
_TITLE_NAMES = ("title", "name", "product_name")


@dataclass(frozen=True)
class _ItemColumns(Columns):
    """The identifier, called as in the logs or as usual, and a title where there is one."""

    def find(self, found: Sequence[str], where: str, *, hint: str = "") -> list[str]:
        item = self.identifier(found)
        title = next((name for name in _TITLE_NAMES if name in found), None)
        read = [item, *([title] if title else [])]
        refuse_repeated([name for name in found if name in read], where)
        need_column(item, found, where, fix="an item table needs one, rename it", hint=hint)
        return read

    def identifiers(self, found: Sequence[str]) -> tuple[str, ...]:
        return (self.identifier(found),)

    def identifier(self, found: Sequence[str]) -> str:
        return next((name for name in (self.item, *_ITEM_NAMES) if name in found), self.item)


def _item_table(items: Any, logs: Columns) -> tuple[IdMap, dict[str, str]]:
    where = str(items) if isinstance(items, str | Path) else "the frame of items"
    columns = _ItemColumns(item=logs.item, ids=logs.ids)
    table = read_table(Path(items), columns, "item table") if isinstance(items, str | Path) else arrow_table(items)
    table = table.select(columns.find(table.column_names, where))
    if table.num_rows == 0:
        raise DataError(f"{where} holds no items; leave the item table out, or give one with a row per item")
    line_of = line_finder(Path(items)) if isinstance(items, str | Path) else None
    name, *title = table.column_names
    ids = ids_of(Column(table[name], name, where, line_of=line_of), logs.ids)
    if not title:
        return IdMap.of(ids), {}
    names, titles = ids.cast(pa.large_string()).to_pylist(), table[title[0]].to_pylist()
    return IdMap.of(ids), {name: str(title) for name, title in zip(names, titles, strict=True) if title}
