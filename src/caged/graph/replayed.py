"""Negatives as the published AdvDrop code draws them: a short stream of items that is replayed for all of training.

Its loader has eight worker processes. Each of them starts every epoch with the same random stream, so all negatives of
training come from as many draws as one worker makes in one epoch: about 117,000 on Yelp2018. An item that is not among
them is never a negative. Worker w fills the batches w, w + 8, ...; an item that the user owns is passed over for the
next one of the stream. This exists to reproduce those numbers, and for nothing else.
"""

from __future__ import annotations

import torch
from torch import Tensor

from caged.graph.pattern import BipartiteGraph
from caged.seeding import derive

WORKERS = 8
MOST_TRIES = 100  # of items that a user owns in a row; then the triple keeps what an exact draw gave it


class ReplayedNegatives:
    """The same stream whatever the seed of a run is, as there."""

    def __init__(self, graph: BipartiteGraph, batch_size: int, triples: int) -> None:
        self._item_count, self._batch_size = graph.item_count, batch_size
        generator = torch.Generator().manual_seed(derive(0, "replayed negatives"))
        length = -(-triples // WORKERS)
        stream = torch.randint(graph.item_count, (length,), generator=generator)
        self.stream = stream.to(graph.device, graph.items.dtype)
        self._owned = graph.users.long() * graph.item_count + graph.items.long()  # sorted, as edges are

    def of(self, users: Tensor, otherwise: Tensor) -> Tensor:
        """An item for each triple of an epoch, in the order of its batches; `otherwise` where none was found."""
        place = torch.arange(len(users), device=users.device)
        batch = place // self._batch_size
        first = batch // WORKERS * self._batch_size + place % self._batch_size
        items, open_ = otherwise.clone(), place
        for tried in range(MOST_TRIES):
            candidates = self.stream.index_select(0, (first.index_select(0, open_) + tried) % len(self.stream))
            free = ~self._owns(users.index_select(0, open_), candidates)
            items[open_[free]] = candidates[free].to(items.dtype)
            open_ = open_[~free]
            if len(open_) == 0:
                break
        return items

    def _owns(self, users: Tensor, items: Tensor) -> Tensor:
        keys = users.long() * self._item_count + items.long()
        found = torch.searchsorted(self._owned, keys).clamp_(max=len(self._owned) - 1)
        return self._owned.index_select(0, found) == keys
