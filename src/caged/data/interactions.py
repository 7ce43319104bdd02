"""`Interactions`: the set of (user, item) pairs that everything else is built from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.arguments import described, instance, instances
from caged.data.ids import Array, IdMap
from caged.data.popularity import ItemGroups, UserGroups
from caged.data.times import TICKS, Times, TimeUnit, in_one_unit
from caged.errors import DataError


@dataclass(frozen=True, eq=False)
class Interactions:
    """Distinct (user, item) pairs in row numbers, sorted by (user, item), with the id maps that name the rows.

    Frozen and validated on construction: past the constructor the rows are in range, sorted and distinct, ratings are
    finite and the optional columns have one value per pair. Parts of one split share their id maps, so that a row
    number means the same user or item everywhere. `columns` holds further per-pair values (such as `source`) that a
    log marks its traffic with. `merged` counts the duplicate rows that were folded into their pair. Timestamps count
    in `timestamp_unit`; seconds unless some of them have fractions. `notes` say what was odd when it was read.
    """

    user_ids: IdMap
    item_ids: IdMap
    users: Array  # int64 (E,)
    items: Array  # int64 (E,)
    rating: Array | None = None  # float64 (E,)
    timestamp: Array | None = None  # int64 (E,)
    columns: Mapping[str, Array] = field(default_factory=dict)
    merged: int = 0
    timestamp_unit: TimeUnit = "s"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.users)
        per_pair = {"items": self.items, "rating": self.rating, "timestamp": self.timestamp, **self.columns}
        for name, values in per_pair.items():
            if values is not None and len(values) != count:
                raise DataError(f"column '{name}' has {len(values)} values for {count} interactions")
        _check_rows("user", self.users, len(self.user_ids))
        _check_rows("item", self.items, len(self.item_ids))
        keys = self.keys
        if count and not bool(np.all(keys[1:] > keys[:-1])):
            raise DataError("interactions must be sorted by (user, item) without repeats; use Interactions.build")
        if self.rating is not None and not bool(np.isfinite(self.rating).all()):
            bad = int(np.flatnonzero(~np.isfinite(self.rating))[0])
            raise DataError(
                f"rating of pair {bad} is {self.rating[bad]}; ratings must be finite numbers, "
                f"remove or repair these rows"
            )
        if self.timestamp_unit not in TICKS:
            raise DataError(f"timestamp_unit is {self.timestamp_unit!r}; allowed are {', '.join(TICKS)}")
        for values in (self.users, *(v for v in per_pair.values() if v is not None)):
            values.setflags(write=False)

    # ---------------------------------------------------------------- construction

    @classmethod
    def build(
        cls,
        users: Array,
        items: Array,
        *,
        user_ids: IdMap,
        item_ids: IdMap,
        rating: Array | None = None,
        timestamp: Array | None = None,
        timestamp_unit: TimeUnit = "s",
        columns: Mapping[str, Array] | None = None,
    ) -> Interactions:
        """Sort pairs and merge duplicates. Of duplicates the latest survives: largest timestamp, then last row."""
        users, items = _as_column("users", users, np.int64), _as_column("items", items, np.int64)
        rating = None if rating is None else _as_column("rating", rating, np.float64)
        timestamp = None if timestamp is None else _integers(timestamp)
        for name, values in {
            "item": items,
            "rating": rating,
            "timestamp": timestamp,
            **(columns or {}),
        }.items():
            if values is not None and len(values) != len(users):
                raise DataError(f"column '{name}' has {len(values)} values for {len(users)} users, one per row needed")
        # Before pairs become one number each: a row outside its range would pass for another, valid pair.
        _check_rows("user", users, len(user_ids))
        _check_rows("item", items, len(item_ids))
        key = users * len(item_ids) + items
        if rating is None and timestamp is None and not columns:
            return cls._from_keys(key, user_ids, item_ids)
        order = np.argsort(key, kind="stable") if timestamp is None else np.lexsort((timestamp, key))
        key = key[order]
        last_of_pair = np.ones(len(key), dtype=bool)
        last_of_pair[:-1] = key[1:] != key[:-1]
        keep = order[last_of_pair]

        def kept(values: Array | None) -> Array | None:
            return None if values is None else np.asarray(values)[keep]

        return cls(
            user_ids=user_ids,
            item_ids=item_ids,
            users=users[keep],
            items=items[keep],
            rating=kept(rating),
            timestamp=kept(timestamp),
            columns={name: np.asarray(values)[keep] for name, values in (columns or {}).items()},
            merged=len(key) - len(keep),
            timestamp_unit=timestamp_unit,
        )

    @classmethod
    def _from_keys(cls, key: Array, user_ids: IdMap, item_ids: IdMap) -> Interactions:
        """Where nothing but the pairs is kept, duplicates cannot be told apart: sorting without an order is faster."""
        ascending = np.sort(key)
        distinct = ascending[np.diff(ascending, prepend=-1) > 0]
        users, items = np.divmod(distinct, max(len(item_ids), 1))
        return cls(user_ids, item_ids, users, items, merged=len(key) - len(distinct))

    @classmethod
    def from_ids(
        cls,
        user_ids: Any,
        item_ids: Any,
        *,
        rating: Array | None = None,
        timestamp: Array | None = None,
        timestamp_unit: TimeUnit = "s",
        columns: Mapping[str, Array] | None = None,
    ) -> Interactions:
        """From parallel sequences of external identifiers, one entry per row; `columns` are further values per row."""
        (user_map, users), (item_map, items) = IdMap.numbered(user_ids), IdMap.numbered(item_ids)
        return cls.build(
            users,
            items,
            user_ids=user_map,
            item_ids=item_map,
            rating=rating,
            timestamp=timestamp,
            timestamp_unit=timestamp_unit,
            columns=columns,
        )

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        user_column: str | None = None,
        item_column: str | None = None,
        rating_column: str | None = None,
        timestamp_column: str | None = None,
        keep: Sequence[str] = (),
        ids: Literal["auto", "text"] = "auto",
        min_rating: float | None = None,
        min_user_interactions: int | None = None,
        min_item_interactions: int | None = None,
    ) -> Interactions:
        """Read one log: .csv, .tsv, .parquet, .feather, .jsonl, .txt, .inter, .npz, or an imported folder.

        user_column, item_column: names of these columns; None: user_id and item_id.
        rating_column, timestamp_column: the same; None: rating and timestamp, where the log has them.
        keep: further columns to carry along in `Interactions.columns`, such as a mark of randomised traffic.
        ids: "auto" makes integers of ids that are all integers; "text" takes every id for a name.
        min_rating: leaves out what was rated lower.
        min_user_interactions, min_item_interactions: leave out users and items with fewer, until nothing changes.

        Of several rows of a pair the latest stays. What is odd about the log is said as a warning, and stands in
        `notes`. `docs/data.md` describes the formats.
        """
        from caged.data.readers.files import read_log

        return read_log(
            path,
            user_column=user_column,
            item_column=item_column,
            rating_column=rating_column,
            timestamp_column=timestamp_column,
            keep=keep,
            ids=ids,
            min_rating=min_rating,
            min_user_interactions=min_user_interactions,
            min_item_interactions=min_item_interactions,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user_column: str | None = None,
        item_column: str | None = None,
        rating_column: str | None = None,
        timestamp_column: str | None = None,
        keep: Sequence[str] = (),
        ids: Literal["auto", "text"] = "auto",
        min_rating: float | None = None,
        min_user_interactions: int | None = None,
        min_item_interactions: int | None = None,
    ) -> Interactions:
        """From any frame that speaks the Arrow C stream interface: pandas, polars, pyarrow, DuckDB, ...

        The options are those of `read`.
        """
        from caged.data.readers.files import read_frame

        return read_frame(
            frame,
            user_column=user_column,
            item_column=item_column,
            rating_column=rating_column,
            timestamp_column=timestamp_column,
            keep=keep,
            ids=ids,
            min_rating=min_rating,
            min_user_interactions=min_user_interactions,
            min_item_interactions=min_item_interactions,
        )

    @classmethod
    def from_csr(cls, matrix: Any, user_ids: Any = None, item_ids: Any = None) -> Interactions:
        """From a sparse matrix of scipy, users by items; see `caged.data.readers.sparse.from_csr`."""
        from caged.data.readers.sparse import from_csr

        return from_csr(matrix, user_ids, item_ids)

    # ---------------------------------------------------------------- views

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        merged = f", {self.merged:,} duplicates merged" if self.merged else ""
        return f"Interactions({len(self):,} pairs, {self.user_count:,} users, {self.item_count:,} items{merged})"

    @property
    def user_count(self) -> int:
        return len(self.user_ids)

    @property
    def item_count(self) -> int:
        return len(self.item_ids)

    @property
    def times(self) -> Times | None:
        return None if self.timestamp is None else Times(self.timestamp, self.timestamp_unit)

    @property
    def keys(self) -> Array:
        """user * item_count + item: one sorted int64 per pair, for set operations."""
        return self.users * np.int64(max(self.item_count, 1)) + self.items

    @cached_property
    def user_degrees(self) -> Array:
        return np.bincount(self.users, minlength=self.user_count)

    @cached_property
    def item_degrees(self) -> Array:
        return np.bincount(self.items, minlength=self.item_count)

    @cached_property
    def item_groups(self) -> ItemGroups:
        """Popular and niche items, if these are the training interactions."""
        return ItemGroups.from_degrees(self.item_degrees)

    @cached_property
    def user_groups(self) -> UserGroups:
        return UserGroups.from_interactions(self.users, self.items, self.user_count, self.item_groups)

    @cached_property
    def user_offsets(self) -> Array:
        """CSR row pointers: the items of user u are items[user_offsets[u]:user_offsets[u + 1]]."""
        return np.concatenate(([0], np.cumsum(self.user_degrees)))

    def by_user(self) -> tuple[Array, Array]:
        """`user_offsets` and items; these may be narrower than `items`, where that saves reading them."""
        return self.user_offsets, self.items

    def by_item(self) -> tuple[Array, Array] | None:
        """The offsets of the items and the users of each, ascending; None where nobody has sorted them so."""
        return None

    def select(self, chosen: Array) -> Interactions:
        """The pairs where the boolean mask or sorted positions `chosen` point to, with the same id maps."""
        chosen = _as_chosen(chosen, len(self))
        return replace(
            self,
            users=self.users[chosen],
            items=self.items[chosen],
            rating=None if self.rating is None else self.rating[chosen],
            timestamp=None if self.timestamp is None else self.timestamp[chosen],
            columns={name: values[chosen] for name, values in self.columns.items()},
            merged=0,
        )

    @classmethod
    def joined(cls, parts: Sequence[Interactions]) -> Interactions:
        """The pairs of parts that share their id maps; values that one of them lacks are dropped."""
        parts = instances("parts", parts, Interactions)

        def values(of_parts: Sequence[Array | None]) -> Array | None:
            present = [part for part in of_parts if part is not None]
            return np.concatenate(present) if len(present) == len(of_parts) else None

        timed = [part.times for part in parts if part.times is not None]
        times = in_one_unit(timed) if len(timed) == len(parts) else []
        names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
        whole = cls.build(
            np.concatenate([part.users for part in parts]),
            np.concatenate([part.items for part in parts]),
            user_ids=parts[0].user_ids,
            item_ids=parts[0].item_ids,
            rating=values([part.rating for part in parts]),
            timestamp=np.concatenate([part.values for part in times]) if times else None,
            timestamp_unit=times[0].unit if times else "s",
            columns={name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        )
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        return replace(whole, merged=whole.merged + sum(part.merged for part in parts), notes=notes)

    def reindexed(self, user_ids: IdMap, item_ids: IdMap) -> Interactions:
        """The same pairs in the rows of larger id maps (the catalogue of a whole split)."""
        user_ids, item_ids = instance("user_ids", user_ids, IdMap), instance("item_ids", item_ids, IdMap)
        if user_ids == self.user_ids and item_ids == self.item_ids:
            return self
        users = user_ids.rows(self.user_ids.values)[self.users]
        items = item_ids.rows(self.item_ids.values)[self.items]
        again = Interactions.build(
            users,
            items,
            user_ids=user_ids,
            item_ids=item_ids,
            rating=self.rating,
            timestamp=self.timestamp,
            timestamp_unit=self.timestamp_unit,
            columns=self.columns,
        )
        return replace(again, merged=self.merged, notes=self.notes)

    def with_text_ids(self) -> Interactions:
        """The same pairs with every identifier as text; the order of the rows may change."""
        user_ids, item_ids = (IdMap.of(ids.values.cast(pa.large_string())) for ids in (self.user_ids, self.item_ids))
        return self.reindexed(user_ids, item_ids)

    def to_arrow(self) -> pa.Table:
        """Columns user_id, item_id and whatever else is there, in external identifiers."""
        columns: dict[str, Any] = {
            "user_id": self.user_ids.external(self.users),
            "item_id": self.item_ids.external(self.items),
        }
        if self.rating is not None:
            columns["rating"] = self.rating
        if self.times is not None:
            columns["timestamp"] = arrow_times(self.times)
        columns.update(self.columns)
        return pa.table(columns)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical text: one `user_id<TAB>item_id<LF>` line per pair, in row order.

        It depends on the pairs and on whether their identifiers are integers or text (which decides the row order),
        not on file format, order of the file's rows, ratings or items without interactions.
        """
        digest = hashlib.sha256()
        block = 1 << 20
        tab, newline = pa.scalar("\t", type=pa.large_string()), pa.scalar("\n", type=pa.large_string())
        for start in range(0, len(self), block):
            users = self.user_ids.external(self.users[start : start + block]).cast(pa.large_string())
            items = self.item_ids.external(self.items[start : start + block]).cast(pa.large_string())
            lines = pc.binary_join_element_wise(users, items, tab)
            text = pc.binary_join(pa.LargeListArray.from_arrays([0, len(lines)], lines), newline)[0]
            digest.update(text.as_buffer())
            digest.update(b"\n")
        return digest.hexdigest()


