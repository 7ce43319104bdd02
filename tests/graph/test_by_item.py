"""The transpose of CSR rows, in pieces."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.errors import DataError
from caged.graph.by_item import item_rows, users_of
from tests.graph.graphs import CORNERS, random_graph


@pytest.mark.parametrize("make", CORNERS.values(), ids=CORNERS.keys())
@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_pieces_of_any_size_give_the_order_of_one_stable_sort(make, piece):
    graph = make()
    rows = item_rows(graph.user_offsets, graph.items, graph.item_count, piece)
    order = np.argsort(graph.items.numpy(), kind="stable")
    degrees = np.bincount(graph.items.numpy(), minlength=graph.item_count)
    assert rows.users.tolist() == graph.users.numpy()[order].tolist()
    assert rows.offsets.tolist() == [0, *np.cumsum(degrees).tolist()]
    assert rows.users.dtype == rows.offsets.dtype == torch.int32


def test_users_of_a_run_of_edges_skip_those_without_any():
    offsets = torch.tensor([0, 0, 2, 2, 5, 5])
    assert [users_of(offsets, first, 5).tolist() for first in range(5)] == [
        [1, 1, 3, 3, 3],
        [1, 3, 3, 3],
        [3, 3, 3],
        [3, 3],
        [3],
    ]
    assert users_of(offsets, 1, 3).tolist() == [1, 3]


@pytest.mark.parametrize("piece", [1, 2, 100])
@pytest.mark.parametrize("row", [[4, 2, 5], [2, 4, 4]], ids=["falls", "repeats"])
def test_rows_that_do_not_ascend_are_refused(row, piece):
    offsets = torch.tensor([0, 2, 5], dtype=torch.int32)
    with pytest.raises(DataError, match="items of user 1 do not ascend"):
        item_rows(offsets, torch.tensor([1, 3, *row], dtype=torch.int32), 6, piece)


@pytest.mark.parametrize("item", [-1, 9])
def test_items_outside_the_catalogue_are_refused(item):
    graph = random_graph()
    items = graph.items.clone()
    items[-1] = item
    with pytest.raises(DataError, match=f"names item {item}, but items are numbered from 0 to 8"):
        item_rows(graph.user_offsets, items, 9, 16)


@pytest.mark.gpu
def test_a_gpu_gives_the_same_rows():
    rng = np.random.default_rng(2)
    cells = np.unique((rng.random(200_000) ** 3 * 1000).astype(np.int64) + 1000 * rng.integers(0, 3000, 200_000))
    offsets = np.searchsorted(cells // 1000, np.arange(3001)).astype(np.int32)
    given = (torch.from_numpy(offsets), torch.from_numpy((cells % 1000).astype(np.int32)))
    expected = item_rows(*given, 1000)
    for piece in (2**26, 30_001):
        found = item_rows(*(part.cuda() for part in given), 1000, piece)
        assert torch.equal(found.users.cpu(), expected.users)
        assert torch.equal(found.offsets.cpu(), expected.offsets)
