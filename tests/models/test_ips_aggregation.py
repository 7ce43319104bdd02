"""The testable properties of aggregation weights by inverse popularity, fixed and learned."""

from __future__ import annotations

import pytest
import torch

from caged.errors import ConfigError
from caged.graph import BipartiteGraph, EdgeWeights, Tables, degree_weights
from caged.models.ips_aggregation import (
    IPSAggregation,
    IPSAggregationConfig,
    PopularityScales,
    popularity_weights,
    propagate_scaled,
)
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.seeding import Generators
from caged.training import Interrupted, Loop, TrainConfig, load_checkpoint
from tests.graph.graphs import CORNERS, dense, dense_propagate, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import assert_same_training, prepared, some_batch, trained

EXPONENTS = [-1.0, 0.0, 0.25, 0.5, 1.0, 2.0]
LAYERS = (0.1, 0.2, 0.3, 0.4)


def method_of(**options):
    return IPSAggregation(IPSAggregationConfig(embedding_size=6, **options))


def weights_at(graph, exponent, dtype=torch.float64):
    usual = degree_weights(graph, dtype=dtype)
    scales = PopularityScales(graph, usual)(torch.tensor([exponent], dtype=torch.float64))
    return EdgeWeights(graph, *popularity_weights(graph, usual, scales))


def literally(graph, exponent):
    """(1), node by node."""
    usual = dense(graph, degree_weights(graph, dtype=torch.float64))
    degrees = torch.cat([graph.user_degrees, graph.item_degrees]).double()
    matrix = torch.zeros_like(usual)
    for x in range(len(degrees)):
        near = usual[x] > 0
        shares = degrees[near] ** -exponent
        matrix[x, near] = usual[x].sum() * shares / shares.sum()
    return matrix


# ---------------------------------------------------------------- fixed weights


@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_weights_are_those_of_the_formula_with_the_row_sums_of_lightgcn(name, exponent):
    graph = CORNERS[name]()
    found = dense(graph, weights_at(graph, exponent))
    torch.testing.assert_close(found, literally(graph, exponent))
    usual = dense(graph, degree_weights(graph, dtype=torch.float64))
    torch.testing.assert_close(found.sum(1), usual.sum(1))


def test_one_half_is_lightgcn_bit_for_bit():
    graph = BipartiteGraph.from_interactions(skewed())
    half, usual = weights_at(graph, 0.5, torch.float32), degree_weights(graph)
    assert torch.equal(half.to_user, usual.to_user)
    assert torch.equal(half.to_item, usual.to_item)


@pytest.mark.parametrize("loss", ["bpr", "softmax"])
@pytest.mark.parametrize("when", ["training", "inference"])
def test_one_half_trains_as_lightgcn_bit_for_bit(when, loss):
    lightgcn = LightGCN(LightGCNConfig(embedding_size=6, loss=loss))
    assert_same_training(method_of(degree_exponent=0.5, when=when, loss=loss), lightgcn, skewed())


