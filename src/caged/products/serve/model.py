"""An artefact in memory: arrays that are mapped, identifiers that are found, scores of one person."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caged.data.ids import Array, is_text
from caged.errors import ConfigError, RunError
from caged.products.serve.manifest import Manifest
from caged.products.serve.moments import Moments

USERS, ITEMS = "users.arrow", "items.arrow"
_SURROGATES = re.compile("[\ud800-\udfff]")
FEW = 100  # names are looked up one by one
LISTED = 200_000  # of more names no list is kept


class Names:
    """Identifiers in the order of their rows, which is ascending; found without a table of their own."""

    def __init__(self, values: pa.Array) -> None:
        self.values = values
        self.are_text = is_text(values.type)
        self._numbers: Array | None = None if self.are_text else _numbers(values)
        self._listed_type = None if len(values) > LISTED else str if self.are_text else int

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> str | int:
        name: str | int = self.values[row].as_py() if self._numbers is None else int(self._numbers[row])
        return name

    def row(self, name: Any) -> int:
        """-1 where there is no such name; text that names an integer finds it, and an integer finds its text."""
        if type(name) is self._listed_type:
            return self._row_of.get(name, -1)
        if self._numbers is not None:
            return self._number_row(name)
        if isinstance(name, bool) or not isinstance(name, str | int):
            return -1
        wanted = str(name).encode(errors="surrogatepass")
        place = bisect_left(range(len(self)), wanted, key=lambda row: self.values[row].as_buffer().to_pybytes())
        return place if place < len(self) and self.values[place].as_py() == str(name) else -1

    def _number_row(self, name: Any) -> int:
        assert self._numbers is not None
        if isinstance(name, str) and name.isascii() and name.lstrip("-").isdecimal() and str(int(name)) == name:
            name = int(name)
        if isinstance(name, bool) or not isinstance(name, int) or not -(2**63) <= name < 2**63:
            return -1
        place = int(np.searchsorted(self._numbers, name))
        return place if place < len(self) and int(self._numbers[place]) == name else -1

    def rows(self, names: Sequence[Any]) -> Array:
        """`row` of many."""
        if len(names) < FEW or self._numbers is not None:
            return np.array([self.row(name) for name in names], dtype=np.int64)
        texts = [_as_text(name) for name in names]
        found = pc.index_in(pa.array(texts, self.values.type), value_set=self.values)
        return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)

    def at(self, rows: Array) -> list[str | int]:
        """The names of some rows."""
        if len(self) > LISTED:
            found: list[str | int] = self.values.take(_arrow_rows(rows)).to_pylist()
            return found
        listed = self._listed
        return [listed[row] for row in rows.tolist()]

    @cached_property
    def _row_of(self) -> dict[str | int, int]:
        return {name: row for row, name in enumerate(self._listed)}

    @cached_property
    def _listed(self) -> list[str | int]:
        """All of them as Python has them: answers name many."""
        found: list[str | int] = self.values.to_pylist()
        return found


@dataclass(frozen=True, eq=False)
class ServedModel:
    """What answers requests. Arrays belong to files; nobody writes to them."""

    folder: Path
    manifest: Manifest
    users: Names
    items: Names
    item_table: pa.Table  # item_id, degree, title, attributes
    arrays: dict[str, Array]

    @classmethod
    def load(cls, folder: Path, *, check: bool = True) -> ServedModel:
        """By memory map. `check` reads every file once, for its checksum."""
        manifest = Manifest.read(folder)
        if check:
            manifest.check_files(folder)
        try:
            names = [name for name in manifest.files if name.endswith(".npy")]
            # As plain arrays, which are indexed faster than np.memmap.
            arrays = {name.removesuffix(".npy"): np.asarray(np.load(folder / name, mmap_mode="r")) for name in names}
            users, items = (_mapped(folder / name) for name in (USERS, ITEMS))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RunError(f"{folder} cannot be read ({error}); export the run again") from error
        model = cls(
            folder,
            manifest,
            Names(users["user_id"].combine_chunks()),
            Names(items["item_id"].combine_chunks()),
            items,
            arrays,
        )
        model._check_sizes()
        return model

    def _check_sizes(self) -> None:
        sizes = {"users": len(self.users), "items": len(self.items)}
        for what, size in sizes.items():
            if size != getattr(self.manifest, what):
                raise RunError(
                    f"{self.folder} names {size:,} {what}, its manifest says otherwise; export the run again"
                )
        if self.manifest.kind == "vectors":
            shapes = (self.arrays["user_vectors"].shape, self.arrays["item_vectors"].shape)
            if shapes != tuple((size, self.manifest.width) for size in sizes.values()):
                raise RunError(f"{self.folder} holds vectors of the shapes {shapes}; export the run again")

    # ---------------------------------------------------------------- what is known of items and people

    @cached_property
    def log_popularity(self) -> Array:
        return np.asarray(np.log1p(self.degrees), dtype=np.float32)

    @cached_property
    def degrees(self) -> Array:
        return _numbers(self.item_table["degree"].combine_chunks())

    @cached_property
    def popularity_ranks(self) -> Array:
        """(N,): 1 for the item that most people had."""
        ranks = np.empty(len(self.items), dtype=np.int64)
        ranks[self.by_popularity] = np.arange(1, len(ranks) + 1)
        return ranks

    @cached_property
    def by_popularity(self) -> Array:
        """Rows of items, most popular first."""
        return np.argsort(-self.degrees, kind="stable")

    @cached_property
    def titles(self) -> pa.ChunkedArray | None:
        return self.item_table["title"].cast(pa.string()) if "title" in self.item_table.column_names else None

    def titles_at(self, rows: Array) -> list[str | None]:
        """None for every row where there are none."""
        if self.titles is None:
            return [None] * len(rows)
        if self._listed_titles is not None:
            return [self._listed_titles[row] for row in rows.tolist()]
        found: list[str | None] = self.titles.take(_arrow_rows(rows)).to_pylist()
        return found

    @cached_property
    def _listed_titles(self) -> list[str | None] | None:
        return self.titles.to_pylist() if self.titles is not None and len(self.items) <= LISTED else None

    def prepare(self) -> None:
        """Make what is made once."""
        _ = self.log_popularity, self.popularity_ranks
        self.items.at(np.arange(min(1, len(self.items))))
        self.titles_at(np.arange(min(1, len(self.items))))
        if self.manifest.kind == "vectors":
            _ = self.item_vectors
        if self.manifest.fold_in is not None:
            _ = self.moments

    def seen(self, user: int) -> Array:
        offsets = self.arrays["seen_offsets"]
        found: Array = self.arrays["seen_items"][offsets[user] : offsets[user + 1]]
        return found

    def trained_on(self, user: int) -> Array:
        """Of what somebody has had: what training saw."""
        offsets = self.arrays["seen_offsets"]
        return self.seen(user)[self.arrays["seen_trained"][offsets[user] : offsets[user + 1]]]

    @cached_property
    def item_vectors(self) -> Array:
        """(N, K) float32."""
        return as_float32(self.arrays["item_vectors"])

    @cached_property
    def moments(self) -> Moments:
        """For the spread of the scores of new people."""
        stored = self.arrays.get("item_moments")
        return Moments.of(self.item_vectors) if stored is None else Moments(len(self.items), stored)

    @cached_property
    def to_unit_length(self) -> Array:
        """(N,): by which to multiply the vector of an item; made when first asked for."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.item_vectors, self.item_vectors))
        return np.asarray(np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0))

    def directions(self, rows: Array) -> Array:
        """Item vectors of unit length."""
        return np.asarray(self.item_vectors[rows] * self.to_unit_length[rows, None])

    # ---------------------------------------------------------------- vectors and scores

    def user_vector(self, user: int) -> Array:
        return as_float32(self.arrays["user_vectors"][user])

    def folded(self, items: Array) -> Array:
        """The vector of somebody new with this history, at least one item."""
        how = self.manifest.fold_in
        if how is None:
            raise ConfigError(self.manifest.fold_in_refused or "this artefact knows no new people")
        rows = self.arrays["fold_table"][items] * self.arrays["fold_weights"][items, None]
        vector = rows.sum(axis=0, dtype=np.float32) * np.float32(len(items)) ** np.float32(how.exponent)
        length = float(np.linalg.norm(vector))
        return np.asarray(vector / length if how.by_cosine and length > 0 else vector, dtype=np.float32)

    def scores_of_history(self, items: Array) -> Array:
        """R_u B, for methods that score by weights between items."""
        if self.manifest.kind == "item_weights":
            return np.asarray(self.arrays["item_weights"][items].sum(axis=0, dtype=np.float32))
        return _by_neighbours(self.arrays["neighbours"], self.arrays["similarities"], items, len(self.items))

    def history_rows(self, names: Sequence[Any]) -> tuple[Array, list[Any]]:
        """Rows of the items, each once, and the names that nobody knows."""
        rows = self.items.rows(names)
        return np.unique(rows[rows >= 0]), [names[place] for place in np.flatnonzero(rows < 0).tolist()]


def _as_text(name: Any) -> str | None:
    """None for what is no name: neither text that can be encoded nor an integer."""
    if isinstance(name, bool) or not isinstance(name, str | int):
        return None
    text = str(name)
    return text if text.isascii() or not _SURROGATES.search(text) else None


def _by_neighbours(neighbours: Array, similarities: Array, history: Array, item_count: int) -> Array:
    """Item j adds its similarity to every neighbour of its own list that the person has had."""
    had = np.zeros(item_count, dtype=bool)
    had[history] = True
    return np.asarray(np.where(had[neighbours], similarities, np.float32(0)).sum(axis=1, dtype=np.float32))


def _numbers(values: pa.Array) -> Array:
    """Without a copy, and without `to_numpy`, which imports pandas where it is installed: a fifth of a second."""
    return np.from_dlpack(values)


def _arrow_rows(rows: Array) -> pa.Array:
    """Without `pa.array`, for the same reason."""
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.int64))])


def _mapped(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def as_float32(values: Array) -> Array:
    """Of bfloat16, which numpy does not know, the bits are stored."""
    return (values.astype(np.uint32) << 16).view(np.float32) if values.dtype.kind == "u" else values
