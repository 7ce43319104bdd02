"""The reference that benchmarks compare with computes the same thing as the engine."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks import reference
from benchmarks.graphs import SHAPES, Shape, generated
from caged.data.seen import Seen
from caged.evaluation.topk import top_k
from caged.graph import BipartiteGraph, Tables, degree_weights, propagate, uniform_layers
from caged.models.caged.estimator import Network, elbo
from caged.models.contract import DotScorer

LOG = generated(Shape(80, 60, 900))
SEEN = np.split(LOG.items, LOG.user_offsets[1:-1])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_propagation_and_its_gradient_are_the_same():
    graph = BipartiteGraph.from_interactions(LOG)
    adjacency = reference.normalized_adjacency(LOG.users, LOG.items, 80, 60)
    model = reference.LightGCN(adjacency, 80, 60, width=8, layers=3)
    tables = Tables(*(part.weight.detach().clone().requires_grad_() for part in (model.users, model.items)))
    ours, plain = propagate(degree_weights(graph), tables, uniform_layers(3)), model()
    for mine, theirs in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    seed = [torch.randn_like(part) for part in plain]
    torch.autograd.backward(ours, seed)
    torch.autograd.backward(plain, seed)
    torch.testing.assert_close(tables.users.grad, model.users.weight.grad, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(tables.items.grad, model.items.weight.grad, rtol=1e-5, atol=1e-6)


def test_lists_are_the_same():
    generator = torch.Generator().manual_seed(0)
    vectors = Tables(*(torch.randn(rows, 8, generator=generator) for rows in (80, 60)))
    ours = top_k(DotScorer(vectors), np.arange(80), 5, seen=Seen(LOG))
    plain = reference.top_k(*(part.numpy() for part in vectors), SEEN, 5, block=7)
    np.testing.assert_array_equal(ours.items, plain)


def test_the_python_sampler_draws_what_it_should():
    triples = reference.sample_epoch([part.tolist() for part in SEEN], 60, 500, seed=3)
    owned = set(zip(LOG.users.tolist(), LOG.items.tolist(), strict=True))
    assert triples.shape == (500, 3)
    assert all((user, positive) in owned for user, positive, _ in triples.tolist())
    assert not any((user, negative) in owned for user, _, negative in triples.tolist())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_on_it_lowers_the_loss():
    torch.manual_seed(0)
    adjacency = reference.normalized_adjacency(LOG.users, LOG.items, 80, 60)
    model = reference.LightGCN(adjacency, 80, 60, width=8, layers=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    triples = reference.sample_epoch([part.tolist() for part in SEEN], 60, 900, seed=3)
    losses = [reference.train_steps(model, optimizer, triples, 300, 1e-4) for _ in range(4)]
    assert losses[-1] < losses[0]


def test_the_literal_autoencoder_has_the_terms_of_the_estimator():
    """With z at its mean, which a variance of zero gives: the clamp at -10 leaves sigma = 0.007."""
    network = Network(8, 3, torch.device("cpu"), torch.Generator().manual_seed(0))
    literal = reference.PairAutoencoder(8)
    pairs = zip(
        [*network.encoder, network.mean, network.log_variance, *network.decoder, network.output],
        [layer for layer in literal.modules() if isinstance(layer, torch.nn.Linear)],
        strict=True,
    )
    x, c = torch.randn(2, 50, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        network.log_variance.weight.zero_()
        network.log_variance.bias.fill_(-10.0)
        for mine, theirs in pairs:
            theirs.weight.copy_(mine.weight)
            theirs.bias.copy_(mine.bias)
        hidden = network.from_neighbour(x) + network.from_centre(c)
        ours = elbo(network, x, hidden, network.condition(c), None, averaged=False)
        recon, kl = literal(x, c)
    torch.testing.assert_close(recon, ours.recon, rtol=0.02, atol=0)
    torch.testing.assert_close(kl, ours.kl)


def test_a_literal_update_moves_the_weights_of_both_directions():
    model = reference.PairAutoencoder(8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    vectors = tuple(torch.randn(rows, 8, generator=torch.Generator().manual_seed(0)) for rows in (80, 60))
    edges = tuple(torch.tensor(part) for part in (LOG.users, LOG.items))
    weights = (torch.ones(len(LOG)), torch.ones(len(LOG)))
    before = [values.detach().clone() for values in model.parameters()]
    reference.update_weights(model, optimizer, vectors, edges, weights, 200, 0.25)
    assert all(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    for values in weights:
        assert ((values >= 0.75) & (values <= 1.0)).all()
    assert not torch.equal(*weights)


def test_generated_graphs_have_exactly_the_stated_size():
    shape = SHAPES["tiny"]
    log = generated(shape)
    assert (log.user_count, log.item_count, len(log)) == shape[:3]
    assert np.array_equal(generated(shape).items, log.items)
    degrees = np.sort(log.item_degrees)[::-1]
    assert degrees[: len(degrees) // 5].sum() > 0.3 * len(log)  # a head
