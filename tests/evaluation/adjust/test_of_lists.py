"""Adjusted lists: equal to adjusted vectors where the lists are whole, and to every possible list for a quota."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from caged.data.seen import Seen
from caged.errors import ConfigError, DataError
from caged.evaluation.adjust import Adjustment
from caged.evaluation.adjust.of_lists import adjusted_lists, check_candidates
from caged.evaluation.adjust.of_scores import adjusted
from caged.evaluation.lists import Lists
from caged.evaluation.topk import top_k
from caged.models import DotScorer
from tests.evaluation.adjust.worlds import ITEMS, USERS, skewed_log, vectors


def whole_lists() -> Lists:
    return top_k(DotScorer(vectors()), np.arange(USERS), ITEMS)


def unseen_lists() -> Lists:
    return top_k(DotScorer(vectors()), np.arange(USERS), ITEMS, seen=Seen(skewed_log()))


@pytest.mark.parametrize("strength", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("lists", [whole_lists, unseen_lists])
def test_whole_lists_end_like_the_vectors(lists: object, strength: float) -> None:
    """Seen items in the lists do not count for the spread, whether they are listed or not."""
    log, how = skewed_log(), Adjustment("degree", strength)
    seen = None if lists is whole_lists else Seen(log)
    wanted = top_k(adjusted(DotScorer(vectors()), log, how), np.arange(USERS), 10, seen=seen)
    found = adjusted_lists(lists(), log, how, 10).lists  # type: ignore[operator]
    assert found.items.tolist() == wanted.items.tolist()
    assert found.scores is not None
    np.testing.assert_allclose(found.scores, wanted.scores, atol=2e-6)


@pytest.mark.parametrize("form", ["degree", "quota"])
def test_strength_zero_changes_nothing(form: str) -> None:
    found = adjusted_lists(whole_lists(), skewed_log(), Adjustment(form, 0.0), 10).lists  # type: ignore[arg-type]
    assert found.items.tolist() == whole_lists().items[:, :10].tolist()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.75, 1.0])
def test_a_quota_gives_the_best_list_there_is(share: float) -> None:
    """Every choice of 4 out of 9 candidates is tried: none that meets the quota has a larger sum of scores."""
    log = skewed_log()
    lists = Lists(whole_lists().users, whole_lists().items[:, :9], np.asarray(whole_lists().scores)[:, :9])
    found = adjusted_lists(lists, log, Adjustment("quota", share), 4)
    niche, short = log.item_groups.niche, 0
    for row in range(USERS):
        items, scores = lists.items[row], np.asarray(lists.scores)[row]
        wanted = min(int(np.ceil(4 * share)), int(niche[items].sum()))
        short += int(niche[items].sum()) < np.ceil(4 * share)
        meeting = [list(one) for one in combinations(range(9), 4) if niche[items[list(one)]].sum() >= wanted]
        best = max(meeting, key=lambda one: scores[one].sum())
        assert sorted(found.lists.items[row].tolist()) == sorted(items[best].tolist())
        assert (np.diff(np.asarray(found.lists.scores)[row]) <= 0).all()
    assert found.short_of_niche == short


def test_a_quota_that_is_met_changes_nothing() -> None:
    lists, log = whole_lists(), skewed_log()
    share = float(log.item_groups.niche[lists.items[:, :10]].mean(axis=1).min())
    found = adjusted_lists(lists, log, Adjustment("quota", share), 10)
    assert found.lists.items.tolist() == lists.items[:, :10].tolist()
    assert found.short_of_niche == 0


def test_too_few_niche_candidates_are_all_taken_and_the_list_is_counted() -> None:
    log = skewed_log()
    popular, rare = np.flatnonzero(log.item_groups.popular), np.flatnonzero(log.item_groups.niche)
    items = np.array([[*popular[:4], rare[0], popular[4]]])
    found = adjusted_lists(Lists(np.array([0]), items), log, Adjustment("quota", 1.0), 3)
    assert found.lists.items.tolist() == [[popular[0], popular[1], rare[0]]]
    assert found.short_of_niche == 1


def test_shorter_lists_keep_their_padding_last() -> None:
    lists = Lists(np.array([0, 1]), np.array([[3, 5, 1], [2, -1, -1]]), np.array([[3.0, 2, 1], [1, -np.inf, -np.inf]]))
    for form in ("degree", "quota"):
        found = adjusted_lists(lists, skewed_log(), Adjustment(form, 0.5), 3).lists  # type: ignore[arg-type]
        assert found.lengths.tolist() == [3, 1]


def test_lists_without_scores_cannot_be_adjusted_by_degree() -> None:
    with pytest.raises(ConfigError, match="ranks only"):
        adjusted_lists(Lists(np.array([0]), np.array([[1, 2]])), skewed_log(), Adjustment("degree", 0.5), 2)


def test_infinite_scores_are_refused() -> None:
    lists = Lists(np.array([0]), np.array([[1, 2]]), np.array([[np.inf, 1.0]]))
    with pytest.raises(DataError, match="infinite"):
        adjusted_lists(lists, skewed_log(), Adjustment("degree", 0.5), 2)


def test_norm_is_nothing_for_lists() -> None:
    with pytest.raises(ConfigError, match="needs vectors"):
        adjusted_lists(whole_lists(), skewed_log(), Adjustment("norm", 0.5), 2)


def test_short_lists_are_refused_with_the_length_that_is_needed() -> None:
    check_candidates(whole_lists(), 8, "lists.csv")
    with pytest.raises(DataError, match=r"hold 40 items .* at least 45 candidates"):
        check_candidates(whole_lists(), 9, "lists.csv")
