"""From log files to a `.cgraph` folder, within bounded memory and in bounded steps.

Memory holds the identifiers, a few counts per user and item, and a block of some million pairs.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from caged._version import __version__
from caged.data.cgraph.arrays import GrowingArray, mapped, offsets_of
from caged.data.cgraph.by_item import write_by_item
from caged.data.cgraph.dividing import Divider, SplitAs
from caged.data.cgraph.filtering import FilteredPairs, core_of, count_ascending, store_pairs
from caged.data.cgraph.layout import (
    DEVELOPMENT,
    FILES,
    FORMAT,
    GRAPH_PARTS,
    ITEM_OFFSETS,
    ITEMS,
    ITEMS_BY_USER,
    MANIFEST,
    SUFFIX,
    USER_OFFSETS,
    USERS,
    USERS_BY_ITEM,
    VERSION,
    checksum,
)
from caged.data.ids import Array, IdMap
from caged.data.readers.columns import Columns
from caged.data.readers.files import check_counts
from caged.data.sorted_rows import Fingerprint, SortedRows, sort_log
from caged.data.splits.kinds import without_timestamps
from caged.errors import DataError
from caged.files import new_folder, refuse_filled_folder, write_json
from caged.progress import ProgressReport, unreported


@dataclass(frozen=True)
class ImportedGraph:
    manifest: dict[str, Any]
    seconds: Mapping[str, float]  # by phase


def import_graph(
    logs: Iterable[str | Path],
    out: str | Path,
    *,
    columns: Columns | None = None,
    split: SplitAs | None = None,
    min_rating: float | None = None,
    k_core: int | None = None,
    progress: ProgressReport = unreported,
) -> ImportedGraph:
    """Import one or several files (names may hold wildcards) as one log, split, into the new folder `out`.

    The parts equal what `caged data split` makes of the same log with the same options.
    """
    folder, columns, split = Path(out), columns or Columns(), split or SplitAs()
    logs = list(logs)
    _check_options(folder, columns)
    phases = Phases(progress)
    with new_folder(folder) as temporary:
        work = temporary / "work"
        work.mkdir()
        where = ", ".join(map(str, logs[:3])) + (", ..." if len(logs) > 3 else "")
        rows = sort_log(logs, columns, work, phases, leave_out=_not_needed(split, min_rating))
        pairs = _stored(rows, work, where, columns, split, min_rating, k_core, phases)
        divided = _divide(rows, pairs, split, temporary, phases)
        check_counts(len(divided.user_ids), len(divided.item_ids), where)
        _write_second_order(divided, temporary, phases)
        shutil.rmtree(work)
        _write_ids(temporary / USERS, "user_id", divided.user_ids)
        _write_ids(temporary / ITEMS, "item_id", divided.item_ids)
        phases("checksums", None)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "caged": __version__,
            "users": len(divided.user_ids),
            "items": len(divided.item_ids),
            "interactions": {name: int(part.user_degrees.sum()) for name, part in divided.parts.items()},
            "merged_duplicates": rows.rows - pairs.pairs.distinct,
            "filters": {"min_rating": min_rating, "k_core": k_core},
            "split": divided.described,
            "fingerprints": divided.fingerprints,
            "notes": rows.notes,
            "sources": rows.sources,
            "files": {
                name: {"bytes": (temporary / name).stat().st_size, "sha256": checksum(temporary / name)}
                for name in FILES
            },
        }
        write_json(temporary / MANIFEST, manifest)
    return ImportedGraph(manifest, phases.seconds())


def _check_options(folder: Path, columns: Columns) -> None:
    if folder.suffix != SUFFIX:
        raise DataError(f"a graph folder needs a name that ends in {SUFFIX}, and {folder} does not; add it")
    if columns.keep:
        raise DataError(
            f"a graph holds pairs and no further columns, so '{columns.keep[0]}' cannot be kept; leave --keep out, or "
            f"import into a folder whose name does not end in {SUFFIX}"
        )
    refuse_filled_folder(folder)


def _not_needed(split: SplitAs, min_rating: float | None) -> tuple[str, ...]:
    """Columns that change nothing: among duplicates, the latest stays only where its rating or time is asked for."""
    if min_rating is None:
        return ("rating",) if split.needs_times else ("rating", "timestamp")
    return ()


def _stored(
    rows: SortedRows,
    work: Path,
    where: str,
    columns: Columns,
    split: SplitAs,
    min_rating: float | None,
    k_core: int | None,
    progress: ProgressReport,
) -> FilteredPairs:
    if split.needs_times and "timestamp" not in rows.schema.names:
        raise without_timestamps(split.kind)
    stored = store_pairs(
        rows,
        work,
        with_times=split.needs_times,
        min_rating=min_rating,
        where=where,
        rating_column=columns.rating,
        progress=progress,
    )
    return FilteredPairs(stored, core_of(stored, k_core, where, progress))


@dataclass(frozen=True, eq=False)
class _Part:
    user_degrees: Array
    item_degrees: Array


@dataclass(frozen=True, eq=False)
class _Divided:
    user_ids: IdMap
    item_ids: IdMap
    parts: dict[str, _Part]
    fingerprints: dict[str, str]
    described: dict[str, Any]


def _divide(rows: SortedRows, pairs: FilteredPairs, split: SplitAs, folder: Path, progress: ProgressReport) -> _Divided:
    """Write the items of every user to the parts they go to."""
    progress("splitting", 0.0)
    user_ids, item_ids = _left(rows.users.ids, pairs.core.users), _left(rows.items.ids, pairs.core.items)
    divider: Divider = split.divider(pairs, _time_unit(rows.schema))
    prints = {name: Fingerprint(user_ids, item_ids) for name in (*GRAPH_PARTS, DEVELOPMENT)}
    parts = {
        name: _Part(np.zeros(len(user_ids), dtype=np.int64), np.zeros(len(item_ids), dtype=np.int64))
        for name in GRAPH_PARTS
    }
    done = 0
    with ExitStack() as stack:
        files = {}
        for name in GRAPH_PARTS:
            (folder / name).mkdir()
            files[name] = stack.enter_context(GrowingArray(folder / name / ITEMS_BY_USER, np.int32))
        for block in pairs.blocks():
            in_valid, in_test = divider(block)
            for name, chosen in (("train", ~in_valid & ~in_test), ("valid", in_valid), ("test", in_test)):
                users, items = block.users[chosen], block.items[chosen]
                files[name].append(items)
                count_ascending(parts[name].user_degrees, users)
                parts[name].item_degrees[:] += np.bincount(items, minlength=len(item_ids))
                prints[name].update(users, items)
            prints[DEVELOPMENT].update(block.users[~in_test], block.items[~in_test])
            done += len(block.users)
            progress("splitting", done / len(pairs))
    for name, part in parts.items():
        np.save(folder / name / USER_OFFSETS, offsets_of(part.user_degrees))
    counted = [[getattr(part, side) for part in parts.values()] for side in ("user_degrees", "item_degrees")]
    return _Divided(
        user_ids,
        item_ids,
        parts,
        {name: value.hexdigest() for name, value in prints.items()},
        {"kind": split.kind, "parameters": dict(divider.parameters), "notes": divider.notes(*counted)},
    )


def _time_unit(schema: pa.Schema) -> str:
    if "timestamp" not in schema.names:
        return "s"
    kind = schema.field("timestamp").type
    return str(kind.unit) if pa.types.is_timestamp(kind) else "s"


def _left(ids: IdMap, kept: Array) -> IdMap:
    return ids if kept.all() else IdMap(ids.external(np.flatnonzero(kept)))


def _write_second_order(divided: _Divided, folder: Path, progress: ProgressReport) -> None:
    for name, part in divided.parts.items():
        place = folder / name
        items = mapped(place / ITEMS_BY_USER)
        offsets = offsets_of(part.user_degrees)
        by_item = write_by_item(offsets, items, part.item_degrees, place / USERS_BY_ITEM, progress, name)
        np.save(place / ITEM_OFFSETS, by_item)


def _write_ids(path: Path, name: str, ids: IdMap) -> None:
    """In one batch, so that it can be mapped as one array."""
    table = pa.table({name: ids.values})
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


@dataclass
class Phases:
    """A report of progress that also remembers how long each kind of work took."""

    report: ProgressReport
    _spent: dict[str, float] = field(default_factory=dict)
    _current: str | None = None
    _since: float = field(default_factory=time.perf_counter)

    def __call__(self, what: str, share: float | None, /) -> None:
        self._enter(what.partition(":")[0])
        self.report(what, share)

    def _enter(self, phase: str | None) -> None:
        """What came before the first report belongs to the first phase."""
        if phase == self._current:
            return
        now = time.perf_counter()
        if self._current is not None:
            self._spent[self._current] = self._spent.get(self._current, 0.0) + now - self._since
            self._since = now
        self._current = phase

    def seconds(self) -> dict[str, float]:
        self._enter(None)
        return {phase: round(spent, 3) for phase, spent in self._spent.items()}
