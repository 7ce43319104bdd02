"""Top-K lists from scores, in blocks of users: mask what was seen, rank the whole catalogue, break ties by row."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from caged.columns import WHOLE, Columns
from caged.data.ids import Array
from caged.data.seen import Seen
from caged.errors import ConfigError, DataError, TrainingError
from caged.evaluation.lists import PADDING, Lists

# Scores are computed in blocks of users. On CPU a block should stay in the cache until it is ranked, but a product with
# fewer than some dozens of users reads the whole item table for too little work. On CUDA large blocks keep it busy.
SCORE_BLOCK_BYTES = 16 * 2**20
LEAST_USERS = 64  # of a block, within MEMORY_SHARE
CUDA_SCORE_BLOCK_BYTES = 512 * 2**20
MEMORY_SHARE = 1 / 16  # of the free memory that a block may take beyond SCORE_BLOCK_BYTES
GROUPED_FROM = 2**15  # items; measured on CPU: for 4,000 `torch.topk` alone is as fast, at a million 8 to 10x slower
GROUP_SIZE = 32
_MASKED = float("-inf")


class ScoreFunction(Protocol):
    """Scores of all N items for a block of user rows: int64 (b,) -> floating point (b, N) on the same device.

    The caller masks the result in place, so it must not share memory with anything the scorer keeps; slices and
    expanded rows are recognised and copied first.
    """

    def __call__(self, users: Tensor, /) -> Tensor: ...


def top_k(
    scorer: ScoreFunction,
    users: Array,
    k: int,
    *,
    seen: Seen | None = None,
    block: int | None = None,
    device: torch.device | str = "cpu",
    columns: Columns = WHOLE,
) -> Lists:
    """The k best items of each user row in `users`, without those in `seen`.

    Order: score descending, then smaller row number, also where a tie is cut at the k-th place. A score of -inf
    means masked, so a user with fewer than k candidates gets a shorter list.

    >>> scores = torch.tensor([[0.5, 0.9, 0.5, 0.9, 0.1]])
    >>> top_k(lambda users: scores[users], np.array([0]), 3).items.tolist()
    [[1, 3, 0]]
    """
    return Ranker(users, k, seen=seen, block=block, device=device, columns=columns)(scorer)


class Ranker:
    """`top_k` for repeated use on the same users: what is masked stays on the device between calls.

    Where several ranks have the same scorer, each ranks for its share of the users, and the first gets all lists.
    """

    def __init__(
        self,
        users: Array,
        k: int,
        *,
        seen: Seen | None = None,
        block: int | None = None,
        device: torch.device | str = "cpu",
        columns: Columns = WHOLE,
    ) -> None:
        if k < 1:
            raise ConfigError(f"k is {k}; lists need at least one place")
        if block is not None and block < 1:
            raise ConfigError(f"block is {block}; a block needs at least one user")
        every = np.unique(np.asarray(users, dtype=np.int64))
        self.users = every[columns.share(len(every))]
        self._columns = columns
        self.k = k
        self.device = torch.device(device)
        _check_users(self.users, seen)
        self._mask = None if seen is None else SeenMask(seen, self.device)
        self._item_count = None if seen is None else seen.item_count
        self._block = block

    def __call__(self, scorer: ScoreFunction) -> Lists:
        own = self._own(scorer)
        parts = self._columns.collected(own)
        return own if parts is None else _stacked(parts)

    def _own(self, scorer: ScoreFunction) -> Lists:
        if len(self.users) == 0:
            return Lists(self.users, np.empty((0, 0), dtype=np.int32), np.empty((0, 0), dtype=np.float32))
        with torch.no_grad():
            item_count = self._item_count
            if item_count is None:
                item_count = self._scores(scorer, self.users[:1]).shape[1]
            return self._ranked(scorer, item_count)

    def _ranked(self, scorer: ScoreFunction, item_count: int) -> Lists:
        width = min(self.k, item_count)
        items = np.full((len(self.users), width), PADDING, dtype=np.int32)
        values = np.full((len(self.users), width), _MASKED, dtype=np.float32)
        if width == 0:
            return Lists(self.users, items, values)
        block = self._block or users_per_block(item_count, self.device)
        for start in range(0, len(self.users), block):
            rows = self.users[start : start + block]
            scores = self._scores(scorer, rows)
            if scores.shape != (len(rows), item_count):
                raise DataError(
                    f"the scorer returned scores of shape {tuple(scores.shape)} for {len(rows)} users and "
                    f"{item_count} items; the model and the data do not belong together"
                )
            if self._mask is not None:
                self._mask.apply(scores, rows)
            best, best_items = _best(scores, width, rows)
            best_items = best_items.masked_fill(best == _MASKED, PADDING)
            items[start : start + block] = best_items.cpu().numpy()
            values[start : start + block] = best.float().cpu().numpy()
        return Lists(self.users, items, values)

    def _scores(self, scorer: ScoreFunction, rows: Array) -> Tensor:
        scores = scorer(torch.from_numpy(rows).to(self.device))
        return scores.clone(memory_format=torch.contiguous_format) if scores._is_view() else scores.contiguous()


def _stacked(parts: list[Lists]) -> Lists:
    """Lists of further and further users, one below the other."""
    filled = [part for part in parts if len(part.users)]
    if len(filled) < 2:
        return (filled or parts)[0]
    users, items = (np.concatenate([getattr(part, name) for part in filled]) for name in ("users", "items"))
    return Lists(users, items, np.concatenate([part.scores for part in filled if part.scores is not None]))


class SeenMask:
    """What was seen as CSR, items on the device; offsets also on the host, to know sizes without waiting."""

    def __init__(self, seen: Seen, device: torch.device) -> None:
        self._offsets, items = seen.by_user()
        self._device_offsets = torch.from_numpy(np.asarray(self._offsets, dtype=np.int64)).to(device)
        self._items = torch.from_numpy(items.astype(np.int32)).to(device)
        self._item_count = seen.item_count

    def apply(self, scores: Tensor, rows: Array) -> None:
        """Set the scores of seen pairs to -inf, in place; row b of `scores` belongs to user `rows[b]`."""
        total = int((self._offsets[rows + 1] - self._offsets[rows]).sum())
        users = torch.from_numpy(rows).to(scores.device)
        start = self._device_offsets[users]
        count = self._device_offsets[users + 1] - start
        # Entry j of the block lies at j + (start of its user - entries of the users before), gathered without a loop.
        shift = start - (count.cumsum(0) - count)
        block_row = torch.repeat_interleave(count, output_size=total)
        position = shift.index_select(0, block_row).add_(torch.arange(total, device=scores.device))
        # One flat index: two of them, by row and column, take five times as long.
        cell = block_row.mul_(self._item_count).add_(self._items.index_select(0, position))
        scores.view(-1).index_fill_(0, cell, _MASKED)


def users_per_block(item_count: int, device: torch.device) -> int:
    """Whose scores for the whole catalogue make one block."""
    row = 4 * max(item_count, 1)
    share = int(MEMORY_SHARE * _free_memory(device))
    wanted = CUDA_SCORE_BLOCK_BYTES if device.type == "cuda" else LEAST_USERS * row
    return max(1, max(SCORE_BLOCK_BYTES, min(wanted, share)) // row)


def _free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system says
        return 0


def _check_users(users: Array, seen: Seen | None) -> None:
    if len(users) and users[0] < 0:
        raise DataError(f"user row {users[0]} is not a row number; rows start at 0 (-1 marks an unknown user)")
    if seen is not None and len(users) and users[-1] >= seen.user_count:
        raise DataError(
            f"user row {users[-1]} is outside the masked interactions; allowed are 0..{seen.user_count - 1}"
        )


def _best(scores: Tensor, width: int, rows: Array) -> tuple[Tensor, Tensor]:
    """Values and columns of the `width` largest scores per row, by (score descending, column ascending).

    `torch.topk` promises no order among equal scores, neither inside the list nor at the cut. One more place than
    needed shows which rows have a tie; only those are ordered again.
    """
    item_count = scores.shape[1]
    values, items = _largest(scores, min(width + 1, item_count))
    _check_numbers(values, rows)
    equal = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > _MASKED)
    cut = equal[:, width - 1] if item_count > width else torch.zeros_like(values[:, 0], dtype=torch.bool)
    values, items = values[:, :width], items[:, :width]
    tied = equal.any(dim=1).nonzero().squeeze(1)
    if len(tied):
        chosen = items[tied].sort(dim=1).values
        cut_rows = cut[tied].nonzero().squeeze(1)
        if len(cut_rows):
            at_cut = tied[cut_rows]
            chosen[cut_rows] = _first_by_row(scores[at_cut], values[at_cut, -1:], width)
        chosen_values = scores[tied.unsqueeze(1), chosen] + 0.0  # -0.0 becomes 0.0: equal scores, equal bits
        order = chosen_values.argsort(dim=1, descending=True, stable=True)
        items[tied] = chosen.gather(1, order)
        values[tied] = chosen_values.gather(1, order)
    return values, items


def _largest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest scores per row and their columns, as `torch.topk`, which is slow on CPU for long rows.

    The largest scores lie in the groups with the largest maxima, so it is enough to rank the maxima and then the
    members of `count` groups. Group g holds the columns g, g + G, g + 2G, ...: maxima of many groups are then one
    vectorised pass. The few columns that fill no group are candidates anyway.
    """
    users, item_count = scores.shape
    groups = item_count // GROUP_SIZE
    if scores.device.type != "cpu" or item_count < GROUPED_FROM or count > groups // 2:
        return torch.topk(scores, count, dim=1)
    grouped = scores[:, : GROUP_SIZE * groups].view(users, GROUP_SIZE, groups)
    best = torch.topk(grouped.amax(1), count, dim=1, sorted=False).indices
    members = grouped.gather(2, best.unsqueeze(1).expand(-1, GROUP_SIZE, -1)).flatten(1)
    values, place = torch.topk(torch.cat((members, scores[:, GROUP_SIZE * groups :]), dim=1), count, dim=1)
    in_group = place // count * groups + best.gather(1, place % count)
    return values, torch.where(place < GROUP_SIZE * count, in_group, place + GROUP_SIZE * (groups - count))


def _first_by_row(scores: Tensor, threshold: Tensor, width: int) -> Tensor:
    """Per row, ascending: the columns above the threshold, filled up with the first ones equal to it."""
    above = scores > threshold
    equal = scores == threshold
    wanted = width - above.sum(dim=1, keepdim=True)
    taken = above | (equal & (equal.cumsum(dim=1, dtype=torch.int32) <= wanted))
    return taken.nonzero()[:, 1].view(-1, width)


def _check_numbers(values: Tensor, rows: Array) -> None:
    # topk ranks NaN above every number, so the first column tells whether a row has one.
    broken = values[:, :1].isnan().any(dim=1)
    if bool(broken.any()):
        user = rows[int(broken.nonzero()[0])]
        raise TrainingError(
            f"a score of user row {user} is NaN where a number is needed; the model has diverged or was loaded from "
            "broken values: lower the learning rate and train again"
        )
