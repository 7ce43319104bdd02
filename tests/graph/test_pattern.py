"""The fixed pattern of edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.data import Interactions
from caged.errors import DataError
from caged.graph import BipartiteGraph
from tests.graph.graphs import CORNERS


@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
def test_both_directions_hold_the_same_edges(make):
    graph = make()
    by_user = set(zip(graph.users.tolist(), graph.items.tolist(), strict=True))
    item_of_position = torch.repeat_interleave(torch.arange(graph.item_count), graph.item_degrees.long())
    by_item = set(zip(graph.item_users.tolist(), item_of_position.tolist(), strict=True))
    assert by_user == by_item
    assert len(by_user) == graph.edge_count
    assert torch.equal(graph.users[graph.by_item.long()], graph.item_users)
    assert graph.users.dtype == graph.user_offsets.dtype == torch.int32


def test_from_interactions_keeps_rows_without_edges():
    log = Interactions.from_ids(["a", "b", "b"], [5, 5, 7])
    graph = BipartiteGraph.from_interactions(log.select(np.array([False, True, True])))
    assert graph.user_degrees.tolist() == [0, 2]
    assert graph.item_degrees.tolist() == [1, 1]


def test_an_empty_graph_is_refused():
    with pytest.raises(DataError, match="no interactions"):
        BipartiteGraph.from_edges(np.array([], dtype=int), np.array([], dtype=int), 3, 3)
