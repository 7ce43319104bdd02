"""From a `.cgraph` folder to its parts, without reading the pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from caged.data.cgraph.arrays import mapped
from caged.data.cgraph.layout import (
    DEVELOPMENT,
    GRAPH_PARTS,
    ITEM_OFFSETS,
    ITEMS,
    ITEMS_BY_USER,
    SMALL,
    USER_OFFSETS,
    USERS,
    USERS_BY_ITEM,
    check_checksum,
    read_manifest,
)
from caged.data.cgraph.pairs import MappedInteractions
from caged.data.ids import Array, IdMap
from caged.data.readers.columns import Columns
from caged.errors import DataError


@dataclass(frozen=True, eq=False)
class OpenedGraph:
    parts: Mapping[str, MappedInteractions]
    manifest: dict[str, Any]


def open_graph(folder: Path, *, columns: Columns | None = None, min_rating: float | None = None) -> OpenedGraph:
    """The parts of a graph folder. What could have been chosen at the import cannot be chosen any more."""
    if (columns is not None and columns != Columns()) or min_rating is not None:
        raise DataError(
            f"{folder} is an imported graph, which has no columns to name or keep and no ratings to filter by; leave "
            f"these options out here, and give them to caged data import"
        )
    manifest = read_manifest(folder)
    for name in SMALL:  # everything else is looked up by what these say
        check_checksum(folder, name, manifest)
    user_ids, item_ids = _ids(folder / USERS), _ids(folder / ITEMS)
    for ids, kind in ((user_ids, "users"), (item_ids, "items")):
        if len(ids) != manifest[kind]:
            raise DataError(f"{folder} has {len(ids):,} {kind}, its manifest says {manifest[kind]:,}; import it again")
    parts = {name: _part(folder, name, user_ids, item_ids, manifest) for name in GRAPH_PARTS}
    return OpenedGraph(parts, manifest)


def _part(folder: Path, name: str, user_ids: IdMap, item_ids: IdMap, manifest: dict[str, Any]) -> MappedInteractions:
    place = folder / name
    count = manifest["interactions"][name]
    return MappedInteractions.over(
        user_ids,
        item_ids,
        _offsets(place / USER_OFFSETS, len(user_ids), count),
        _array(place / ITEMS_BY_USER, np.int32, count),
        _offsets(place / ITEM_OFFSETS, len(item_ids), count),
        _array(place / USERS_BY_ITEM, np.int32, count),
        fingerprint=manifest["fingerprints"][name],
        merged=manifest["merged_duplicates"] if name == "train" else 0,
        place=place.resolve(),
        development=None if name == "test" else manifest["fingerprints"][DEVELOPMENT],
    )


def _offsets(path: Path, rows: int, count: int) -> Array:
    offsets = np.array(_array(path, np.int64, rows + 1))  # in memory: they are asked for all the time
    if offsets[0] != 0 or offsets[-1] != count or bool((np.diff(offsets) < 0).any()):
        raise DataError(f"{path} does not hold the offsets of {count:,} pairs; import the log again")
    offsets.setflags(write=False)
    return offsets


def _array(path: Path, kind: type[np.generic], length: int) -> Array:
    try:
        values = mapped(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); import the log again") from error
    if values.dtype != kind or values.shape != (length,):
        raise DataError(
            f"{path} holds {values.dtype} of shape {values.shape}, not {np.dtype(kind)} of shape ({length},); import "
            f"the log again"
        )
    return values


def _ids(path: Path) -> IdMap:
    try:
        with ipc.open_file(pa.memory_map(str(path))) as file:
            column = file.read_all().column(0)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read ({str(error).splitlines()[0][:200]}); import the log again") from error
    return IdMap(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())
