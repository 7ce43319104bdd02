"""What scores and ranks of lists in order look like."""

import numpy as np

from caged.evaluation.foreign.ordering import Entries


def oddities(lists, *, rank=False):
    """Of lists of scores, each in list order."""
    local = np.repeat(np.arange(len(lists), dtype=np.uint16), [len(scores) for scores in lists])
    items = np.arange(len(local))
    score = np.concatenate([np.asarray(scores, dtype=np.float64) for scores in lists])
    return Entries(local, items, np.arange(len(local)) if rank else None, score).score_oddities()


def test_falling_scores_are_as_they_should_be():
    assert oddities([[3, 2, 1], [9, 8], [5]]) == {
        "lists_of_several": 2,
        "lists_with_constant_scores": 0,
        "lists_rank_against_score": 0,
        "lists_rank_reversed": 0,
        "rows_with_infinite_scores": 0,
    }


def test_constant_rising_and_infinite_scores_are_counted_by_list():
    found = oddities([[1, 1, 1], [1, 2, 3], [3, 1, 2], [np.inf, 0, -np.inf], [np.inf, np.inf], [7]], rank=True)
    assert found == {
        "lists_of_several": 5,
        "lists_with_constant_scores": 2,
        "lists_rank_against_score": 2,
        "lists_rank_reversed": 1,
        "rows_with_infinite_scores": 4,
    }


def test_neighbours_of_two_lists_are_not_compared():
    assert oddities([[2, 1], [9, 8]], rank=True)["lists_rank_against_score"] == 0


def test_without_scores_there_is_nothing_to_say():
    assert Entries(np.zeros(2, np.uint16), np.arange(2), np.arange(2), None).score_oddities() == {}