def arrow_times(times: Times) -> pa.Array:
    """Seconds as integers, which is how most logs have them; finer times as moments, which name their unit."""
    values = pa.array(times.values)
    return values if times.unit == "s" else values.cast(pa.timestamp(times.unit))


def _as_column(name: str, values: Any, kind: type[np.generic]) -> Array:
    try:
        column = np.asarray(values, dtype=kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column '{name}' is {described(values)} ({error}); give a list of numbers") from error
    return _one_dimension(name, column)


def _one_dimension(name: str, column: Array) -> Array:
    if column.ndim != 1:
        raise DataError(f"column '{name}' has {column.ndim} dimensions; give a list of one value per row")
    return column


def _as_chosen(chosen: Any, count: int) -> Array:
    """A boolean mask over all pairs, or positions of some."""
    places = np.asarray(chosen)
    mask = places.dtype == bool and places.shape == (count,)
    inside = places.dtype.kind in "iu" and places.ndim == 1 and bool(((places >= -count) & (places < count)).all())
    if places.shape == (0,):
        return places.astype(np.int64)
    if not mask and not inside:
        raise DataError(
            f"chosen is {described(chosen)}; give a boolean mask of {count} values or positions from 0 to {count - 1}"
        )
    return places


def _check_rows(name: str, rows: Array, size: int) -> None:
    if len(rows) and (rows.min() < 0 or rows.max() >= size):
        raise DataError(f"{name} rows span {rows.min()}..{rows.max()}; allowed are 0..{size - 1}, one per known {name}")


def _integers(timestamp: Array) -> Array:
    values = _one_dimension("timestamp", np.asarray(timestamp))
    if values.dtype.kind not in "iu":
        raise DataError(f"timestamps have type {values.dtype}; allowed are integers, such as epoch seconds")
    return values.astype(np.int64)
