"""AdvDrop's adversary: edge probabilities, the ARM estimator, and gradients that no autograd computes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from caged.graph import Tables
from caged.models.advdrop.adversary import Adversary, DirectedEdges, arm_gradient, arm_masks
from tests.graph.graphs import CORNERS, graph_of, random_graph

WIDTH, ATT_DIM = 6, 4
CENTERS = ["sender", "receiver"]


def adversary_on(graph, center="sender", seed=0, scale=1.0):
    made = Adversary(
        DirectedEdges(graph, center),
        embedding_size=WIDTH,
        width=ATT_DIM,
        learning_rate=0.01,
        start=torch.Generator().manual_seed(seed),
    )
    made.weight.data.mul_(scale)
    return made


def tables_for(graph, seed=1):
    draw = torch.Generator().manual_seed(seed)
    return Tables(
        *(torch.randn(n, WIDTH, generator=draw).to(graph.device) for n in (graph.user_count, graph.item_count))
    )


def by_definition(adversary, graph, tables, center):
    """(1) and (2) edge by edge, in float64, differentiable in the maps."""
    rows = F.normalize(torch.cat(tables).double(), dim=1)
    maps = rows @ adversary.weight.T.double() + adversary.bias.double()
    q, k = maps.chunk(2, dim=1)
    users, items = graph.users.tolist(), [item + graph.user_count for item in graph.items.tolist()]
    entries = [*zip(users, items, strict=True), *zip(items, users, strict=True)]  # (receiver, sender)
    alpha = torch.stack([q[c] @ k[r] for r, c in entries])
    end = {"receiver": 0, "sender": 1}[center]
    same = torch.tensor([[mine[end] == other[end] for other in entries] for mine in entries]).double()
    return alpha - same @ alpha / same.sum(1)


# ---------------------------------------------------------------- probabilities


@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize("corner", CORNERS)
def test_logits_are_the_definition(corner, center):
    graph = CORNERS[corner]()
    adversary, tables = adversary_on(graph, center), tables_for(graph)
    expected = by_definition(adversary, graph, tables, center)
    torch.testing.assert_close(adversary.logits(tables).double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("center", CENTERS)
def test_centred_logits_average_to_zero_around_every_node(center):
    graph = random_graph()
    edges = DirectedEdges(graph, center)
    logits = adversary_on(graph, center, scale=5.0).logits(tables_for(graph))
    sums = torch.zeros(graph.user_count + graph.item_count).index_add_(0, edges.centres, logits)
    torch.testing.assert_close(sums, torch.zeros_like(sums), rtol=0, atol=1e-5)
    assert logits.abs().max() > 0.1


@pytest.mark.parametrize(("center", "half"), [("sender", [True, False]), ("receiver", [False, True])])
def test_a_centre_of_degree_one_has_probability_one_half_exactly(center, half):
    """One item, several users: each user is the centre of one message, the item of all of the other direction."""
    graph = graph_of([(user, 0) for user in range(5)], 5, 1)
    to_user, to_item = torch.sigmoid(adversary_on(graph, center).logits(tables_for(graph))).chunk(2)
    assert [bool((part == 0.5).all()) for part in (to_item, to_user)] == half


def test_probabilities_lie_within_zero_and_one():
    graph = random_graph()
    p = torch.sigmoid(adversary_on(graph, scale=5.0).logits(tables_for(graph)))
    assert p.shape == (2 * graph.edge_count,)
    assert 0 < p.min() < 0.4
    assert 0.6 < p.max() < 1


def test_maps_at_zero_give_one_half_everywhere():
    graph = random_graph()
    adversary = adversary_on(graph)
    adversary.weight.zero_()
    adversary.bias.zero_()
    assert torch.equal(torch.sigmoid(adversary.logits(tables_for(graph))), torch.full((2 * graph.edge_count,), 0.5))


def test_the_length_of_a_row_does_not_matter_and_a_zero_row_is_no_accident():
    graph = random_graph()
    adversary, tables = adversary_on(graph), tables_for(graph)
    torch.testing.assert_close(
        adversary.logits(Tables(7 * tables.users, tables.items / 3)), adversary.logits(tables), rtol=1e-4, atol=1e-5
    )
    tables.users[0] = 0
    assert torch.isfinite(adversary.logits(tables)).all()


def test_the_two_directions_of_an_interaction_have_their_own_probabilities():
    graph = random_graph()
    to_user, to_item = adversary_on(graph).logits(tables_for(graph)).chunk(2)
    assert not torch.isclose(to_user, to_item).any()


# ---------------------------------------------------------------- ARM


def test_both_masks_keep_with_the_given_probability():
    keep = torch.tensor([0.1, 0.5, 0.9])
    u = torch.rand(100_000, 3, generator=torch.Generator().manual_seed(0))
    for mask in arm_masks(u, keep):
        error = (mask.double().mean(0) - keep) / (keep * (1 - keep) / len(u)).sqrt()
        assert error.abs().max() < 4


def test_the_gradient_vanishes_at_one_half_flips_with_the_masks_and_needs_a_difference():
    u = torch.tensor([0.1, 0.5, 0.8])
    first, second = torch.tensor(2.0), torch.tensor(3.0)
    g = arm_gradient(u, first, second, 5.0)
    torch.testing.assert_close(g, torch.tensor([-2.0, 0.0, 1.5]))
    assert torch.equal(arm_gradient(u, second, first, 5.0), -g)
    assert torch.equal(arm_gradient(u, first, first, 5.0), torch.zeros(3))


def test_the_estimator_on_a_linear_objective():
    """For f(m) = c . m, E[f] = c . sigma(logit) has the gradient c sigma'(logit); g is -5 times its estimate."""
    c = torch.tensor([2.0, -1.0, 0.5, 3.0], dtype=torch.float64)
    logit = torch.tensor([0.0, 1.0, -2.0, 0.3], dtype=torch.float64)
    keep = torch.sigmoid(logit)
    u = torch.rand(400_000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first, second = (mask.double() @ c for mask in arm_masks(u, keep))
    samples = (first - second).unsqueeze(1) * (u - 0.5)
    error = (samples.mean(0) - c * keep * (1 - keep)) / (samples.std(0) / len(u) ** 0.5)
    assert error.abs().max() < 4
    g = arm_gradient(u, first.unsqueeze(1), second.unsqueeze(1), 5.0)
    torch.testing.assert_close(g, -5 * samples)


# ---------------------------------------------------------------- gradients and steps


@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize("corner", ["random", "heavy head", "complete"])
def test_gradients_are_those_of_autograd(corner, center):
    graph = CORNERS[corner]()
    adversary, tables = adversary_on(graph, center), tables_for(graph)
    gradient = torch.randn(2 * graph.edge_count, generator=torch.Generator().manual_seed(2))
    found = adversary.gradients(tables, gradient)
    parameters = [adversary.weight.requires_grad_(), adversary.bias.requires_grad_()]
    expected = torch.autograd.grad(by_definition(adversary, graph, tables, center), parameters, gradient.double())
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("center", CENTERS)
def test_logits_and_gradients_on_cuda(center):
    found = {}
    for device in ("cpu", "cuda"):
        graph = random_graph(device=device)
        adversary, tables = adversary_on(graph, center), tables_for(graph)
        gradient = torch.randn(2 * graph.edge_count, generator=torch.Generator().manual_seed(2)).to(device)
        found[device] = [adversary.logits(tables), *adversary.gradients(tables, gradient)]
    for mine, theirs in zip(found["cuda"], found["cpu"], strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-4, atol=1e-5)


def test_a_step_descends_on_the_gradient_it_is_given():
    graph = random_graph()
    adversary, tables = adversary_on(graph), tables_for(graph)
    gradient = torch.randn(2 * graph.edge_count, generator=torch.Generator().manual_seed(2))
    before = adversary.logits(tables)
    adversary.step(tables, gradient)
    assert gradient @ (adversary.logits(tables) - before) < 0


def test_state_carries_the_maps_and_the_moments_of_their_optimiser():
    """Two adversaries that share a state take the same next step."""
    graph = random_graph()
    tables, gradient = tables_for(graph), torch.linspace(-1, 1, 2 * graph.edge_count)
    first, second = adversary_on(graph, seed=0), adversary_on(graph, seed=9)
    for _ in range(3):
        first.step(tables, gradient)
    for name, values in second.state().items():
        values.copy_(first.state()[name])
    for adversary in (first, second):
        adversary.step(tables, -gradient)
    for name, values in first.state().items():
        assert torch.equal(values, second.state()[name]), name
    assert int(first.state()["adversary_adam.weight.step"]) == 4
