"""`Columns` of several processes, over `torch.distributed`: gloo on CPU, nccl where every rank has a GPU of its own.

What a training step sends: with BPR 2B partial scores and one partial L2 term, in one all-reduce; with the softmax the
own columns of the batch's rows and the L2 term, in one all-gather. Nothing flows back in the backward pass: every rank
computes the same loss from the same sums, so the gradient of a sum is that of each of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from itertools import groupby
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from caged.columns import Columns, Said, column_ranges
from caged.errors import RankLostError, memory_error

WAIT_SECONDS = 1800.0  # for the other ranks, in any message: the first rank also writes checkpoints and measures lists
GATHERED_ROWS = 2**16  # of a table at a time


GoOn = Callable[[], str]  # what to do after another rank was lost, for an error message


@dataclass
class Traffic:
    """What this rank has sent so far, counted as a ring sends it: 2 (P - 1)/P of what is summed, P - 1 times what is
    gathered."""

    messages: int = 0
    sent: float = 0.0  # bytes


class RankColumns(Columns):
    """Columns `own` of `width`, on one of several ranks."""

    def __init__(self, width: int, device: torch.device, go_on: GoOn) -> None:
        """After `torch.distributed.init_process_group`."""
        self._go_on = go_on
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.ranges = column_ranges(width, self.size)
        self.own = self.ranges[self.rank]
        self.width, self.device = width, device
        self.widest = self.ranges[0].stop
        self.backend = dist.get_backend()
        # Objects and checkpoints go from host to host, whatever the tables lie on.
        self._host = dist.group.WORLD if self.backend == "gloo" else dist.new_group(backend="gloo")
        self.traffic = Traffic()

    def leave(self) -> None:
        """Part with the other ranks, after the last message.

        The threads of a group end with the last reference to it. A thread that is still there when Python ends may
        free a tensor then, and the process aborts.
        """
        self._host = None
        dist.destroy_process_group()

    # ---------------------------------------------------------------- in a training step

    def join(self, *partial: Tensor) -> tuple[Tensor, ...]:
        joined: tuple[Tensor, ...] = _Join.apply(self, *partial)  # type: ignore[no-untyped-call]
        return joined

    def whole_rows(self, rows: Sequence[Tensor], partial: Tensor) -> tuple[list[Tensor], Tensor]:
        total, *whole = _WholeRows.apply(self, partial, *rows)  # type: ignore[no-untyped-call]
        return whole, total

    # ---------------------------------------------------------------- without gradients

    @torch.no_grad()
    def whole(self, table: Tensor) -> Tensor:
        whole = table.new_empty(len(table), self.width)
        for start in range(0, len(table), GATHERED_ROWS):
            block = table[start : start + GATHERED_ROWS]
            whole[start : start + GATHERED_ROWS] = self._beside(self.gathered(self._padded(block)), len(block))
        return whole

    def sum_(self, *tensors: Tensor) -> None:
        for _, same in groupby(sorted(tensors, key=lambda part: str(part.dtype)), key=lambda part: part.dtype):
            parts = list(same)
            flat = torch.cat([part.reshape(-1) for part in parts])
            self.reduce_(flat)
            for part, values in zip(parts, flat.split([part.numel() for part in parts]), strict=True):
                part.copy_(values.view_as(part))

    def share(self, count: int) -> slice:
        return column_ranges(count, self.size)[self.rank]

    # ---------------------------------------------------------------- between steps

    def told(self, say: Callable[[], Said]) -> Said:
        said = [say() if self.first else None]
        with _contact(self._go_on):
            dist.broadcast_object_list(said, src=0, group=self._host)
        return said[0]  # type: ignore[return-value]

    def any(self, flag: bool) -> bool:
        count = torch.tensor([int(flag)])
        with _contact(self._go_on):
            dist.all_reduce(count, group=self._host)
        return bool(count.item())

    def collected(self, value: Said) -> list[Said] | None:
        values: list[Any] | None = [None] * self.size if self.first else None
        with _contact(self._go_on):
            dist.gather_object(value, values, dst=0, group=self._host)
        return values

    def joined(self, tensors: Mapping[str, Tensor], by_columns: Collection[str]) -> dict[str, Tensor]:
        whole = {name: self._on_first(value) if name in by_columns else value for name, value in tensors.items()}
        return {name: value for name, value in whole.items() if value is not None}

    def parts(self, tensors: Mapping[str, Tensor], by_columns: Collection[str]) -> dict[str, Tensor]:
        return {name: value[:, self.own].clone() if name in by_columns else value for name, value in tensors.items()}

    def described(self) -> dict[str, Any]:
        return {"devices": self.size, "backend": self.backend}

    # ---------------------------------------------------------------- messages

    def reduce_(self, flat: Tensor) -> None:
        """Replace `flat` by its sum over the ranks."""
        self._count(2 * (self.size - 1) / self.size * flat.nbytes)
        there = self._reachable(flat)
        with _contact(self._go_on):
            dist.all_reduce(there)
        if there is not flat:
            flat.copy_(there)

    def gathered(self, flat: Tensor) -> Tensor:
        """(n,) -> (ranks, n)."""
        self._count((self.size - 1) * flat.nbytes)
        there = self._reachable(flat)
        gathered = there.new_empty(self.size, len(there))
        with _contact(self._go_on):
            dist.all_gather(list(gathered.unbind()), there)
        return gathered.to(flat.device)

    def _count(self, sent: float) -> None:
        self.traffic.messages += 1
        self.traffic.sent += sent

    def _reachable(self, flat: Tensor) -> Tensor:
        """gloo sends what lies on the host."""
        return flat.cpu() if self.backend == "gloo" else flat

    def _padded(self, rows: Tensor) -> Tensor:
        """Rows as wide as the widest rank's, flat: messages of all ranks have one size."""
        if rows.shape[1] == self.widest:
            return rows.reshape(-1)
        padded = rows.new_zeros(len(rows), self.widest)
        padded[:, : rows.shape[1]] = rows
        return padded.view(-1)

    def _beside(self, gathered: Tensor, rows: int) -> Tensor:
        """(ranks, rows * widest) -> (rows, width)."""
        tables = gathered.view(self.size, rows, self.widest)
        return torch.cat([table[:, : own.stop - own.start] for table, own in zip(tables, self.ranges, strict=True)], 1)

    def _on_first(self, table: Tensor) -> Tensor | None:
        """The whole table in the memory of the first rank's host; None on the others."""
        mine = self._padded(table.detach()).cpu()
        parts = [torch.empty_like(mine) for _ in range(self.size)] if self.first else None
        with _contact(self._go_on):
            dist.gather(mine, parts, dst=0, group=self._host)
        return None if parts is None else self._beside(torch.stack(parts), len(table))


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, columns: RankColumns, *partial: Tensor) -> tuple[Tensor, ...]:
        flat = torch.cat([part.reshape(-1) for part in partial])
        columns.reduce_(flat)
        joined = flat.split([part.numel() for part in partial])
        return tuple(values.view_as(part) for values, part in zip(joined, partial, strict=True))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return (None, *gradients)


