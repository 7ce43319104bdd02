from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from caged.data.seen import Seen
from caged.errors import ConfigError, DataError, TrainingError
from caged.evaluation import topk
from caged.evaluation.topk import Ranker, top_k
from tests.evaluation.worlds import TOY, interactions

INFINITY = float("inf")


def scorer_of(scores):
    table = torch.as_tensor(scores)
    return lambda users: table[users]


def expected_lists(scores, k, seen):
    """Sorted by (score descending, row ascending), seen items and -inf left out: the definition, one user at a time."""
    return [
        sorted(
            (i for i in range(len(row)) if i not in seen.get(u, ()) and row[i] > -INFINITY), key=lambda i: (-row[i], i)
        )[:k]
        for u, row in enumerate(scores)
    ]


def as_rows(lists):
    return [row[:length].tolist() for row, length in zip(lists.items, lists.lengths, strict=True)]


def test_the_tie_rule_of_the_toy():
    scores = [TOY["ties"]["scores"]]
    for k in range(1, 6):
        assert as_rows(top_k(scorer_of(scores), np.array([0]), k)) == [TOY["ties"]["order"][:k]]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 12), st.integers(1, 14), st.integers(1, 4))
def test_ties_masks_and_blocks_against_the_definition(seed, user_count, item_count, k, distinct):
    """Scores from a handful of values tie everywhere; -inf, +inf and both zeros are among them."""
    rng = np.random.default_rng(seed)
    levels = rng.permutation([0.0, -0.0, 1.5, -2.0, INFINITY, -INFINITY])[: distinct + 1]
    scores = rng.choice(levels, size=(user_count, item_count)).astype(np.float32)
    parts = [
        {u: set(np.flatnonzero(rng.random(item_count) < share).tolist()) for u in range(user_count)}
        for share in (0.3, rng.choice([0.0, 0.2, 1.0]))
    ]
    seen = {u: parts[0][u] | parts[1][u] for u in range(user_count)}
    masks = [interactions(part, user_count, item_count) for part in parts]
    for block in (None, 1, 2, user_count):
        lists = top_k(scorer_of(scores), np.arange(user_count), k, seen=Seen(*masks), block=block)
        assert as_rows(lists) == expected_lists(scores, k, seen)
        assert lists.width == min(k, item_count)
        flat = lists.flat()
        np.testing.assert_array_equal(flat.scores, scores[flat.users, flat.items])


@pytest.mark.parametrize("k", [1, 2, 7])
def test_all_equal_scores_list_the_first_rows(k):
    lists = top_k(scorer_of(np.zeros((3, 7), dtype=np.float32)), np.arange(3), k)
    assert as_rows(lists) == [list(range(k))] * 3


