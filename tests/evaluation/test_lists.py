import numpy as np
import pytest

from caged.errors import ConfigError, DataError
from caged.evaluation.lists import Lists, check_k


def lists(users, items, scores=None):
    return Lists(np.array(users), np.array(items), scores)


def test_flat_and_back():
    original = lists(
        [1, 4, 6],
        [[3, 0, 2], [5, -1, -1], [0, 1, -1]],
        np.array([[3, 2, 1], [9, -np.inf, -np.inf], [0.5, 0.25, -np.inf]], dtype=np.float32),
    )
    flat = original.flat()
    assert flat.users.tolist() == [1, 1, 1, 4, 6, 6]
    assert flat.items.tolist() == [3, 0, 2, 5, 0, 1]
    assert flat.ranks.tolist() == [1, 2, 3, 1, 1, 2]
    shuffled = np.array([3, 0, 4, 1, 5, 2])  # users in any order, the entries of each user still by rank
    again = Lists.from_flat(flat.users[shuffled], flat.items[shuffled], flat.scores[shuffled])
    assert again.users.tolist() == original.users.tolist()
    assert again.items.tolist() == original.items.tolist()
    np.testing.assert_array_equal(again.scores, original.scores)


def test_lengths_count_what_is_listed():
    table = lists([0, 2, 3], [[1, 2], [0, -1], [-1, -1]])
    assert table.lengths.tolist() == [2, 1, 0]
    assert (len(table), table.width) == (3, 2)


def test_no_lists():
    empty = Lists.from_flat(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert (len(empty), empty.width, empty.lengths.tolist()) == (0, 0, [])


@pytest.mark.parametrize(
    ("users", "items", "sentence"),
    [
        ([1, 0], [[0], [1]], "sorted by user"),
        ([1, 1], [[0], [1]], "sorted by user"),
        ([-1, 1], [[0], [1]], "sorted by user"),
        ([0], [[0], [1]], r"1 users cannot have items of shape \(2, 1\)"),
        ([0], [[-1, 3]], "gap"),
        ([0], [[-2]], "at least 0.*saw -2"),
        ([0, 7], [[1, 2, -1], [3, 5, 3]], "user row 7 names an item twice"),
    ],
)
def test_broken_lists_are_refused(users, items, sentence):
    with pytest.raises(DataError, match=sentence):
        lists(users, items)


def test_scores_must_have_the_shape_of_the_items():
    with pytest.raises(DataError, match="scores"):
        lists([0], [[1, 2]], np.zeros((1, 1), dtype=np.float32))


def test_check_k():
    check_k(1, 3)
    check_k(3, 3)
    for k in (0, 4):
        with pytest.raises(ConfigError, match=rf"k is {k}; allowed are 1\.\.3"):
            check_k(k, 3)