class _WholeRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, columns: RankColumns, partial: Tensor, *rows: Tensor) -> tuple[Tensor, ...]:
        ctx.own = columns.own
        flat = torch.cat([*(columns._padded(part) for part in rows), partial.reshape(1)])
        *tables, partials = columns.gathered(flat).split([*(len(part) * columns.widest for part in rows), 1], 1)
        whole = (columns._beside(table, len(part)) for table, part in zip(tables, rows, strict=True))
        return partials.sum(), *whole

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_total: Tensor, *to_rows: Tensor) -> tuple[Tensor | None, ...]:
        return (None, to_total, *(gradient[:, ctx.own] for gradient in to_rows))


# ---------------------------------------------------------------- joining a group


def backend_of(device: torch.device, ranks_here: int) -> str:
    """nccl needs a GPU for each rank of this machine; ranks that share one, or have none, use gloo."""
    return "nccl" if device.type == "cuda" and torch.cuda.device_count() >= ranks_here else "gloo"


@contextmanager
def connected(
    width: int,
    device: torch.device,
    ranks_here: int,
    *,
    go_on: GoOn = lambda: "start it again",
    wait: float = WAIT_SECONDS,
) -> Iterator[RankColumns]:
    """Meet the other ranks where the environment says (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT)."""
    import_module("torch.distributed.nn.functional")  # now: later its default arguments would keep the group for ever
    with _contact(go_on):
        dist.init_process_group(backend_of(device, ranks_here), timeout=timedelta(seconds=wait))
    columns = RankColumns(width, device, go_on)
    yield columns
    columns.leave()  # not after an error: it would wait for the others, who may be gone


@contextmanager
def _contact(go_on: GoOn) -> Iterator[None]:
    """A message that does not arrive is told in one sentence."""
    try:
        yield
    except RuntimeError as error:
        if memory_error(error):
            raise
        raise RankLostError(
            f"another rank of this run ended, or has not answered for too long, see what it said; {go_on()}"
        ) from error
