"""The estimator: its shape, its bound, and scoring in chunks against a literal reading of the equations."""

from __future__ import annotations

import math

import pytest
import torch

import caged.models.caged.estimator as module
from caged.graph import Tables
from caged.models.caged.diagnostics import largest_singular_value, quantiles, rank_correlation
from caged.models.caged.estimator import (
    Estimator,
    Network,
    PairBatch,
    Terms,
    elbo,
    hidden_widths,
    kl_to_standard_normal,
)
from caged.models.caged.sides import Pairs, sides_of
from tests.graph.graphs import dense, random_graph, random_weights

K = 4


def estimator(layers=2, seed=0, learning_rate=1e-3, averaged=False):
    network = Network(K, layers, torch.device("cpu"), torch.Generator().manual_seed(seed))
    noise = torch.Generator().manual_seed(seed + 1)
    return Estimator(network, learning_rate=learning_rate, averaged=averaged, precision="auto", noise=noise)


def some_vectors(graph, seed=5):
    draw = torch.Generator().manual_seed(seed)
    return Tables(*(torch.randn(count, K, generator=draw) for count in (graph.user_count, graph.item_count)))


def literal_terms(network, e_x, e_c, tau, averaged=False):
    """Both terms for one pair, on the whole matrices: Enc([e_x ; e_c]) and Dec([z ; e_c]) as the paper writes them."""
    hidden = torch.cat((e_x, e_c))
    last = len(network.encoder) - 1
    for number, layer in enumerate(network.encoder):
        hidden = layer.weight @ hidden + layer.bias
        if number < last:
            hidden = torch.tanh(hidden)
    mu = network.mean.weight @ hidden + network.mean.bias
    log_variance = network.log_variance.weight @ hidden + network.log_variance.bias
    z = mu if tau is None else mu + tau * torch.exp(log_variance / 2)
    hidden = torch.cat((z, e_c))
    for layer in network.decoder:
        hidden = torch.tanh(layer.weight @ hidden + layer.bias)
    error = (e_x - (network.output.weight @ hidden + network.output.bias)) ** 2
    kl = sum(0.5 * (m**2 + math.exp(v) - v - 1) for m, v in zip(mu.tolist(), log_variance.tolist(), strict=True))
    return float(error.mean() if averaged else error.sum()), kl


# ---------------------------------------------------------------- 7. chunks against the literal reading


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("sample", [True, False])
@torch.no_grad()
def test_7_chunked_scoring_equals_a_dense_reference_in_both_directions(layers, sample, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)
    graph = random_graph(edges=60)
    vectors = some_vectors(graph)
    mine = estimator(layers)
    terms = Terms(0.7, 0.3)
    tables = {"to_user": (vectors.items, vectors.users), "to_item": (vectors.users, vectors.items)}
    for side in sides_of(graph, random_weights(graph, dtype=torch.float32)):
        neighbours, centres = tables[side.name]
        draws = torch.Generator()
        draws.set_state(mine.noise.get_state())
        found = mine.score(neighbours, centres, side.edges, terms, sample=sample)
        expected = torch.full((len(centres), len(neighbours)), math.nan)
        recon, kl = [], []
        for edge, (x, c) in enumerate(zip(*(part.tolist() for part in side.edges), strict=True)):
            if sample and edge % 7 == 0:
                taus = torch.randn(min(7, graph.edge_count - edge), K, generator=draws)
            parts = literal_terms(mine.network, neighbours[x], centres[c], taus[edge % 7] if sample else None)
            recon.append(parts[0])
            kl.append(parts[1])
            expected[c, x] = terms.recon * parts[0] + terms.kl * parts[1]
        chosen = expected[side.edges.centres.long(), side.edges.neighbours.long()]
        torch.testing.assert_close(found.loss, chosen, rtol=1e-5, atol=1e-5)
        assert int(torch.isfinite(expected).sum()) == graph.edge_count
        assert found.recon.item() == pytest.approx(sum(recon) / len(recon), rel=1e-5)
        assert found.kl.item() == pytest.approx(sum(kl) / len(kl), rel=1e-4)


@torch.no_grad()
def test_7_the_two_directions_of_an_edge_differ():
    graph = random_graph(edges=60)
    vectors = some_vectors(graph)
    mine = estimator()
    to_user, to_item = sides_of(graph, random_weights(graph, dtype=torch.float32))
    one = mine.score(vectors.items, vectors.users, to_user.edges, Terms(1, 0), sample=False)
    other = mine.score(vectors.users, vectors.items, to_item.edges, Terms(1, 0), sample=False)
    assert ((one.loss - other.loss).abs() > 1e-3).all()


def test_7_the_size_of_a_chunk_does_not_matter(monkeypatch):
    graph = random_graph(edges=60)
    vectors = some_vectors(graph)
    edges = Pairs(graph.items, graph.users)
    scores = []
    for size in (1, 16, 10_000):
        monkeypatch.setattr(module, "CHUNK", size)
        scores.append(estimator().score(vectors.items, vectors.users, edges, Terms(1, 1), sample=False))
    for found in scores[1:]:
        torch.testing.assert_close(found.loss, scores[0].loss)
        assert found.active_units == scores[0].active_units


