"""The nearest items of every item by (2) of `method`, exactly, without ever holding the similarity matrix.

A block of items is compared with all items at once, in one of two forms. What decides is how many pairs of interactions
its items take part in:

- sparse: scipy's product of the block with R. Its time is that of the pairs, so it suits items that meet few others.
- dense: every item sums the rows of a table (users, block) of its users, with `embedding_bag`. This looks at all pairs
  of items, also at those that share nobody, and is still several times faster where a catalogue is dense, because it
  adds whole vectors. Sums of ones are exact in float32, so this form is for unweighted interactions.

Sorting everything would take longer than the product. So a block first finds a lower bound of the k-th largest
similarity of each item: of the maxima of short runs the k-th largest, which at least k entries reach. What lies below
it is out, and the little that is left is sorted in float64: largest first, ties by row number. Neither the form nor
the blocks nor the threads change a list.

Of items that the same users have, only one is compared (`alike`): with all items, itself included, because the others
need it. So its list is one longer than wanted, and each of them leaves itself out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from caged.data.ids import Array
from caged.models.itemknn.alike import Alike, without_own
from caged.threads import threads

BLOCK_BYTES = 200 * 2**20  # of all threads together
SPARSE_ENTRIES = 2**18  # similarities of a sparse block: more would not stay in the cache
SPARSE_BYTES = 48 * SPARSE_ENTRIES  # values, columns, rows, a padded copy, what is sorted
MOST_WORKERS = BLOCK_BYTES // SPARSE_BYTES
DENSE_ITEMS = 64  # of a block: rows of the table are read in random order and should stay in the cache
SMALL_TABLE = 2**19  # bytes: twice as many items where their table stays below
SUMMED_ITEMS = 1024  # at a time: results of more come in fresh memory, which takes longer than the sums
PUT_ITEMS = 4096  # that get their lists at a time
RUN = 16  # entries whose maximum is looked at together
# Nanoseconds on one core; they decide which form a block takes, and so its time, never a list.
SPARSE_PER_PAIR, SPARSE_PER_ENTRY, SPARSE_PER_ITEM = 3.0, 27.0, 15_000.0
DENSE_PER_SUM, DENSE_PER_ENTRY = 0.05, 4.0
# float32 similarities of the dense form: counts are exact up to the first, and nothing underflows up to the second.
EXACT_COUNTS, MOST_SHRINKAGE = 2**24, 1e20
ROUNDING = 2e-6  # more than twice the relative error of such a similarity: norms, shrinkage, a sum, two quotients


class Nearest(NamedTuple):
    """The nearest items of some items, largest similarity first, padded with similarity 0."""

    columns: Array  # (b, k) int32
    values: Array  # (b, k) float32


class Similarities:
    """(2): what it is made of. `by_user` is the weighted matrix (M, N) as CSR."""

    def __init__(self, by_user: Any, shrinkage: float, *, unweighted: bool) -> None:
        items, user_degrees = by_user.shape[1], np.diff(by_user.indptr)
        reached = np.repeat(user_degrees, user_degrees)
        self.by_user, self.by_item = by_user, by_user.T.tocsr()
        self.shrinkage, self.unweighted = shrinkage, unweighted
        self.norms: Array = np.sqrt(np.bincount(by_user.indices, weights=by_user.data**2, minlength=items))
        # Of each item: products that its row of the similarity matrix takes, and entries that it has at most.
        self.pairs: Array = np.bincount(by_user.indices, weights=reached, minlength=items)
        self.entries: Array = np.minimum(self.pairs, items)

    def between(self, products: Array, items: Array, others: Array) -> Array:
        """(2) from the products of items with others, also of an item with itself."""
        scale = self.norms[items]
        scale *= self.norms[others]
        scale += self.shrinkage
        return np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0)


def nearest_items(similarities: Similarities, count: int) -> Nearest:
    """The `count` nearest of every item, on as many threads as torch has."""
    workers = min(torch.get_num_threads(), MOST_WORKERS)
    found = Nearest(*(np.zeros((len(similarities.norms), count), dtype) for dtype in (np.int32, np.float32)))
    alike = Alike(similarities.by_item)
    dense_items = _dense_block_items(similarities, workers)
    in_dense_form = (_suits_dense_form(similarities) & bool(dense_items))[alike.heads]
    dense, sparse = alike.heads[in_dense_form], alike.heads[~in_dense_form]
    # Threads that come back for more share these; the next item of a list goes to one of them only.
    dense_blocks = iter([dense[first : first + dense_items] for first in range(0, len(dense), max(1, dense_items))])
    blocks = iter(sparse_blocks(similarities, sparse, SPARSE_ENTRIES))

    def work() -> None:
        form = DenseForm(similarities, dense_items)
        for items in dense_blocks:
            _put(found, items, form.nearest(items, count + 1), alike)
        for items in blocks:
            _put(found, items, sparse_nearest(similarities, items, count + 1), alike)

    _in_parallel(work, workers)
    return found


def _put(found: Nearest, heads: Array, part: Nearest, alike: Alike) -> None:
    """The lists of groups, one longer than wanted, to all of their items: each without the item itself."""
    members, group = alike.members(heads)
    for first in range(0, len(members), PUT_ITEMS):
        items, row = members[first : first + PUT_ITEMS], group[first : first + PUT_ITEMS]
        found.columns[items], found.values[items] = without_own(part.columns[row], part.values[row], items)


def _in_parallel(work: Callable[[], None], workers: int) -> None:
    """Blocks are independent, and what they call lets other threads run, so every thread takes the next one."""
    if workers == 1:
        work()
        return
    with threads(1), ThreadPoolExecutor(workers) as pool:
        for running in [pool.submit(work) for _ in range(workers)]:
            running.result()


# ------------------------------------------------------------------------------------------- which form, which blocks


def _suits_dense_form(similarities: Similarities) -> Array:
    matrix = similarities.by_user
    sparse = SPARSE_PER_PAIR * similarities.pairs + SPARSE_PER_ENTRY * similarities.entries + SPARSE_PER_ITEM
    return np.asarray(sparse > DENSE_PER_SUM * matrix.nnz + DENSE_PER_ENTRY * matrix.shape[1])


def _dense_block_items(similarities: Similarities, workers: int) -> int:
    """Items of a block in the dense form; 0 where that form would round, or not fit into the memory of a block."""
    users, items = similarities.by_user.shape
    if not similarities.unweighted or users >= EXACT_COUNTS or similarities.shrinkage > MOST_SHRINKAGE:
        return 0
    per_item = 4 * users + 16 * items  # the table; sums, similarities, which of them stay
    allowed, cached = BLOCK_BYTES // max(1, workers * per_item), SMALL_TABLE // max(1, 4 * users)
    if min(allowed, cached) >= 2 * DENSE_ITEMS:
        return 2 * DENSE_ITEMS
    return DENSE_ITEMS if allowed >= DENSE_ITEMS else 0


def sparse_blocks(similarities: Similarities, items: Array, entries: float) -> list[Array]:
    """The items in blocks whose padded rows have at most `entries` entries together, or of one item.

    Items of alike length share a block, so that little is padding.
    """
    ordered = items[np.argsort(-similarities.entries[items], kind="stable")]
    blocks, first = [], 0
    while first < len(ordered):
        longest = max(1.0, float(similarities.entries[ordered[first]]))
        last = first + max(1, int(entries / longest))
        blocks.append(np.sort(ordered[first:last]))
        first = last
    return blocks


# ------------------------------------------------------------------------------------------- the two forms


def sparse_nearest(similarities: Similarities, items: Array, count: int) -> Nearest:
    products = similarities.by_item[items] @ similarities.by_user
    sizes = np.diff(products.indptr)
    row = np.repeat(np.arange(len(items)), sizes)
    values = similarities.between(products.data, items[row], products.indices)
    padded = np.zeros((len(items), max(1, int(sizes.max()))))
    padded[np.arange(padded.shape[1]) < sizes[:, None]] = values
    kept = np.flatnonzero((values >= lower_bounds(_peaks(padded, count), count)[row]) & (values > 0))
    row, column = row[kept], products.indices[kept]
    order = np.argsort(row * np.int64(products.shape[1]) + column)
    return ranked(row[order], column[order], values[kept[order]], len(items), count)


def _peaks(values: Array, count: int) -> Array:
    """Maxima of runs of each row; what is left at its end is left out, and a bound stays a bound."""
    run = _run_length(values.shape[1], count)
    whole = values.shape[1] - values.shape[1] % run
    return np.asarray(values[:, :whole].reshape(len(values), -1, run).max(2))


class _Summands(NamedTuple):
    """The users of some items, as CSR."""

    items: slice
    users: torch.Tensor
    offsets: torch.Tensor


class DenseForm:
    """Sums over users for a block of items against all, in buffers that every block uses again."""

    def __init__(self, similarities: Similarities, block_items: int) -> None:
        by_item = similarities.by_item
        users, items = similarities.by_user.shape
        self._similarities = similarities
        self._summands = [
            _Summands(
                slice(first, first + SUMMED_ITEMS),
                torch.from_numpy(by_item.indices[ends[0] : ends[-1]]),
                torch.from_numpy(ends - ends[0]),
            )
            for first in range(0, items, SUMMED_ITEMS)
            for ends in [by_item.indptr[first : first + SUMMED_ITEMS + 1]]
        ]
        # An item without users shares none, whatever it is divided by; 0 / 0 would hide what stands beside it.
        self._norms = torch.from_numpy(np.where(similarities.norms > 0, similarities.norms, 1.0).astype(np.float32))
        self._table = torch.empty(users * block_items)
        self._sums, self._values = torch.empty(items * block_items), torch.empty(items * block_items)

    def nearest(self, items: Array, count: int) -> Nearest:
        sums, values = self._compared(items)
        low = lower_bounds(self._peaks(values, count), count) * np.float32(1 - ROUNDING)
        kept = np.flatnonzero(values.numpy() >= np.maximum(low, np.finfo(np.float32).tiny))
        column, row = np.divmod(kept, len(items))
        order = np.argsort(row.astype(np.uint16), kind="stable")
        row, column = row[order], column[order]
        exact = self._similarities.between(sums.numpy()[column, row], items[row], column)
        return ranked(row, column, exact, len(items), count)

    def _compared(self, items: Array) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, b): how many users two items share, exactly, and their similarity times the block item's norm, rounded.

        |x_i| t_ij = x_i . x_j / (|x_j| + shrinkage / |x_i|) ranks the j alike and takes one pass less.
        """
        chosen, count = torch.from_numpy(items), len(items)
        owners = self._similarities.by_item[items]
        place = np.repeat(np.arange(count), np.diff(owners.indptr))
        table = self._table[: self._similarities.by_user.shape[0] * count].zero_()
        table.index_fill_(0, torch.from_numpy(owners.indices * np.int64(count) + place), 1.0)
        sums, values = (part[: len(self._norms) * count].view(-1, count) for part in (self._sums, self._values))
        for items_of, users, offsets in self._summands:
            sums[items_of] = F.embedding_bag(
                users, table.view(-1, count), offsets, mode="sum", include_last_offset=True
            )
        torch.add(self._norms.unsqueeze(1), self._similarities.shrinkage / self._norms[chosen], out=values)
        torch.div(sums, values, out=values)
        return sums, values

    @staticmethod
    def _peaks(values: torch.Tensor, count: int) -> Array:
        run = _run_length(len(values), count)
        whole = len(values) - len(values) % run
        return values[:whole].view(-1, run, values.shape[1]).amax(1).T.contiguous().numpy()


