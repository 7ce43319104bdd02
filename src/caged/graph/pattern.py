"""The user-item graph as a fixed pattern of edges."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from caged.data.ids import Array
from caged.data.interactions import Interactions
from caged.errors import DataError
from caged.graph.kernels import CpuLayout, SparseLayout
from caged.graph.operators import Engine

DEFAULT_ENGINE = Engine()
INT32_MAX = torch.iinfo(torch.int32).max


@dataclass(frozen=True, eq=False)
class BipartiteGraph:
    """Edges sorted by (user, item), as CSR rows of users and, through a permutation, as CSR rows of items.

    Edge e (user-major) joins `users[e]` and `items[e]`. Position p of the item-major order holds edge `by_item[p]`,
    whose user is `item_users[p]`. Indices are int32 where they fit, int64 otherwise.
    """

    user_count: int
    item_count: int
    users: Tensor  # (E,)  user of each edge, ascending
    items: Tensor  # (E,)  item of each edge, ascending within a user
    user_offsets: Tensor  # (M + 1,)
    by_item: Tensor  # (E,)  user-major edge numbers in item-major order
    item_users: Tensor  # (E,)  users[by_item]
    item_offsets: Tensor  # (N + 1,)
    engine: Engine = DEFAULT_ENGINE  # how propagation over it is computed

    @classmethod
    def from_interactions(
        cls, train: Interactions, device: torch.device | str = "cpu", engine: Engine = DEFAULT_ENGINE
    ) -> BipartiteGraph:
        return cls.from_edges(train.users, train.items, train.user_count, train.item_count, device, engine)

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
        if len(users) == 0:
            raise DataError("the training part has no interactions; a graph needs at least one")
        fits = max(len(users), user_count, item_count) < INT32_MAX
        index = np.int32 if fits else np.int64
        by_item = np.argsort(items, kind="stable")  # stable keeps users ascending within an item

        def tensor(values: Array) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values, dtype=index)).to(device)

        def offsets(rows: Array, count: int) -> Tensor:
            return tensor(np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count)))))

        return cls(
            user_count=user_count,
            item_count=item_count,
            users=tensor(users),
            items=tensor(items),
            user_offsets=offsets(users, user_count),
            by_item=tensor(by_item),
            item_users=tensor(users[by_item]),
            item_offsets=offsets(items, item_count),
            engine=engine,
        )

    @property
    def edge_count(self) -> int:
        return len(self.users)

    @property
    def device(self) -> torch.device:
        return self.users.device

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
