"""An index proposes candidates from a large catalogue, which are then scored exactly.

Lengths of trained vectors grow with popularity, so the few items with the longest vectors have many of the best
scores, and they are the ones that an index loses. Here, these items (the head) are all looked at. The others are in
lists by k-means, with 4 bits for each number of the difference to the mean of the list (IVF with a product quantizer
of width 1, scanned by faiss). The lists whose means have the highest scores are read. `python -m benchmarks.index` has
the comparison with others.

The knob is one more column, log(1 + popularity) times `scale` for items and minus the penalty over `scale` for people:
one index serves every notch. How many lists are read for a notch was measured when the index was built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from caged.data.ids import Array
from caged.errors import RunError
from caged.products.serve.filters import Kept
from caged.products.serve.manifest import IndexAs
from caged.products.serve.model import ServedModel
from caged.products.serve.search import largest

INDEX = "index.faiss"
HEAD = "index_head"  # .npy: rows of the items that are all looked at
CANDIDATES = 500  # from the lists
PER_K = 4  # candidates for each item of a long list
MOST_CANDIDATES = 20_000  # more cost more than the whole catalogue
INSTALL = "pip install 'caged-rec[serve-index]'"


def library() -> Any | None:
    """faiss, where it is installed."""
    try:
        import faiss
    except ImportError:
        return None
    return faiss


@dataclass(frozen=True, eq=False)
class ItemIndex:
    stated: IndexAs
    head: Array  # rows
    head_table: Array  # (H, K + 1)
    lists: Any  # an index of faiss with the rows of the other items

    @classmethod
    def load(cls, model: ServedModel, faiss: Any) -> ItemIndex:
        """The lists are mapped into memory."""
        stated, path = model.manifest.index, model.folder / INDEX
        assert stated is not None
        head = model.arrays.get(HEAD)
        try:
            lists = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:  # with file and line of the library
            raise RunError(
                f"{path} is no index that faiss {faiss.__version__} can read; export the run again"
            ) from error
        width, items = model.manifest.width, model.manifest.items
        fits = head is not None and lists.d == width + 1 and lists.ntotal + len(head) == items
        if not fits or head is None or (len(head) and not 0 <= head.min() <= head.max() < items):
            raise RunError(f"{path} was built for another catalogue; export the run again")
        return cls(stated, head, item_table(model, head, stated.scale), lists)

    def candidates_for(self, k: int, left_out: int) -> int | None:
        """How many to ask the lists for; None: search the whole catalogue instead."""
        count = max(CANDIDATES, PER_K * k) + left_out
        return count if count <= MOST_CANDIDATES else None

    def probes_for(self, strength: float) -> int:
        """Lists to read: as many as the notches on both sides of this strength need."""
        notches = self.stated.notches
        above = [notch.probes for notch in notches if notch.less_popular >= strength][:1]
        below = [notch.probes for notch in notches if notch.less_popular <= strength][-1:]
        return max(above + below)

    def propose(
        self, vectors: Array, penalties: Array, *, probes: int, k: int, left_out: int, kept: Kept | None = None
    ) -> list[Array]:
        """Rows for each vector: the best of the head and of some lists, none twice, in any order.

        A filter that keeps a share of the items needs more lists, so that as many items are looked at.
        """
        queries = np.c_[vectors, -penalties / np.float32(self.stated.scale)].astype(np.float32)
        count = self.candidates_for(k, left_out)
        assert count is not None
        of_head = self.head_table @ queries.T
        if kept is not None:
            assert kept.marks is not None  # few rows need no index
            probes = min(self.stated.lists, math.ceil(probes * len(kept.marks) / kept.count))
            of_head[~kept.marks[self.head]] = -np.inf
        best = largest(of_head, [k + left_out] * len(queries))
        found = self._from_lists(queries, count, probes, None if kept is None else kept.marks)
        return [np.concatenate((self.head[one.rows], rows[rows >= 0])) for one, rows in zip(best, found, strict=True)]

    def _from_lists(self, queries: Array, count: int, probes: int, marks: Array | None) -> Array:
        """(queries, count) rows, -1 where there are no more.

        Items that pass a filter may all lie in lists that score low. Whoever gets fewer than asked for from the lists
        that were read gets them from all lists.
        """
        faiss = library()
        assert faiss is not None  # it read the lists
        chosen: dict[str, Any] = {}
        if marks is not None:
            chosen["sel"] = faiss.IDSelectorBitmap(np.packbits(marks, bitorder="little"))
        found: Array = self.lists.search(queries, count, params=faiss.SearchParametersIVF(nprobe=probes, **chosen))[1]
        short = np.flatnonzero(found.min(axis=1) < 0)
        if len(short) and probes < self.stated.lists:
            everywhere = faiss.SearchParametersIVF(nprobe=self.stated.lists, **chosen)
            found[short] = self.lists.search(queries[short], count, params=everywhere)[1]
        return found


def item_table(model: ServedModel, rows: Array, scale: float) -> Array:
    """(len(rows), K + 1) float32: vectors and the column of the knob."""
    popularity = model.log_popularity[rows] * np.float32(scale)
    return np.concatenate((model.item_vectors[rows], popularity[:, None]), axis=1)
