"""Scores of single pairs: the same as in the whole rows, in blocks."""

import numpy as np
import pytest
import torch

from caged.errors import TrainingError
from caged.evaluation import pair_scores as scoring
from caged.evaluation.pair_scores import pair_scores
from caged.graph import Tables
from caged.models.contract import DotScorer

GENERATOR = torch.Generator().manual_seed(1)
TABLES = Tables(torch.randn(30, 8, generator=GENERATOR), torch.randn(50, 8, generator=GENERATOR))
RNG = np.random.default_rng(2)
USERS, ITEMS = np.sort(RNG.integers(0, 30, 200)), RNG.integers(0, 50, 200)


class Rows:
    """Scores without vectors behind them, which notes how many users it was asked for at a time."""

    vectors = None

    def __init__(self):
        self.asked = []

    def __call__(self, users):
        self.asked.append(len(users))
        return DotScorer(TABLES)(users)


@pytest.mark.parametrize("numbers", [1, 40, 1 << 22])
def test_vectors_give_the_scores_of_the_pairs_alone(numbers, monkeypatch):
    monkeypatch.setattr(scoring, "BLOCK_NUMBERS", numbers)
    expected = (TABLES.users @ TABLES.items.T).numpy()[USERS, ITEMS]
    np.testing.assert_allclose(pair_scores(DotScorer(TABLES), USERS, ITEMS), expected, rtol=1e-5, atol=1e-6)


def test_vectors_never_meet_the_whole_catalogue(monkeypatch):
    monkeypatch.setattr(DotScorer, "__call__", lambda *_: pytest.fail("a whole row was scored"))
    assert len(pair_scores(DotScorer(TABLES), USERS, ITEMS)) == len(USERS)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_without_vectors_the_pairs_are_taken_out_of_rows(size, monkeypatch):
    monkeypatch.setattr(scoring, "users_per_block", lambda *_: size)
    scorer = Rows()
    expected = (TABLES.users @ TABLES.items.T).numpy()[USERS, ITEMS]
    np.testing.assert_allclose(pair_scores(scorer, USERS, ITEMS), expected, rtol=1e-5, atol=1e-6)
    assert max(scorer.asked) <= size


def test_no_pairs_have_no_scores():
    assert len(pair_scores(DotScorer(TABLES), np.zeros(0, int), np.zeros(0, int))) == 0


def test_a_score_that_is_no_number_is_an_error():
    broken = Tables(TABLES.users.clone(), TABLES.items.clone())
    broken.items[7] = float("nan")
    with pytest.raises(TrainingError, match="the score of user row 3 for item row 7 is NaN"):
        pair_scores(DotScorer(broken), np.array([1, 3]), np.array([0, 7]))


@pytest.mark.gpu
def test_on_a_device():
    tables = Tables(TABLES.users.cuda(), TABLES.items.cuda())
    expected = pair_scores(DotScorer(TABLES), USERS, ITEMS)
    np.testing.assert_allclose(pair_scores(DotScorer(tables), USERS, ITEMS, device="cuda"), expected, rtol=1e-4)
