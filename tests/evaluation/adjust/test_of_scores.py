"""Adjusted vectors and scores against the obvious formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.data.ids import Array
from caged.data.seen import Seen
from caged.errors import ConfigError
from caged.evaluation.adjust import Adjustment
from caged.evaluation.adjust.of_scores import adjusted, norms_are_equal, score_spread
from caged.evaluation.topk import top_k
from caged.models import DotScorer
from tests.evaluation.adjust.worlds import ITEMS, USERS, skewed_log, vectors


class NoVectors:
    """The same scores, of a method that is no dot product."""

    vectors = None

    def __init__(self, scorer: DotScorer) -> None:
        self.scorer = scorer

    def __call__(self, users: torch.Tensor) -> torch.Tensor:
        return self.scorer(users)


EVERYBODY = torch.arange(USERS)


def literal_degree(strength: float) -> Array:
    """User by user, item by item, in float64."""
    log, tables = skewed_log(), vectors()
    scores = (tables.users.double() @ tables.items.double().T).numpy()
    new = scores.copy()
    for user in range(USERS):
        owned = set(log.items[log.users == user].tolist())
        spread = np.std([scores[user, item] for item in range(ITEMS) if item not in owned])
        for item in range(ITEMS):
            new[user, item] -= strength * spread * np.log(1 + log.item_degrees[item])
    return new


@pytest.mark.parametrize("strength", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("form", [DotScorer, lambda tables: NoVectors(DotScorer(tables))], ids=["vectors", "scores"])
def test_degree_is_the_formula(form: type[DotScorer], strength: float) -> None:
    found = adjusted(form(vectors()), skewed_log(), Adjustment("degree", strength))(EVERYBODY)
    np.testing.assert_allclose(found.numpy(), literal_degree(strength), atol=2e-6)


@pytest.mark.parametrize("strength", [0.1, 1.0])
def test_norm_is_the_formula(strength: float) -> None:
    tables = vectors()
    found = adjusted(DotScorer(tables), skewed_log(), Adjustment("norm", strength))(EVERYBODY)
    lengths = tables.items.double().norm(dim=1)
    wanted = tables.users.double() @ (tables.items.double() / lengths.unsqueeze(1) ** strength).T
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


def test_degree_stays_a_dot_product_with_one_more_column() -> None:
    scorer = adjusted(DotScorer(vectors()), skewed_log(), Adjustment("degree", 0.2))
    assert scorer.vectors is not None
    assert scorer.vectors.users.shape[1] == vectors().users.shape[1] + 1


@pytest.mark.parametrize("form", ["degree", "norm"])
def test_strength_zero_is_the_very_scorer(form: str) -> None:
    scorer = DotScorer(vectors())
    assert adjusted(scorer, skewed_log(), Adjustment(form, 0.0)) is scorer  # type: ignore[arg-type]


def test_the_share_of_rare_items_rises_with_the_strength() -> None:
    log, scorer = skewed_log(), DotScorer(vectors())

    def rare(strength: float) -> float:
        lists = top_k(adjusted(scorer, log, Adjustment("degree", strength)), np.arange(USERS), 5, seen=Seen(log))
        return float(log.item_groups.niche[lists.items].mean())

    shares = [rare(strength) for strength in np.linspace(0, 1, 11)]
    assert shares == sorted(shares)
    assert shares[-1] > shares[0]


def test_a_zero_vector_stays_one() -> None:
    tables = vectors()
    tables.items[3] = 0
    found = adjusted(DotScorer(tables), skewed_log(), Adjustment("norm", 1.0))(EVERYBODY)
    assert found[:, 3].eq(0).all()


def test_a_user_who_owns_everything_has_no_spread() -> None:
    log = skewed_log()
    full = type(log).build(
        np.concatenate((log.users, np.zeros(ITEMS, dtype=np.int64))),
        np.concatenate((log.items, np.arange(ITEMS))),
        user_ids=log.user_ids,
        item_ids=log.item_ids,
    )
    assert float(score_spread(vectors(), full)[0]) < 1e-6


def test_vectors_of_one_length_are_recognised() -> None:
    items = vectors().items
    assert not norms_are_equal(items)
    assert norms_are_equal(torch.nn.functional.normalize(items, dim=1))


def test_norm_without_vectors_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs vectors"):
        adjusted(NoVectors(DotScorer(vectors())), skewed_log(), Adjustment("norm", 0.5))


def test_quota_changes_no_scores() -> None:
    with pytest.raises(ConfigError, match="adjust the lists instead"):
        adjusted(DotScorer(vectors()), skewed_log(), Adjustment("quota", 0.5))