def test_a_tie_at_the_cut_takes_the_smallest_rows_in_a_large_catalogue():
    """Large enough for topk to split its work; one item above the tie, at the end."""
    scores = np.ones((2, 5000), dtype=np.float32)
    scores[:, -1] = 2.0
    scores[1, 0] = 0.0
    lists = top_k(scorer_of(scores), np.arange(2), 100)
    assert as_rows(lists) == [[4999, *range(99)], [4999, *range(1, 100)]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_random_scores_in_any_precision(dtype):
    scores = torch.randn(40, 300, generator=torch.Generator().manual_seed(0)).to(dtype)
    lists = top_k(scorer_of(scores), np.arange(40), 20)
    assert as_rows(lists) == expected_lists(scores.double().tolist(), 20, {})
    assert lists.scores.dtype == np.float32


def test_scores_that_differ_beyond_float32_are_ordered_by_their_own_precision():
    scores = torch.tensor([[1.0, 1.0 + 1e-12]], dtype=torch.float64)
    assert as_rows(top_k(scorer_of(scores), np.array([0]), 1)) == [[1]]


def test_users_are_a_sorted_set_and_masks_follow_their_rows():
    scores = np.tile(np.array([5, 4, 3, 2], dtype=np.float32), (6, 1))
    mask = interactions({1: {0}, 4: {0, 1, 2, 3}, 5: {1}}, 6, 4)
    lists = top_k(scorer_of(scores), np.array([5, 1, 5, 4]), 2, seen=Seen(mask))
    assert lists.users.tolist() == [1, 4, 5]
    assert as_rows(lists) == [[1, 2], [], [0, 2]]
    assert lists.items[1].tolist() == [-1, -1]
    assert (lists.scores[1] == -INFINITY).all()


def test_a_catalogue_shorter_than_k_gives_lists_as_long_as_it():
    lists = top_k(scorer_of(np.array([[1, 3, 2]], dtype=np.float32)), np.array([0]), 50)
    assert lists.items.tolist() == [[1, 2, 0]]


def test_nobody_asked():
    lists = top_k(scorer_of(np.zeros((2, 3))), np.zeros(0, dtype=np.int64), 5)
    assert (len(lists), lists.flat().items.tolist()) == (0, [])


def test_relabelling_items_permutes_tie_free_lists():
    rng = np.random.default_rng(2)
    scores = rng.permutation(8 * 30).reshape(8, 30).astype(np.float32)
    new_row = rng.permutation(30)
    relabelled = np.empty_like(scores)
    relabelled[:, new_row] = scores
    one = top_k(scorer_of(scores), np.arange(8), 10)
    other = top_k(scorer_of(relabelled), np.arange(8), 10)
    np.testing.assert_array_equal(new_row[one.items], other.items)
    np.testing.assert_array_equal(one.scores, other.scores)


def test_relabelling_users_permutes_lists():
    scores = np.random.default_rng(3).random((9, 12)).astype(np.float32)
    new_row = np.random.default_rng(4).permutation(9)
    relabelled = np.empty_like(scores)
    relabelled[new_row] = scores
    one, other = (top_k(scorer_of(table), np.arange(9), 4) for table in (scores, relabelled))
    np.testing.assert_array_equal(other.items[new_row], one.items)


def test_a_scorer_that_returns_views_of_its_own_table_is_not_damaged():
    popularity = torch.tensor([1.0, 3.0, 2.0])
    mask = interactions({0: {1}, 1: {2}}, 2, 3)
    lists = top_k(lambda users: popularity.expand(len(users), 3), np.arange(2), 2, seen=Seen(mask))
    assert as_rows(lists) == [[2, 0], [1, 0]]
    assert popularity.tolist() == [1.0, 3.0, 2.0]
    table = torch.tensor([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0]])
    top_k(lambda users: table[users[0] : users[-1] + 1], np.arange(2), 2, seen=Seen(mask))
    assert table.tolist() == [[1.0, 3.0, 2.0]] * 2


def test_a_ranker_can_be_used_again():
    mask = interactions({0: {1}}, 2, 3)
    rank = Ranker(np.arange(2), 1, seen=Seen(mask))
    up, down = np.array([[1.0, 2, 3]] * 2), np.array([[2.0, 3, 1]] * 2)
    assert [as_rows(rank(scorer_of(table))) for table in (up, down, up)] == [
        [[2], [2]],
        [[0], [1]],
        [[2], [2]],
    ]


def test_blocks_hold_about_the_stated_amount_of_scores(monkeypatch):
    monkeypatch.setattr(topk, "SCORE_BLOCK_BYTES", 4 * 5 * 3)  # three users of five items
    monkeypatch.setattr(topk, "LEAST_USERS", 1)
    asked = []

    def scorer(users):
        asked.append(users.tolist())
        return torch.zeros(len(users), 5)

    top_k(scorer, np.arange(7), 2, seen=Seen(interactions({}, 7, 5)))
    assert asked == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize(("free", "users"), [(10**9, 64), (16 * 400 * 7, 7), (0, 1)])