def test_averaging_divides_the_squared_error_by_the_width():
    graph = random_graph()
    vectors = some_vectors(graph)
    edges = Pairs(graph.items, graph.users)
    summed, averaged = (
        estimator(averaged=flag).score(vectors.items, vectors.users, edges, Terms(1, 0), sample=False).loss
        for flag in (False, True)
    )
    torch.testing.assert_close(averaged * K, summed)


# ---------------------------------------------------------------- 6. the KL term and training


def test_6_kl_is_zero_only_for_the_prior():
    zero = torch.zeros(1, K)
    assert kl_to_standard_normal(zero, zero).item() == 0
    draw = torch.Generator().manual_seed(0)
    mean, log_variance = torch.randn(2, 500, K, generator=draw)
    assert (kl_to_standard_normal(mean, log_variance) > 0).all()
    assert kl_to_standard_normal(zero + 1e-4, zero).item() >= -1e-7


def test_6_kl_equals_a_monte_carlo_estimate():
    """E_q[log q(z) - log p(z)] over a million draws of z."""
    mean, log_variance = torch.tensor([[0.7, -1.2]]), torch.tensor([[-0.5, 0.8]])
    sigma = torch.exp(log_variance / 2)
    z = mean + sigma * torch.randn(10**6, 2, generator=torch.Generator().manual_seed(1))
    posterior = torch.distributions.Normal(mean, sigma).log_prob(z).sum(1)
    prior = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(1)
    estimate = (posterior - prior).mean().item()
    assert kl_to_standard_normal(mean, log_variance).item() == pytest.approx(estimate, rel=5e-3)


def test_6_training_lowers_the_loss_on_fixed_embeddings():
    graph = random_graph(edges=80)
    vectors = some_vectors(graph)
    mine = estimator(learning_rate=5e-3)
    losses = []
    for _ in range(60):
        total = torch.zeros(2)
        for edges, real in zip(*mine.shuffled_batches(graph.edge_count, 16), strict=True):
            pairs = Pairs(graph.items[edges], graph.users[edges])
            total += mine.step(vectors.items, vectors.users, PairBatch(pairs, real), Terms(1, 1))
        losses.append(total.sum().item())
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_beta_0_in_training_lets_the_posterior_shrink():
    """Without a prior the noise only disturbs: sigma goes down, and the KL term up."""
    graph = random_graph(edges=80)
    vectors = some_vectors(graph)
    edges = Pairs(graph.items, graph.users)

    def kl_after(terms):
        mine = estimator(learning_rate=5e-3)
        batch = PairBatch(edges, torch.ones(graph.edge_count))
        for _ in range(300):
            mine.step(vectors.items, vectors.users, batch, terms)
        return mine.score(vectors.items, vectors.users, edges, Terms(1, 1), sample=False).kl.item()

    assert kl_after(Terms(1, 0)) > 2 * kl_after(Terms(1, 1))


# ---------------------------------------------------------------- the network and its steps


@pytest.mark.parametrize(("layers", "encoder"), [(1, [(8, 8)]), (2, [(8, 8), (8, 8)]), (3, [(8, 8), (8, 16), (16, 8)])])
def test_layers_of_the_network(layers, encoder):
    network = Network(K, layers, torch.device("cpu"), torch.Generator())
    shapes = [(layer.in_features, layer.out_features) for layer in network.encoder]
    assert shapes == encoder
    assert [(layer.in_features, layer.out_features) for layer in network.decoder] == encoder
    assert network.mean.weight.shape == network.log_variance.weight.shape == network.output.weight.shape == (4, 8)


def test_the_number_of_weights_is_46_k_squared():
    """24 K^2 in the encoder with its heads, 22 K^2 in the decoder, at three layers."""
    network = Network(K, 3, torch.device("cpu"), torch.Generator())
    matrices = [values for values in network.parameters() if values.ndim == 2]
    assert sum(values.numel() for values in matrices) == 46 * K**2
    assert hidden_widths(256, 4) == [512, 1024, 1024, 512]


def test_initial_values_are_pytorchs_default_from_the_given_generator():
    before = torch.random.get_rng_state()
    network = Network(64, 1, torch.device("cpu"), torch.Generator().manual_seed(1))
    assert torch.equal(torch.random.get_rng_state(), before)
    weight = network.encoder[0].weight
    bound = 1 / math.sqrt(128)
    assert 0.99 * bound < weight.abs().max().item() <= bound
    assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    again = Network(64, 1, torch.device("cpu"), torch.Generator().manual_seed(1))
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), again.parameters(), strict=True))


