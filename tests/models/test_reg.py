"""The testable properties of Reg, the variant samreg, and the ramp."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from caged.graph import BipartiteGraph, Sampler
from caged.models.contract import EpochContext
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.models.losses import squared_correlation
from caged.models.reg import Reg, RegConfig, popularity_of, watched
from tests.graph.graphs import random_graph
from tests.models.logs import skewed
from tests.models.short_runs import assert_same_training, padded, prepared, some_batch, trained


def mean_weight(size):
    return torch.full((size,), 1 / size, dtype=torch.float64)


def draw(size=50, seed=0):
    return torch.randn(2, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("options", [{"reg_weight": 0.0}, {"reg_variant": "samreg", "samreg_weight": 0.0}])
def test_weight_zero_trains_as_lightgcn_bit_for_bit(options):
    lightgcn = LightGCN(LightGCNConfig(embedding_size=8))
    assert_same_training(Reg(RegConfig(embedding_size=8, **options)), lightgcn, skewed())


@pytest.mark.parametrize("seed", range(20))
def test_the_penalty_lies_between_0_and_1(seed):
    x, y = draw(3, seed)
    assert 0.0 <= squared_correlation(x, y, mean_weight(3)).item() <= 1.0


@pytest.mark.parametrize("slope", [3.0, -0.2])
def test_affine_scores_are_fully_correlated(slope):
    _, popularity = draw()
    assert squared_correlation(slope * popularity + 7, popularity, mean_weight(50)).item() == pytest.approx(1, abs=1e-5)


def test_the_penalty_is_numpys_correlation_squared():
    x, y = draw()
    expected = np.corrcoef(x.numpy(), y.numpy())[0, 1] ** 2
    assert squared_correlation(x, y, mean_weight(50)).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (-30.0, 0.0), (0.5, -1.0)])
def test_invariant_under_affine_maps_of_either_side(a, b):
    x, y = draw()
    expected = squared_correlation(x, y, mean_weight(50)).item()
    assert squared_correlation(a * x + b, y, mean_weight(50)).item() == pytest.approx(expected, rel=1e-6)
    assert squared_correlation(x, a * y + b, mean_weight(50)).item() == pytest.approx(expected, rel=1e-6)


def test_zero_for_a_balanced_design():
    scores_, popularity = torch.cartesian_prod(torch.arange(4.0), torch.tensor([1.0, 10.0, 100.0])).double().T
    assert squared_correlation(scores_, popularity, mean_weight(12)).item() < 1e-6


def test_the_gradient_is_that_of_finite_differences_and_a_step_reduces_the_penalty():
    x, y = draw(10, seed=3)
    x.requires_grad_()
    weight = mean_weight(10)
    before = squared_correlation(x, y, weight)
    assert 0.01 < before.item() < 0.99
    assert torch.autograd.gradcheck(lambda values: squared_correlation(values, y, weight), (x,))
    before.backward()
    assert squared_correlation(x.detach() - 0.1 * x.grad, y, weight).item() < before.item()


def test_batches_without_variance_have_a_finite_gradient():
    for values, popularity in [(torch.ones(4), torch.arange(4.0)), (torch.arange(4.0), torch.ones(4))]:
        values.requires_grad_()
        penalty = squared_correlation(values, popularity, torch.full((4,), 0.25))
        penalty.backward()
        assert penalty.item() == 0.0
        assert torch.isfinite(values.grad).all()


def test_padding_does_not_touch_the_penalty():
    method = prepared(Reg(RegConfig(embedding_size=4)), random_graph())
    batch = some_batch(method.encoder.graph)
    assert method.loss(padded(batch)).parts["correlation"].item() == pytest.approx(
        method.loss(batch).parts["correlation"].item(), rel=1e-5
    )


def batch_correlation(method, log):
    graph = BipartiteGraph.from_interactions(log)
    [batch] = Sampler(graph, graph.edge_count).epoch(torch.Generator().manual_seed(0))
    return method.loss(batch).parts["correlation"].item()


@pytest.mark.parametrize("options", [{}, {"popularity": "log1p"}, {"popularity": "rank"}])
def test_training_with_a_large_weight_leaves_less_correlation(options):
    log = skewed(user_count=80, per_user=10)
    with_it, without = (
        trained(Reg(RegConfig(embedding_size=8, reg_weight=weight, **options)), log, epochs=30)[0]
        for weight in (10.0, 0.0)
    )
    assert batch_correlation(with_it, log) < 0.5 * batch_correlation(without, log)


def test_the_loss_is_that_of_lightgcn_plus_the_penalty():
    graph = random_graph()
    batch = some_batch(graph)
    base = prepared(LightGCN(LightGCNConfig(embedding_size=4)), graph).loss(batch).total.item()
    reg = prepared(Reg(RegConfig(embedding_size=4, reg_weight=0.7)), graph).loss(batch)
    assert reg.total.item() == pytest.approx(base + 0.7 * reg.parts["correlation"].item(), rel=1e-6)
    samreg = prepared(Reg(RegConfig(embedding_size=4, reg_variant="samreg", samreg_weight=0.3)), graph).loss(batch)
    assert samreg.total.item() == pytest.approx(0.7 * base + 0.3 * samreg.parts["correlation"].item(), rel=1e-6)


def test_what_is_watched():
    positive, negative = torch.tensor([2.0, -1.0]), torch.tensor([0.5, 3.0])
    assert torch.equal(watched(positive, negative, "score"), positive)
    torch.testing.assert_close(watched(positive, negative, "samreg"), 1 / (1 + torch.exp(negative - positive)))


def test_popularity_transforms_by_hand():
    degrees = torch.tensor([3, 0, 3, 1], dtype=torch.int32)
    assert popularity_of(degrees, "raw").tolist() == pytest.approx([1, 0, 1, 1 / 3])
    assert popularity_of(degrees, "log1p").tolist() == pytest.approx([1, 0, 1, 0.5])
    assert popularity_of(degrees, "rank").tolist() == pytest.approx([1, 1 / 3.5, 1, 2 / 3.5])  # ranks 3.5, 1, 3.5, 2


def test_the_ramp_is_linear_and_then_stays():
    method = prepared(Reg(RegConfig(embedding_size=4, reg_weight=2.0, ramp_epochs=4)), random_graph())
    buffer = method.strength
    seen = []
    for epoch in range(1, 7):
        method.begin_epoch(EpochContext("train", epoch, 1, None))
        seen.append(method.strength.item())
    assert seen == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]
    assert method.strength is buffer  # a recorded step reads this very buffer


@pytest.mark.parametrize(
    ("option", "value"), [("reg_variant", "samreg"), ("reg_weight", 3.0), ("popularity", "rank"), ("l2", 0.5)]
)
def test_every_option_changes_the_loss(option, value):
    graph = random_graph()
    batch = some_batch(graph)
    before, after = (
        prepared(Reg(RegConfig(embedding_size=4, **options)), graph).loss(batch).total.item()
        for options in ({}, {option: value})
    )
    assert before != after