def test_long_rows_get_enough_users_per_block_within_a_share_of_the_free_memory(monkeypatch, free, users):
    monkeypatch.setattr(topk, "SCORE_BLOCK_BYTES", 400)  # one user of a hundred items
    monkeypatch.setattr(topk, "_free_memory", lambda device: free)
    asked = []

    def scorer(rows):
        asked.append(len(rows))
        return torch.zeros(len(rows), 100)

    top_k(scorer, np.arange(64), 2, seen=Seen(interactions({}, 64, 100)))
    assert max(asked) == users
    assert sum(asked) == 64


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(30, 90), st.integers(1, 6), st.integers(2, 40))
def test_ranking_by_groups_is_the_definition(seed, item_count, k, distinct):
    """The path of long catalogues, on short ones: ties inside groups, between groups and in the remainder."""
    rng = np.random.default_rng(seed)
    levels = np.concatenate([[-INFINITY, -0.0, 0.0, INFINITY], rng.normal(size=distinct)])
    scores = rng.choice(levels, size=(4, item_count)).astype(np.float32)
    seen = {u: set(np.flatnonzero(rng.random(item_count) < 0.3).tolist()) for u in range(4)}
    with mock.patch.multiple(topk, GROUPED_FROM=1, GROUP_SIZE=4):
        lists = top_k(scorer_of(scores), np.arange(4), k, seen=Seen(interactions(seen, 4, item_count)))
    assert as_rows(lists) == expected_lists(scores, k, seen)


def test_a_large_catalogue_is_ranked_as_topk_does():
    scores = torch.randn(3, topk.GROUPED_FROM + 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    scores[0, -1] = 100.0  # in the columns that fill no group
    lists = top_k(lambda users: scores[users], np.arange(3), 50)
    np.testing.assert_array_equal(lists.items, torch.topk(scores, 50, dim=1).indices.numpy())


def test_nan_in_a_large_catalogue_is_found():
    scores = torch.zeros(2, topk.GROUPED_FROM)
    scores[1, 12_345] = torch.nan
    with pytest.raises(TrainingError, match="score of user row 1 is NaN"):
        top_k(lambda users: scores[users], np.arange(2), 3)


def test_scores_in_any_memory_order_are_masked_right():
    table = torch.arange(12, dtype=torch.float32).view(4, 3)
    mask = interactions({0: {3}, 2: {0, 1}}, 3, 4)
    lists = top_k(lambda users: (table * 1.0)[:, users].T, np.arange(3), 2, seen=Seen(mask))
    assert as_rows(lists) == [[2, 1], [3, 2], [3, 2]]


def test_gradients_are_not_tracked():
    weights = torch.ones(2, 3, requires_grad=True)
    top_k(lambda users: weights[users] * 2, np.arange(2), 1, seen=Seen(interactions({0: {0}}, 2, 3)))
    assert weights.grad is None


@pytest.mark.parametrize("k", [1, 3])
def test_nan_is_an_error_that_names_the_user(k):
    scores = np.zeros((6, 3), dtype=np.float32)
    scores[4, 2] = np.nan
    with pytest.raises(TrainingError, match="score of user row 4 is NaN"):
        top_k(scorer_of(scores), np.array([1, 4, 5]), k)


def test_wrong_requests_are_explained():
    scores = scorer_of(np.zeros((2, 3), dtype=np.float32))
    with pytest.raises(ConfigError, match="k is 0"):
        top_k(scores, np.arange(2), 0)
    with pytest.raises(ConfigError, match="block is 0"):
        top_k(scores, np.arange(2), 1, block=0)
    with pytest.raises(DataError, match="user row -1"):
        top_k(scores, np.array([-1, 0]), 1)
    with pytest.raises(DataError, match=r"user row 5 .* 0\.\.1"):
        top_k(scores, np.array([5]), 1, seen=Seen(interactions({}, 2, 3)))
    with pytest.raises(DataError, match=r"shape \(2, 3\) for 2 users and 4 items"):
        top_k(scores, np.arange(2), 1, seen=Seen(interactions({}, 2, 4)))
    with pytest.raises(DataError, match="share their users and items"):
        Seen(interactions({}, 2, 3), interactions({}, 2, 4))


@pytest.mark.gpu
def test_the_device_does_not_change_lists():
    rng = np.random.default_rng(5)
    scores = torch.from_numpy(rng.choice([-0.0, 0.0, 1.0, 2.5, -INFINITY], size=(60, 500)).astype(np.float32))
    mask = interactions({u: set(rng.permutation(500)[:50].tolist()) for u in range(60)}, 60, 500)
    on_gpu = scores.cuda()
    one = top_k(lambda users: scores[users], np.arange(60), 100, seen=Seen(mask), block=7)
    other = top_k(lambda users: on_gpu[users], np.arange(60), 100, seen=Seen(mask), device="cuda")
    np.testing.assert_array_equal(one.items, other.items)
