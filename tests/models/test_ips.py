"""The testable properties of IPS, for every scheme and sampler."""

from __future__ import annotations

import pytest
import torch

from caged.graph import SAMPLERS, BipartiteGraph, Sampler, Tables
from caged.models.contract import EpochContext
from caged.models.ips import CLIPPED, IPS, IPSConfig, clipped, inverse_propensity
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.models.losses import bpr_with_l2, weighted_bpr_with_l2
from tests.graph.graphs import graph_of, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import assert_same_training, padded, prepared, some_batch, trained

SCHEMES = ("ips", *CLIPPED)


def ready(graph, sampler="interaction", **options):
    """As in the first epoch of training."""
    method = prepared(IPS(IPSConfig(embedding_size=4, **options)), graph)
    method.begin_epoch(EpochContext("train", 1, 1, None, sampler=Sampler(graph, 8, sampler)))
    return method


@pytest.mark.parametrize("scheme", SCHEMES)
def test_eta_zero_gives_equal_weights(scheme):
    weights = ready(random_graph(), ips_scheme=scheme, eta=0.0).weights
    assert weights.tolist() == [1.0] * len(weights)


def test_equal_degrees_give_equal_weights():
    graph = graph_of([(u, (u + k) % 6) for u in range(6) for k in range(3)], 6, 6)
    assert ready(graph, eta=1.0).weights.tolist() == [1.0] * 6


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("scheme", ["sn", "sn_batch"])
def test_eta_zero_trains_as_lightgcn_bit_for_bit(scheme, sampler):
    log = skewed()
    method = IPS(IPSConfig(embedding_size=8, ips_scheme=scheme, eta=0.0))
    # 320 interactions: all batches are full, so that the batch mean of ones is exactly one
    assert_same_training(method, LightGCN(LightGCNConfig(embedding_size=8)), log, sampler=sampler)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_never_grow_with_popularity_and_shrink_below_the_clip(scheme):
    graph = BipartiteGraph.from_interactions(skewed())
    weights = ready(graph, ips_scheme=scheme, eta=0.7).weights
    degrees = graph.item_degrees
    top = weights.max()
    for i in range(graph.item_count):
        for j in range(graph.item_count):
            if degrees[i] < degrees[j]:
                assert weights[i] >= weights[j]
                if weights[i] < top:  # below the clip
                    assert weights[i] > weights[j]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sn_has_mean_one_under_what_the_sampler_draws(sampler):
    graph = BipartiteGraph.from_interactions(skewed(user_count=200))
    method = ready(graph, sampler=sampler)
    draws = Sampler(graph, 64, sampler)
    assert float(draws.positive_shares() @ method.weights.double()) == pytest.approx(1, abs=1e-6)
    generator = torch.Generator().manual_seed(0)
    means = []
    for _ in range(30):
        epoch = draws.epoch(generator)
        means.append((epoch.weight * method.weights[epoch.positives.long()]).sum() / len(epoch.users))
    assert torch.stack(means).mean().item() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_training_tells_the_method_its_sampler(sampler):
    log = skewed()
    method, _ = trained(IPS(IPSConfig(embedding_size=4)), log, epochs=1, sampler=sampler)
    shares = Sampler(BipartiteGraph.from_interactions(log), 64, sampler).positive_shares()
    assert float(shares @ method.weights.double()) == pytest.approx(1, abs=1e-6)


def test_shares_of_positives_by_hand():
    """User 0 has items 0, 1; user 1 has item 0; user 2 owns all and is left out."""
    graph = graph_of([(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)], 3, 3)
    assert Sampler(graph, 4, "interaction").positive_shares().tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    for kind in ("user_uniform", "user_equal"):
        assert Sampler(graph, 4, kind).positive_shares().tolist() == pytest.approx([3 / 4, 1 / 4, 0])


def test_the_normalisation_follows_the_sampler_in_place():
    graph = random_graph()
    method = ready(graph)
    buffer, before = method.weights, method.weights.clone()
    method.begin_epoch(EpochContext("train", 2, 1, None, sampler=Sampler(graph, 8, "user_uniform")))
    assert method.weights is buffer
    assert not torch.equal(before, buffer)


def test_cn_has_maximum_one_and_ips_minimum_one():
    graph = random_graph()
    assert ready(graph, ips_scheme="cn").weights.max().item() == 1.0
    assert ready(graph, ips_scheme="ips").weights.min().item() == 1.0


