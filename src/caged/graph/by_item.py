"""Edges that lie by user, put into the order of items, in pieces: at no time an index per edge of the whole graph.

Sorting a billion edges at once takes the keys, an int64 index and the sort's own copies of both, some 40 bytes per
edge. Here pieces are sorted, and each sorted run of an item goes behind what earlier pieces left there. Pieces come in
the order of users and their sort is stable, so users ascend within an item whatever the size of a piece.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from caged.errors import DataError

PIECES = {"cuda": 2**26, "cpu": 2**21}  # edges sorted at once: some 40 bytes each; on CPU, what caches help with


class ItemRows(NamedTuple):
    """CSR rows of items."""

    offsets: Tensor  # (N + 1,)
    users: Tensor  # (E,), ascending within an item


def item_rows(user_offsets: Tensor, items: Tensor, item_count: int, piece: int | None = None) -> ItemRows:
    """The transpose of CSR rows of users. Rows that name unknown items, or do not ascend, are refused."""
    piece = piece or PIECES[items.device.type]
    degrees = torch.zeros(item_count, dtype=torch.int64, device=items.device)
    for part in items.split(piece):
        check_range(part, item_count, "item")
        degrees += torch.bincount(part, minlength=item_count)
    offsets = _starts(degrees)
    place = offsets[:-1].clone()  # of the next edge of each item
    users = torch.empty_like(items)
    for first in range(0, len(items), piece):
        _place_piece(first, min(first + piece, len(items)), user_offsets, items, place, users)
    return ItemRows(offsets.to(user_offsets.dtype), users)


def _place_piece(first: int, last: int, user_offsets: Tensor, items: Tensor, place: Tensor, users: Tensor) -> None:
    """The edges [first, last) into `users`. Whatever that takes is let go before the next piece takes as much."""
    before = max(first - 1, 0)  # one more edge, for the order across pieces
    owners = users_of(user_offsets, before, last).to(items.dtype)
    _check_order(owners, items[before:last])
    owners, part = owners[first - before :], items[first:last]
    counts = torch.bincount(part, minlength=len(place))
    in_order, order = torch.sort(part, stable=True)
    shift = place - _starts(counts)[:-1]
    to = torch.arange(len(part), device=items.device).add_(shift.index_select(0, in_order))
    users[to] = owners.index_select(0, order)
    place += counts


def users_of(user_offsets: Tensor, first: int, last: int) -> Tensor:
    """The users of the edges [first, last)."""
    ends = torch.tensor([first, last], dtype=user_offsets.dtype, device=user_offsets.device)
    lowest, highest = (torch.searchsorted(user_offsets, ends, right=True) - 1).tolist()
    rows = user_offsets[lowest : highest + 2].clamp(first, last).diff()
    return torch.repeat_interleave(rows, output_size=last - first).add_(lowest)


def _starts(degrees: Tensor) -> Tensor:
    return torch.nn.functional.pad(degrees.cumsum(0), (1, 0))


def check_range(rows: Tensor, count: int, kind: str) -> None:
    lowest, highest = (int(end) for end in rows.aminmax())
    if lowest < 0 or highest >= count:
        raise DataError(
            f"a row of the graph names {kind} {lowest if lowest < 0 else highest}, but {kind}s are numbered from 0 to "
            f"{count - 1}; write the rows again, or correct the number of {kind}s"
        )


def _check_order(users: Tensor, items: Tensor) -> None:
    unsorted = (users[1:] == users[:-1]) & (items[1:] <= items[:-1])
    if bool(unsorted.any()):
        user = int(users[int(unsorted.nonzero()[0])])
        raise DataError(
            f"the items of user {user} do not ascend; in a row of the graph they have to be sorted, and each has to "
            "occur once"
        )
