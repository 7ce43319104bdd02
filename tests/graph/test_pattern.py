"""The fixed pattern of edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.data import Interactions
from caged.errors import DataError
from caged.graph import BipartiteGraph, pattern
from tests.graph.graphs import CORNERS, random_graph


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


def test_numbers_per_edge_beside_the_two_rows_are_made_when_asked_for():
    graph = random_graph()
    assert not {"users", "by_item"} & graph.__dict__.keys()
    assert graph.users is graph.users
    assert graph.by_item is graph.by_item


def test_from_interactions_keeps_rows_without_edges():
    log = Interactions.from_ids(["a", "b", "b"], [5, 5, 7])
    graph = BipartiteGraph.from_interactions(log.select(np.array([False, True, True])))
    assert graph.user_degrees.tolist() == [0, 2]
    assert graph.item_degrees.tolist() == [1, 1]


def test_an_empty_graph_is_refused():
    with pytest.raises(DataError, match="no interactions"):
        BipartiteGraph.from_edges(np.array([], dtype=int), np.array([], dtype=int), 3, 3)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("kind", ["array", "memory map", "tensor"])
def test_rows_of_any_kind_give_the_graph_of_the_same_edges(tmp_path, dtype, kind):
    expected = random_graph()
    rows = [part.numpy().astype(dtype) for part in (expected.user_offsets, expected.items)]
    if kind == "memory map":
        for number, values in enumerate(rows):
            values.tofile(tmp_path / str(number))
        rows = [np.memmap(tmp_path / str(number), dtype=dtype, mode="r") for number in range(2)]
    given = [torch.from_numpy(values) for values in rows] if kind == "tensor" else rows
    graph = BipartiteGraph.from_rows(*given, expected.item_count)
    for name in ("items", "user_offsets", "item_users", "item_offsets", "users", "by_item"):
        assert torch.equal(getattr(graph, name), getattr(expected, name)), name
        assert getattr(graph, name).dtype == torch.int32
    assert (graph.user_count, graph.item_count) == (expected.user_count, expected.item_count)


def test_rows_of_the_right_type_are_taken_as_they_are():
    expected = random_graph()
    graph = BipartiteGraph.from_rows(expected.user_offsets, expected.items, expected.item_count)
    assert graph.items.data_ptr() == expected.items.data_ptr()
    assert graph.user_offsets.data_ptr() == expected.user_offsets.data_ptr()


def test_long_rows_are_converted_in_pieces(monkeypatch):
    monkeypatch.setattr(pattern, "COPIED_AT_ONCE", 7)
    expected = random_graph()
    graph = BipartiteGraph.from_rows(expected.user_offsets.long(), expected.items.long(), expected.item_count)
    assert torch.equal(graph.items, expected.items)
    assert torch.equal(graph.user_offsets, expected.user_offsets)


@pytest.mark.parametrize("offsets", [[1, 2, 3], [0, 2, 4], [0, 3, 2, 3]], ids=["first", "last", "falls"])
def test_offsets_that_are_none_are_refused(offsets):
    with pytest.raises(DataError, match="offsets of a graph's rows have to rise from 0 to its 3 interactions"):
        BipartiteGraph.from_rows(np.array(offsets), np.array([0, 1, 2]), 3)
