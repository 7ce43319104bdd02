"""Which columns of the embedding tables this process holds, and how it joins them with those of others.

Propagation, L2 and Adam treat every column alone. So P processes ("ranks") can each hold the whole graph and K/P of the
columns of the tables and of Adam's moments. What needs all columns are scores and whole vectors: they go through the
methods here. `Columns` itself is one process that holds everything, where each of them returns what it was given;
`training.columns` has the one that talks to other ranks. Every rank calls the same methods in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from torch import Tensor

Said = TypeVar("Said")


def column_ranges(width: int, ranks: int) -> list[slice]:
    """The columns of each rank: as even as they can be, the first ranks get one more.

    >>> [(own.start, own.stop) for own in column_ranges(10, 4)]
    [(0, 3), (3, 6), (6, 8), (8, 10)]
    """
    narrow, wider = divmod(width, ranks)
    starts = [rank * narrow + min(rank, wider) for rank in range(ranks + 1)]
    return [slice(start, stop) for start, stop in pairwise(starts)]


class Columns:
    """All of them, in one process."""

    rank = 0
    size = 1
    own = slice(None)  # of the K columns

    @property
    def first(self) -> bool:
        """Whether this rank writes and speaks."""
        return self.rank == 0

    # ---------------------------------------------------------------- in a training step

    def join(self, *partial: Tensor) -> tuple[Tensor, ...]:
        """The sums over the ranks, in one message. Every rank goes on to the same loss, so that the gradient of a sum
        is the gradient of each part."""
        return partial

    def whole_rows(self, rows: Sequence[Tensor], partial: Tensor) -> tuple[list[Tensor], Tensor]:
        """(B, own columns) -> (B, K) each, and the sum of `partial`, in one message. Gradients as in `join`."""
        return list(rows), partial

    # ---------------------------------------------------------------- without gradients

    def whole(self, table: Tensor) -> Tensor:
        """(n, own columns) -> (n, K), on every rank."""
        return table

    def sum_(self, *tensors: Tensor) -> None:
        """Replace each by its sum over the ranks, in one message per number format."""

    def share(self, count: int) -> slice:
        """Which of `count` pieces of work are this rank's."""
        return slice(None)

    # ---------------------------------------------------------------- between steps

    def told(self, say: Callable[[], Said]) -> Said:
        """What the first rank says; the others do not call it."""
        return say()

    def any(self, flag: bool) -> bool:
        """Whether some rank says yes."""
        return flag

    def collected(self, value: Said) -> list[Said] | None:
        """The values of all ranks at the first one, None elsewhere."""
        return [value]

    def joined(self, tensors: Mapping[str, Tensor], by_columns: Collection[str]) -> dict[str, Tensor]:
        """The same with the tables named `by_columns` whole: what is stored. Only the first rank gets it."""
        return dict(tensors)

    def parts(self, tensors: Mapping[str, Tensor], by_columns: Collection[str]) -> dict[str, Tensor]:
        """The inverse: of the tables named `by_columns` the own columns."""
        return dict(tensors)

    def described(self) -> dict[str, Any] | None:
        """What `run.json` says about it; None where there is nothing to say."""
        return None


WHOLE = Columns()