def test_weights_by_hand():
    """Degrees 3, 1, 0: (d + 1) / 4 = 1, 1/2, 1/4, so w = 1, 2, 4 and the median clips 4 to 2."""
    graph = graph_of([(0, 0), (1, 0), (2, 0), (2, 1)], 3, 3)
    assert ready(graph, ips_scheme="ips").weights.tolist() == [1.0, 2.0, 4.0]
    assert ready(graph, ips_scheme="ips", eta=0.5).weights.tolist() == pytest.approx([1.0, 2**0.5, 2.0])
    assert ready(graph, ips_scheme="c").weights.tolist() == [1.0, 2.0, 2.0]
    assert ready(graph, ips_scheme="cn").weights.tolist() == [0.5, 1.0, 1.0]
    assert ready(graph, ips_scheme="sn").weights.tolist() == pytest.approx([0.8, 1.6, 1.6])  # mean over 3 + 1 is 1.25


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.75, 0.9])
def test_no_weight_exceeds_the_clip(quantile):
    weights = inverse_propensity(random_graph().item_degrees, 1.0)
    tau = torch.quantile(weights, quantile)
    assert (clipped(weights, quantile) <= tau + 1e-12).all()
    assert torch.equal(clipped(weights, quantile)[weights <= tau], weights[weights <= tau])


def test_without_a_clip_c_is_ips():
    graph = random_graph()
    unclipped = ready(graph, ips_scheme="c", clip_quantile=1.0).weights
    assert torch.equal(unclipped, ready(graph, ips_scheme="ips").weights)


def test_the_gradient_of_a_triple_is_linear_in_the_weight_of_its_positive_alone():
    graph = random_graph()
    batch = some_batch(graph, size=1)

    def gradient(item, factor):
        method = ready(graph, ips_scheme="ips")
        method.config = IPSConfig(embedding_size=4, ips_scheme="ips", l2=0.0)
        method.weights.fill_(1.0)
        method.weights[item.long()] *= factor
        method.loss(batch).total.backward()
        return torch.cat([table.grad for table in method.encoder.parameters])

    assert batch.positives != batch.negatives
    plain = gradient(batch.positives, 1.0)
    assert plain.abs().max() > 0
    torch.testing.assert_close(gradient(batch.positives, 3.0), 3 * plain)
    assert torch.equal(gradient(batch.negatives, 3.0), plain)


def test_the_l2_term_is_not_weighted():
    graph = random_graph()
    batch = some_batch(graph)
    ours = ready(graph, ips_scheme="ips").loss(batch).parts
    plain = prepared(LightGCN(LightGCNConfig(embedding_size=4)), graph).loss(batch).parts
    assert ours["l2"].item() == plain["l2"].item()
    assert ours["bpr"].item() > plain["bpr"].item()


def test_the_batch_mean_of_sn_batch_is_one_with_padding():
    graph = random_graph()
    method = ready(graph, ips_scheme="sn_batch")
    batch = some_batch(graph)
    weight = method.weights[batch.positives.long()]
    plain = prepared(LightGCN(LightGCNConfig(embedding_size=4)), graph)
    expected = weighted_bpr_with_l2(plain.encoder(), plain.encoder.layer0, batch, weight / weight.mean(), 1e-4)
    assert method.loss(batch).total.item() == pytest.approx(expected.total.item(), rel=1e-6)
    assert method.loss(padded(batch)).total.item() == pytest.approx(expected.total.item(), rel=1e-6)


def test_training_with_weights_recommends_less_popular_items():
    log = skewed(user_count=80, per_user=10)
    degrees = torch.from_numpy(log.item_degrees).double()

    def mean_degree(eta):
        method, _ = trained(IPS(IPSConfig(embedding_size=8, eta=eta, clip_quantile=1.0)), log, epochs=30)
        return degrees[method.scorer()(torch.arange(80)).topk(5).indices].mean().item()

    assert mean_degree(1.0) < mean_degree(0.0)


@pytest.mark.gpu
def test_fused_weighted_loss_equals_the_plain_one():
    graph = random_graph(edges=60)
    batch = padded(some_batch(graph, size=37))
    draw = torch.Generator().manual_seed(5)
    importance = torch.rand(40, generator=draw) + 0.1
    rows = (graph.user_count, graph.item_count) * 2
    plain = [torch.randn(count, 24, generator=draw).requires_grad_() for count in rows]
    fused = [table.detach().cuda().requires_grad_() for table in plain]
    on_gpu = type(batch)(*(part.cuda() for part in batch))
    expected = weighted_bpr_with_l2(Tables(*plain[:2]), Tables(*plain[2:]), batch, importance, 0.3)
    actual = weighted_bpr_with_l2(Tables(*fused[:2]), Tables(*fused[2:]), on_gpu, importance.cuda(), 0.3)
    (expected.total * 1.7).backward()
    (actual.total * 1.7).backward()
    assert actual.total.item() == pytest.approx(expected.total.item(), rel=1e-5)
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad.cpu(), other.grad, rtol=1e-4, atol=1e-6)


def test_importance_of_one_is_the_plain_loss_bit_for_bit():
    graph = random_graph()
    method = prepared(LightGCN(LightGCNConfig(embedding_size=4)), graph)
    batch = some_batch(graph)
    arguments = (method.encoder(), method.encoder.layer0, batch)
    assert torch.equal(weighted_bpr_with_l2(*arguments, torch.ones(16), 0.1).total, bpr_with_l2(*arguments, 0.1).total)
