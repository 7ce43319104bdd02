"""The nearest items against a full sort of the similarity matrix, in both forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from caged.errors import CagedError
from caged.models.item_item import training_matrix
from caged.models.itemknn import neighbours
from caged.models.itemknn.method import weighted_matrix
from caged.models.itemknn.neighbours import Similarities, lower_bounds, nearest_items, sparse_blocks
from caged.threads import threads
from tests.graph.graphs import CORNERS

FORMS = {"sparse": 1e30, "dense": -1.0, "mixed": neighbours.DENSE_PER_ENTRY}


def power_law(users=90, items=240, interactions=1500, seed=3):
    """Popular and lonely items, users with few and many of them: similarities with many ties."""
    draw = np.random.default_rng(seed)
    share = np.arange(1, items + 1) ** -0.9
    pairs = (draw.integers(0, users, interactions), draw.choice(items, interactions, p=share / share.sum()))
    matrix = csr_matrix((np.ones(interactions), pairs), shape=(users, items))
    matrix.data[:] = 1.0
    return matrix


def all_ties(users=5, items=70):
    return csr_matrix(np.ones((users, items)))


def many_alike():
    return power_law(users=12, items=80, interactions=110)


MATRICES = {"power law": power_law, "all ties": all_ties, "many alike": many_alike} | {
    name: lambda make=make: training_matrix(make()) for name, make in CORNERS.items()
}


def by_full_sort(matrix, count, shrinkage):
    """Every similarity that is not 0, in float64, sorted by value and then by row number."""
    products = (matrix.T @ matrix).toarray()
    norms = np.sqrt((matrix.toarray() ** 2).sum(0))
    scale = np.outer(norms, norms) + shrinkage
    values = np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0)
    np.fill_diagonal(values, 0.0)
    order = np.argsort(-values, axis=1, kind="stable")[:, :count]
    best = np.take_along_axis(values, order, axis=1)
    return np.where(best > 0, order, 0), best.astype(np.float32)


def found(matrix, count, shrinkage, *, weighting="none"):
    weighted = weighted_matrix(matrix, weighting, 1.2, 0.75)
    return nearest_items(Similarities(weighted, shrinkage, unweighted=weighting == "none"), count)


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    """Every block sparse, every block dense, or as their cost says."""
    monkeypatch.setattr(neighbours, "DENSE_PER_ENTRY", FORMS[request.param])
    if request.param == "dense":
        monkeypatch.setattr(neighbours, "DENSE_PER_SUM", 0.0)
    return request.param


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(("count", "shrinkage"), [(1, 0.0), (4, 10.0), (20, 2.5), (60, 10.0)])
def test_lists_are_those_of_a_full_sort(form, name, count, shrinkage):
    matrix = MATRICES[name]()
    count = min(count, matrix.shape[1])
    columns, values = by_full_sort(matrix, count, shrinkage)
    lists = found(matrix, count, shrinkage)
    np.testing.assert_array_equal(lists.values, values)
    np.testing.assert_array_equal(lists.columns, columns)


@pytest.mark.parametrize("entries", [1, 300, 5000])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_neither_blocks_nor_threads_change_a_list(form, entries, workers, monkeypatch):
    matrix = power_law()
    with threads(1):
        whole = found(matrix, 7, 10.0)
    monkeypatch.setattr(neighbours, "SPARSE_ENTRIES", entries)
    with threads(workers):
        parts = found(matrix, 7, 10.0)
        assert torch.get_num_threads() == workers
    np.testing.assert_array_equal(parts.columns, whole.columns)
    np.testing.assert_array_equal(parts.values, whole.values)


def test_the_forms_are_what_the_test_says(form, monkeypatch):
    seen = {"sparse": 0, "dense": 0}
    sparse, dense = neighbours.sparse_nearest, neighbours.DenseForm.nearest

    def count(kind, work):
        def counted(*args):
            seen[kind] += 1
            return work(*args)

        return counted

    monkeypatch.setattr(neighbours, "sparse_nearest", count("sparse", sparse))
    monkeypatch.setattr(neighbours.DenseForm, "nearest", count("dense", dense))
    found(power_law(), 7, 10.0)
    expected = {"sparse": (True, False), "dense": (False, True)}
    assert form == "mixed" or (seen["sparse"] > 0, seen["dense"] > 0) == expected[form]


@pytest.mark.parametrize(
    "why", [{"weighting": "tfidf"}, {"shrinkage": 1e30}, {"shrinkage": 1e300}], ids=lambda why: next(iter(why))
)
def test_where_float32_would_round_no_block_is_dense(why, monkeypatch):
    monkeypatch.setattr(neighbours, "DENSE_PER_ENTRY", -1.0)
    monkeypatch.setattr(neighbours.DenseForm, "nearest", None)
    lists = found(power_law(), 7, **{"shrinkage": 10.0, **why})
    assert (lists.values[:, 0] > 0).any() or why.get("shrinkage") == 1e300


def test_a_table_that_is_too_large_is_not_made(monkeypatch):
    monkeypatch.setattr(neighbours, "DENSE_PER_ENTRY", -1.0)
    expected = found(power_law(), 7, 10.0)
    monkeypatch.setattr(neighbours, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(neighbours.DenseForm, "nearest", None)
    np.testing.assert_array_equal(found(power_law(), 7, 10.0).columns, expected.columns)


def test_items_of_the_same_users_are_compared_once(form, monkeypatch):
    compared = []
    sparse, dense = neighbours.sparse_nearest, neighbours.DenseForm.nearest
    monkeypatch.setattr(neighbours, "PUT_ITEMS", 3)
    monkeypatch.setattr(neighbours, "sparse_nearest", lambda *args: compared.extend(args[1]) or sparse(*args))
    monkeypatch.setattr(neighbours.DenseForm, "nearest", lambda *args: compared.extend(args[1]) or dense(*args))
    matrix = many_alike()
    lists, (columns, values) = found(matrix, 9, 10.0), by_full_sort(matrix, 9, 10.0)
    np.testing.assert_array_equal(lists.columns, columns)
    np.testing.assert_array_equal(lists.values, values)
    assert len(compared) == len(np.unique(matrix.toarray()[:, np.diff(matrix.tocsc().indptr) > 0], axis=1).T) < 60


@pytest.mark.parametrize(
    ("users", "items", "expected"), [(1000, 9000, 128), (6000, 4000, 64), (1000, 80_000, 64), (1000, 500_000, 0)]
)
def test_blocks_of_the_dense_form_fit_caches_and_memory(users, items, expected):
    matrix = csr_matrix((np.ones(1), ([0], [0])), shape=(users, items))
    assert neighbours._dense_block_items(Similarities(matrix, 10.0, unweighted=True), 2) == expected


@pytest.mark.parametrize("entries", [1, 300, 5000])
def test_sparse_blocks_keep_to_their_size_and_cover_every_item_once(entries):
    similarities = Similarities(power_law(), 10.0, unweighted=True)
    items = np.arange(0, 240, 2)
    blocks = sparse_blocks(similarities, items, entries)
    assert sorted(np.concatenate(blocks)) == items.tolist()
    products = similarities.by_item @ similarities.by_user
    for block in blocks:
        assert len(block) == 1 or np.diff(products.indptr)[block].max() * len(block) <= entries
        assert (np.diff(block) > 0).all()


def test_a_bound_is_reached_by_so_many_entries():
    values = np.random.default_rng(1).random((6, 333)).astype(np.float32)
    for count in (1, 5, 100):
        bound = lower_bounds(neighbours._peaks(values, count), count)
        assert ((values >= bound[:, None]).sum(1) >= count).all()
    assert lower_bounds(values, 400).tolist() == [0.0] * 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ml-100k", "ml-latest-small"])
def test_lists_of_real_logs_are_those_of_a_full_sort(name):
    import caged

    try:
        log = caged.dataset(name)
    except CagedError as error:
        pytest.skip(str(error))
    matrix = csr_matrix((np.ones(len(log)), (log.users, log.items)), shape=(log.user_count, log.item_count))
    for shrinkage in (0.0, 10.0):
        lists, (columns, values) = found(matrix, 100, shrinkage), by_full_sort(matrix, 100, shrinkage)
        np.testing.assert_array_equal(lists.values, values)
        np.testing.assert_array_equal(lists.columns, columns)