def test_at_inference_the_tables_are_those_of_lightgcn_and_the_vectors_are_not():
    log = skewed()
    ours, losses = trained(method_of(degree_exponent=1.0, when="inference"), log)
    plain, plain_losses = trained(LightGCN(LightGCNConfig(embedding_size=6)), log)
    assert losses == plain_losses
    assert torch.equal(ours.encoder.users, plain.encoder.users)
    matrix = literally(ours.encoder.graph, 1.0)
    tables = torch.cat(ours.encoder.layer0).detach().double()
    wanted = dense_propagate(matrix, tables, ours.encoder.layer_weights)
    vectors = torch.cat(ours.scorer().vectors)
    torch.testing.assert_close(vectors.double(), wanted, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(vectors, torch.cat(plain.scorer().vectors))


def test_in_training_the_loss_is_that_of_the_new_weights():
    graph = random_graph()
    batch = some_batch(graph)
    usual, inverse, ranked = (
        prepared(method_of(**options), graph).loss(batch).total.item()
        for options in (
            {"degree_exponent": 0.5},
            {"degree_exponent": 1.0},
            {"degree_exponent": 1.0, "when": "inference"},
        )
    )
    assert usual == ranked
    assert usual != inverse


# ---------------------------------------------------------------- the learned exponent


def random_tables(graph, width=1):
    draw = torch.Generator().manual_seed(4)
    sizes = (graph.user_count, graph.item_count)
    return Tables(*(torch.randn(n, width, generator=draw, dtype=torch.float64, requires_grad=True) for n in sizes))


@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize("exponent", [0.2, 0.5, 1.3])
def test_gradients_of_exponent_and_tables_are_those_of_finite_differences(name, exponent):
    graph = CORNERS[name]()
    usual = degree_weights(graph, dtype=torch.float64)
    scales = PopularityScales(graph, usual)

    def final(users, items, exponent):
        return tuple(propagate_scaled(usual, scales(exponent), Tables(users, items), LAYERS))

    at = torch.tensor([exponent], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(final, (*random_tables(graph), at), eps=1e-6, atol=1e-7, rtol=1e-5)


def test_the_learned_path_is_the_fixed_one():
    """And its loss has the same gradients of the tables."""
    graph = random_graph()
    batch = some_batch(graph)
    found = []
    for options in ({"learned": True}, {}):
        method = prepared(method_of(degree_exponent=0.8, **options), graph)
        loss = method.loss(batch).total
        loss.backward()
        found.append((loss.detach(), method.encoder.users.grad, method.encoder.items.grad))
    for learned, fixed in zip(*found, strict=True):
        torch.testing.assert_close(learned, fixed)


@pytest.mark.parametrize("loss", ["bpr", "softmax"])
def test_training_moves_the_exponent_and_ranks_with_it(loss):
    log = skewed()
    method, losses = trained(method_of(degree_exponent=0.5, learned=True, loss=loss), log, epochs=5)
    found = method.state().tensors["exponent"]
    assert abs(found.item() - 0.5) > 0.01
    assert losses[-1] < losses[0]
    fixed = prepared(method_of(degree_exponent=found.item(), loss=loss), method.encoder.graph)
    fixed.state().copy_from(method.state())
    assert torch.equal(torch.cat(method.scorer().vectors), torch.cat(fixed.scorer().vectors))


def test_the_exponent_descends():
    """A step against its gradient lowers the loss of the batch."""
    graph = random_graph()
    batch = some_batch(graph)
    method = prepared(method_of(degree_exponent=0.5, learned=True, l2=0.0), graph)
    before = method.loss(batch).total
    before.backward()
    with torch.no_grad():
        method.exponent -= 0.5 * method.exponent.grad.sign()
        assert method.loss(batch).total < before


def resumable(folder, epochs_before_stop=None):
    method = method_of(learned=True)
    calls = iter(range(1, 100))
    Loop(
        method,
        BipartiteGraph.from_interactions(skewed()),
        TrainConfig(epochs=3, batch_size=64, learning_rate=0.01),
        Generators(1),
        None,
        folder=folder,
        stored=load_checkpoint(folder),
        stop_requested=lambda: next(calls) == epochs_before_stop,
    ).run()
    return method


def test_a_resumed_run_ends_with_the_same_exponent_and_tables(tmp_path):
    whole = resumable(tmp_path / "whole").state().tensors
    with pytest.raises(Interrupted):
        resumable(tmp_path / "stopped", 2)
    resumed = resumable(tmp_path / "stopped").state().tensors
    assert resumed.keys() == {"users", "items", "exponent"}
    assert all(torch.equal(resumed[name], value) for name, value in whole.items())


def test_the_history_tells_the_exponent():
    seen = []

    class Watch:
        def epoch(self, record):
            seen.append(record["diagnostics"]["exponent"])

    method = method_of(learned=True)
    graph = BipartiteGraph.from_interactions(skewed())
    Loop(method, graph, TrainConfig(epochs=2, batch_size=64), Generators(1), None, observers=(Watch(),)).run()
    assert len(seen) == 2
    assert seen[-1] == method.exponent.item()


# ---------------------------------------------------------------- options, new people


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(ConfigError, match=r"does not depend on the exponent.*method\.when=training"):
        IPSAggregationConfig(learned=True, when="inference")
    with pytest.raises(ConfigError, match=r"method\.layers is 0.*no messages"):
        IPSAggregationConfig(learned=True, layers=0)


def test_when_it_is_lightgcn_it_says_so():
    assert "is LightGCN" in (IPSAggregationConfig(degree_exponent=0.5).neutral() or "")
    assert IPSAggregationConfig(degree_exponent=0.5, learned=True).neutral() is None
    assert IPSAggregationConfig().neutral() is None


@pytest.mark.parametrize("options", [{}, {"when": "inference"}, {"learned": True}, {"loss": "softmax"}])
def test_new_people_get_the_vector_of_their_history_up_to_its_length(options):
    log = skewed()
    method = prepared(method_of(layers=3, degree_exponent=1.5, **options), BipartiteGraph.from_interactions(log))
    encoder, found = method.history_encoder(), method.fold_in()
    assert bool(found.note) == (options != {"loss": "softmax"})
    with torch.no_grad():
        wanted = encoder().users - encoder.layer_weights[0] * encoder.users
    for user in (0, 3, 7):
        history = torch.tensor(log.items[log.users == user])
        mine = found.vectors(history, torch.tensor([len(history)]))[0]
        assert torch.cosine_similarity(mine, wanted[user], dim=0).item() == pytest.approx(1.0, abs=1e-6)