def test_one_step_is_the_gradient_of_the_literal_loss():
    """A first Adam step moves every parameter by the learning rate against the sign of its gradient."""
    graph = random_graph(edges=40)
    vectors = some_vectors(graph)
    mine, other = estimator(), estimator()
    edges = torch.arange(10)
    pairs = Pairs(graph.items[edges], graph.users[edges])
    tau = torch.randn(10, K, generator=other.noise)
    x, c = vectors.items[pairs.neighbours.long()], vectors.users[pairs.centres.long()]
    first, second = other.network.encoder[0], other.network.decoder[0]
    hidden = torch.nn.functional.linear(torch.cat((x, c), 1), first.weight, first.bias)
    condition = torch.nn.functional.linear(torch.cat((0 * x, c), 1), second.weight, second.bias)
    parts = elbo(other.network, x, hidden, condition, tau, averaged=False)
    (0.7 * parts.recon.sum() + 0.3 * parts.kl.sum()).backward()
    sums = mine.step(vectors.items, vectors.users, PairBatch(pairs, torch.ones(10)), Terms(0.7, 0.3))
    torch.testing.assert_close(sums, torch.stack((parts.recon.sum(), parts.kl.sum())).detach())
    for moved, start in zip(mine.network.parameters(), other.network.parameters(), strict=True):
        torch.testing.assert_close(moved.grad, start.grad, rtol=1e-4, atol=1e-5)
        steady = start.grad.abs() > 1e-4
        torch.testing.assert_close((start - moved)[steady], 1e-3 * start.grad.sign()[steady], rtol=1e-2, atol=1e-6)


def test_padding_has_no_say():
    graph = random_graph(edges=40)
    vectors = some_vectors(graph)
    real = torch.arange(16) < 10

    def gradients(padding_edge):
        mine = estimator()
        edges = torch.where(real, torch.arange(16), torch.tensor(padding_edge))
        pairs = Pairs(graph.items[edges], graph.users[edges])
        mine.step(vectors.items, vectors.users, PairBatch(pairs, real.float()), Terms(1, 1))
        return [values.grad for values in mine.network.parameters()]

    for one, other in zip(gradients(0), gradients(5), strict=True):
        torch.testing.assert_close(one, other)


def test_batches_hold_every_edge_once():
    edges, real = estimator().shuffled_batches(37, 8)
    assert edges.shape == real.shape == (5, 8)
    assert sorted(edges[real == 1].tolist()) == list(range(37))
    assert edges[real == 1].tolist() != list(range(37))
    assert real.sum() == 37


def test_moments_exist_before_the_first_step_and_move_with_it():
    mine = estimator()
    before = {name: value.clone() for name, value in mine.state().items()}
    assert all(not value.any() for name, value in before.items() if name.startswith("estimator_adam"))
    graph = random_graph()
    vectors = some_vectors(graph)
    batch = PairBatch(Pairs(graph.items[:8], graph.users[:8]), torch.ones(8))
    mine.step(vectors.items, vectors.users, batch, Terms(1, 1))
    after = mine.state()
    assert after.keys() == before.keys()
    assert all(not torch.equal(after[name], before[name]) for name in before)


# ---------------------------------------------------------------- diagnostics


def test_rank_correlation_equals_scipys():
    from scipy.stats import spearmanr

    draw = torch.Generator().manual_seed(0)
    a, b = torch.randn(200, generator=draw), torch.randint(5, (200,), generator=draw)  # many ties
    assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    assert rank_correlation(b, b) == pytest.approx(1)
    assert math.isnan(rank_correlation(a, torch.ones(200)))


def test_operator_norm_equals_the_largest_singular_value():
    graph = random_graph(edges=60)
    weights = random_weights(graph)
    sides = sides_of(graph, weights)
    matrix = dense(graph, weights)
    blocks = (matrix[: graph.user_count, graph.user_count :], matrix[graph.user_count :, : graph.user_count])
    for side, other, values, block in zip(sides, sides[::-1], (weights.to_user, weights.to_item), blocks, strict=True):
        expected = torch.linalg.matrix_norm(block, 2).item()
        assert largest_singular_value(values, side, other) == pytest.approx(expected, rel=1e-3)


def test_the_operator_norm_of_lightgcn_is_one():
    from caged.graph import degree_weights

    graph = random_graph(edges=60)
    sides = sides_of(graph, degree_weights(graph))
    assert largest_singular_value(sides[0].base, *sides) == pytest.approx(1, abs=1e-6)


def test_quantiles_are_order_statistics():
    values = torch.arange(101.0).flip(0)
    assert quantiles(values) == {"min": 0, "1%": 1, "25%": 25, "50%": 50, "75%": 75, "99%": 99, "max": 100}


def test_active_units_count_the_means_that_vary():
    graph = random_graph(edges=60)
    vectors = some_vectors(graph)
    mine = estimator()
    edges = Pairs(graph.items, graph.users)
    with torch.no_grad():
        mine.network.mean.weight.zero_()
        mine.network.mean.weight[1] = 5.0  # only the second unit depends on the pair
    assert mine.score(vectors.items, vectors.users, edges, Terms(1, 1), sample=False).active_units.item() == 1