# ------------------------------------------------------------------------------------------- the nearest of a block


def _run_length(entries: int, count: int) -> int:
    """So short that four times as many maxima as places are left."""
    return max(1, min(RUN, entries // (4 * count)))


def lower_bounds(peaks: Array, count: int) -> Array:
    """(b, n) maxima of runs -> (b,): what at least `count` entries of a row reach; 0 where there are fewer maxima."""
    if peaks.shape[1] < count:
        return np.zeros(len(peaks), peaks.dtype)
    place = peaks.shape[1] - count
    return np.asarray(np.partition(peaks, place, axis=1)[:, place])


def ranked(row: Array, column: Array, values: Array, rows: int, count: int) -> Nearest:
    """The `count` largest of each row. Entries come by row and column; the sort is stable, so ties keep that order."""
    sizes = np.bincount(row, minlength=rows)
    filled = np.arange(max(count, int(sizes.max()))) < sizes[:, None]
    negated, columns = np.zeros(filled.shape), np.zeros(filled.shape, dtype=np.int32)
    negated[filled], columns[filled] = -values, column
    order = np.argsort(negated, axis=1, kind="stable")[:, :count]
    best = np.abs(np.take_along_axis(negated, order, axis=1))
    return Nearest(np.take_along_axis(columns, order, axis=1), best.astype(np.float32))
