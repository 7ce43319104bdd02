"""The user-item graph as a fixed pattern of edges."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.errors import DataError
from caged.graph.by_item import ItemRows, check_range, item_rows
from caged.graph.kernels import CpuLayout, SparseLayout
from caged.graph.operators import Engine

DEFAULT_ENGINE = Engine()
INT32_MAX = torch.iinfo(torch.int32).max
COPIED_AT_ONCE = 2**26  # numbers of an array that are converted at a time


@dataclass(frozen=True, eq=False)
class BipartiteGraph:
    """Edges sorted by (user, item), as CSR rows of users and as CSR rows of items: two numbers per edge.

    Rows are int32 where their ids fit, offsets where the number of edges does, int64 otherwise. What else there is of
    an edge is made when it is first asked for, and kept: `users`, `by_item`.
    """

    user_count: int
    item_count: int
    items: Tensor  # (E,)  item of each edge, ascending within a user
    user_offsets: Tensor  # (M + 1,)
    item_users: Tensor  # (E,)  user of each edge in item-major order, ascending within an item
    item_offsets: Tensor  # (N + 1,)
    engine: Engine = DEFAULT_ENGINE  # how propagation over it is computed

    @classmethod
    def from_interactions(
        cls, train: Interactions, device: torch.device | str = "cpu", engine: Engine = DEFAULT_ENGINE
    ) -> BipartiteGraph:
        offsets, items = train.by_user()
        return cls.from_rows(offsets, items, train.item_count, device, engine, by_item=train.by_item())

    @classmethod
    def from_edges(
        cls,
        users: Array,
        items: Array,
        user_count: int,
        item_count: int,
        device: torch.device | str = "cpu",
        engine: Engine = DEFAULT_ENGINE,
    ) -> BipartiteGraph:
        """From distinct edges sorted by (user, item)."""
        offsets = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=user_count))))
        return cls.from_rows(offsets, items, item_count, device, engine)

    @classmethod
    def from_rows(
        cls,
        user_offsets: Array | Tensor,
        items: Array | Tensor,
        item_count: int,
        device: torch.device | str = "cpu",
        engine: Engine = DEFAULT_ENGINE,
        *,
        by_item: tuple[Array, Array] | None = None,
    ) -> BipartiteGraph:
        """From CSR rows: the items of user u are items[user_offsets[u] : user_offsets[u + 1]], ascending, each once.

        Arrays, memory maps among them, or tensors on any device, of any integer type. What has the right type (int32,
        or int64 for offsets of more than 2^31 edges) and lies on the device is taken as it is, not copied: it must not
        change afterwards. The rest goes there in pieces. Beside the graph, which is 8 bytes per edge, building it takes
        a few GiB at most, however many edges there are.

        `by_item` are the same edges as CSR rows of items, where somebody has sorted them before: offsets and users.
        """
        if len(items) == 0:
            raise DataError("the training part has no interactions; a graph needs at least one")
        user_count = len(user_offsets) - 1
        offset_type = torch.int32 if len(items) < INT32_MAX else torch.int64
        row_type = torch.int32 if max(user_count, item_count) < INT32_MAX else torch.int64
        offsets = _placed(user_offsets, offset_type, device)
        if int(offsets[0]) != 0 or int(offsets[-1]) != len(items) or bool((offsets[1:] < offsets[:-1]).any()):
            raise DataError(
                f"the offsets of a graph's rows have to rise from 0 to its {len(items)} interactions, but they go from "
                f"{int(offsets[0])} to {int(offsets[-1])} or fall in between; write the rows again"
            )
        placed = _placed(items, row_type, device)
        if by_item is None:
            rows = item_rows(offsets, placed, item_count)
        else:
            rows = ItemRows(_placed(by_item[0], offset_type, device), _placed(by_item[1], row_type, device))
            check_range(placed, item_count, "item")
            check_range(rows.users, user_count, "user")
        return cls(user_count, item_count, placed, offsets, rows.users, rows.offsets, engine)

    @cached_property
    def users(self) -> Tensor:
        """(E,)  user of each edge, ascending."""
        return torch.repeat_interleave(self.user_degrees.to(self.items.dtype), output_size=self.edge_count)

    @cached_property
    def by_item(self) -> Tensor:
        """(E,)  user-major edge numbers in item-major order: position p holds the edge of user `item_users[p]`."""
        return torch.sort(self.items, stable=True).indices.to(self.user_offsets.dtype)

    @property
    def edge_count(self) -> int:
        return len(self.items)

    @property
    def device(self) -> torch.device:
        return self.items.device

    @cached_property
    def user_degrees(self) -> Tensor:
        return self.user_offsets.diff()

    @cached_property
    def item_degrees(self) -> Tensor:
        return self.item_offsets.diff()

    def to(self, device: torch.device | str) -> BipartiteGraph:
        tensors = {f.name: getattr(self, f.name).to(device) for f in fields(self) if f.type == "Tensor"}
        return replace(self, **tensors)

    @cached_property
    def cpu_layout(self) -> CpuLayout:
        return CpuLayout(self, torch.get_num_threads())

    @cached_property
    def sparse_layout(self) -> SparseLayout:
        return SparseLayout(self)


def _placed(values: Array | Tensor, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """As a contiguous tensor of this type on the device; itself where it is one already."""
    if isinstance(values, np.ndarray):
        with warnings.catch_warnings():  # that a read-only array could be written to: nobody does
            warnings.filterwarnings("ignore", message=".*not writable.*", category=UserWarning)
            values = torch.from_numpy(values)
    if values.dtype == dtype and values.device == torch.empty(0, device=device).device and values.is_contiguous():
        return values
    placed = torch.empty(len(values), dtype=dtype, device=device)
    for first in range(0, len(values), COPIED_AT_ONCE):
        piece = slice(first, first + COPIED_AT_ONCE)
        placed[piece] = values[piece].to(dtype)
    return placed
