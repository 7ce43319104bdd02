"""The tables per user of an evaluation, read back: what was measured of each, and what each adds to pooled metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caged.data.ids import Array, IdMap
from caged.data.popularity import USER_GROUPS
from caged.errors import RunError
from caged.evaluation.metrics import MetricKey, Sum


def write_user_table(table: pa.Table | Iterable[pa.Table], where: Path | BinaryIO) -> None:
    """With checksums: a value that is not the one that was written cannot be read back. Of a table in parts, each
    becomes a row group, and only one is held at a time."""
    parts = iter([table] if isinstance(table, pa.Table) else table)
    part = next(parts)
    with pq.ParquetWriter(where, part.schema, compression="zstd", write_page_checksum=True) as writer:
        writer.write_table(part)
        for part in parts:
            writer.write_table(part)


class UserTable:
    """A table with a row per user; of a file, each column is read once, when it is asked for."""

    def __init__(self, schema: pa.Schema, read: Callable[[str], pa.ChunkedArray]) -> None:
        self.schema = schema
        self._read = read
        self._columns: dict[str, pa.ChunkedArray] = {}

    @classmethod
    def of_file(cls, path: Path) -> UserTable:
        with _readable(path):
            file = pq.ParquetFile(path, page_checksum_verification=True)

        def read(name: str) -> pa.ChunkedArray:
            with _readable(path):
                found = file.read(columns=[name])[name]
                if len(found) != file.metadata.num_rows:  # the header of a page has no checksum
                    raise OSError(f"{len(found)} of {file.metadata.num_rows} rows")
                return found

        return cls(file.schema_arrow, read)

    @classmethod
    def of_table(cls, table: pa.Table) -> UserTable:
        return cls(table.schema, table.column)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        if name not in self._columns:
            if name not in self.schema.names:
                raise RunError(
                    f"the stored values per user lack the column '{name}'; evaluate again to compare this metric"
                )
            self._columns[name] = self._read(name)
        return self._columns[name]

    @cached_property
    def users(self) -> Users:
        return Users(*IdMap.numbered(self["user_id"]))

    def values_of(self, key: MetricKey) -> Array:
        """Of a mean over users: NaN for users without a value, and outside the user group of the key if it has one."""
        values = np.asarray(self[key.of_each_user].to_numpy(), dtype=np.float64)
        if key.user_group is None:
            return values
        return np.where(self.members(key.user_group), values, np.nan)

    def members(self, group: str) -> Array:
        """Which rows are in a group of users, built in or chosen."""
        member = pc.equal(self["user_group"], group) if group in USER_GROUPS else self[group]
        return np.asarray(pc.fill_null(member, False).to_numpy(), dtype=bool)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise RunError(f"{path} is not readable ({error}); restore it, or evaluate again") from error


@dataclass(frozen=True, eq=False)
class Users:
    """Who the rows of a table belong to."""

    ids: IdMap
    numbers: Array  # of each row, in `ids`

    def __len__(self) -> int:
        return len(self.numbers)

    def taken(self, rows: Array) -> Users:
        return Users(self.ids, self.numbers[rows])

    def shared_with(self, other: Users) -> tuple[Array, Array]:
        """Rows of this one and of `other` that belong to the same users, in the order of this one."""
        row_of = np.full(len(other.ids) + 1, -1)  # the last one is that of nobody
        row_of[other.numbers] = np.arange(len(other))
        place = row_of[other.ids.rows(self.ids.values)][self.numbers]
        rows = np.flatnonzero(place >= 0)
        return rows, place[rows]


@dataclass(frozen=True, eq=False)
class StoredUsers:
    """What a run or an audit has per user, as the rows of metrics ask for it; both tables list the same users."""

    per_user: UserTable
    sums: UserTable

    @property
    def users(self) -> Users:
        return self.sums.users

    def members(self, group: str) -> Array:
        return self.per_user.members(group)

    def groups_of(self, family: str) -> list[str]:
        """In the order in which they were stored."""
        names = [name.partition("/")[2] for name in self.sums.schema.names if f"/{family}=" in name]
        return list(dict.fromkeys(names))

    def per_user_of(self, key: MetricKey) -> Array:
        return np.asarray(self.per_user[key].to_numpy(), dtype=np.float64)

    @property
    def bucket_mass(self) -> Array:
        """Training interactions per popularity bucket; empty in folders that do not hold them."""
        stored = (self.sums.schema.metadata or {}).get(b"bucket_mass", b"").decode()
        return np.array([int(count) for count in stored.split(",") if count])

    def sum_of(self, part: Sum, k: int, group: str = "") -> Array:
        """(users,), or (users, buckets) of a sum that is stored bucket by bucket."""
        name = part.name(k, group)
        buckets = [column for column in self.sums.schema.names if column.startswith(f"{name}/")]
        if buckets and name not in self.sums.schema.names:
            return np.column_stack([self.sums[f"{name}/{number}"].to_numpy() for number in range(len(buckets))])
        return np.asarray(self.sums[name].to_numpy(), dtype=np.float64)
