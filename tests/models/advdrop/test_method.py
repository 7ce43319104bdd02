"""AdvDrop: its views, its loss, that recommending is LightGCN, its options."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from caged.config import build, describe
from caged.errors import ConfigError
from caged.graph import BipartiteGraph, Tables
from caged.models.advdrop.method import AdvDrop, AdvDropConfig, Nodes, disagreement
from caged.models.encoder import xavier_scale
from caged.models.lightgcn import L2_RANGE, LightGCN, LightGCNConfig
from caged.runs.spec import resolve
from caged.seeding import Generators
from tests.graph.graphs import dense, dense_propagate, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import padded, prepared, some_batch, trained


def advdrop(**options):
    return AdvDrop(AdvDropConfig(**{"embedding_size": 8, "layers": 2, **options}))


def entries_of(view):
    return torch.cat((view.encoder.weights.to_user, view.encoder.weights.to_item))


# ---------------------------------------------------------------- views


def test_a_view_holds_scaled_entries_of_the_whole_graph_or_zeros():
    graph = random_graph()
    method = prepared(advdrop(), graph)
    whole = torch.cat((method.weights.to_user, method.weights.to_item)) / 0.8
    method.loss(some_batch(graph))
    for view in method.views:
        found = entries_of(view)
        assert torch.equal(found, torch.where(found > 0, whole, 0))
        assert 0 < int((found > 0).sum()) < len(found)


@pytest.mark.parametrize(("rescale", "least"), [("keep_prob", 0.0), ("prob", 0.1), ("prob", 0.4)])
def test_entries_are_kept_with_their_probabilities(rescale, least):
    """Both views, every entry on its own: P in the dual view, 1 - P in the main one."""
    graph = random_graph()
    method = prepared(advdrop(rescale=rescale, min_keep=least or 0.3), graph)
    method.adversary.weight.data.mul_(3.0)
    draws = 1000
    for view, sign in ((method.dual, 1), (method.main, -1)):
        keep = torch.sigmoid(sign * method.adversary.logits(view.encoder.layer0)).double()
        assert keep.std() > 0.1
        assert keep.min() < 0.3
        keep = keep.clamp(min=least)
        whole = torch.cat((method.weights.to_user, method.weights.to_item)).double()
        kept, sums = torch.zeros_like(keep), torch.zeros_like(keep)
        for _ in range(draws):
            method._draw(view)
            kept += entries_of(view) > 0
            sums += entries_of(view)
        error = (kept / draws - keep) / (keep * (1 - keep) / draws).sqrt()
        assert error.abs().max() < 4.5
        expected = whole if rescale == "prob" else whole * keep / 0.8
        spread = expected * ((1 - keep) / keep / draws).sqrt()
        assert ((sums / draws - expected) / spread).abs().max() < 4.5


def test_no_entry_grows_beyond_the_bound():
    """Maps so large that every probability is 0 or 1 in float32, and the smallest u that there is."""
    graph = random_graph()
    method = prepared(advdrop(rescale="prob", min_keep=0.25), graph)
    method.adversary.weight.data.mul_(1e4)
    whole = torch.cat((method.weights.to_user, method.weights.to_item))
    method._uniform = lambda _: torch.zeros_like(whole)  # u = 0 keeps everything
    for view in method.views:
        method._draw(view)
        factors = entries_of(view) / whole
        assert {round(factor, 4) for factor in factors.tolist()} >= {1.0, 4.0}
        assert factors.max() <= 4.0001


def test_maps_at_zero_make_both_views_random_halves():
    graph = random_graph()
    method = prepared(advdrop(), graph)
    method.adversary.weight.data.zero_()
    method.adversary.bias.data.zero_()
    for view in method.views:
        assert torch.equal(method.keep_probability(view), torch.full((2 * graph.edge_count,), 0.5))


def test_views_and_directions_are_drawn_independently():
    """With every P at one half, kept or not is a fair coin, +1 or -1: products of two different coins average to 0."""
    graph = random_graph()
    method, batch = prepared(advdrop(layers=1), graph), some_batch(graph)
    method.adversary.weight.data.zero_()
    method.adversary.bias.data.zero_()
    draws = []
    for _ in range(300):
        with torch.no_grad():
            method.loss(batch)
        draws.append(torch.cat([entries_of(view) > 0 for view in method.views]).view(4, -1))
    coins = 2 * torch.cat(draws, dim=1).double() - 1  # dual to users, dual to items, main to users, main to items
    products = coins @ coins.T / coins.shape[1]
    assert (products - torch.eye(4)).abs().max() < 4.5 / coins.shape[1] ** 0.5
    one_later = (coins[:, graph.edge_count :] * coins[:, : -graph.edge_count]).mean(1)  # the same entries, next batch
    assert one_later.abs().max() < 4.5 / coins.shape[1] ** 0.5


def test_training_assigns_in_place_and_builds_nothing():
    graph = random_graph()
    method = prepared(advdrop(), graph)
    before = [(view.encoder.weights.operator, view.encoder.weights.to_user.data_ptr()) for view in method.views]
    first = [entries_of(view) for view in method.views]
    method.loss(some_batch(graph)).total.backward()
    after = [(view.encoder.weights.operator, view.encoder.weights.to_user.data_ptr()) for view in method.views]
    assert before == after
    assert not any(torch.equal(old, entries_of(view)) for old, view in zip(first, method.views, strict=True))


# ---------------------------------------------------------------- the loss


def infonce_by_definition(dual, main, tau):
    scores = torch.sigmoid(dual @ main.T) / tau
    return -(scores.diag().exp() / scores.exp().sum(1)).log().mean()


def test_disagreement_is_infonce_of_users_and_items():
    draw = torch.Generator().manual_seed(0)
    dual, main = (Tables(*(torch.randn(n, 5, generator=draw).double() for n in (7, 4))) for _ in range(2))
    nodes = Nodes(torch.tensor([1, 6, 1]), torch.tensor([3, 0, 2]))
    expected = sum(
        infonce_by_definition(of_dual[rows], of_main[rows], 0.3)
        for of_dual, of_main, rows in zip(dual, main, nodes, strict=True)
    )
    torch.testing.assert_close(disagreement(dual, main, nodes, 0.3), expected)


def test_disagreement_stays_finite_however_long_the_rows_are():
    rows = Tables(torch.full((3, 2), 1e10), torch.full((3, 2), -1e10))
    some = Nodes(torch.arange(3), torch.arange(3))
    assert torch.isfinite(disagreement(rows, rows, some, 1e-3))


def expected_loss(method, batch, nodes, tables):
    """(4) to (6) in float64 on dense matrices of the views as they were drawn."""
    graph, config = method.graph, method.config
    total, finals = 0, []
    for view, (users, items) in zip(method.views, tables, strict=True):
        layers = (1 / (config.layers + 1),) * (config.layers + 1)
        rows = dense_propagate(dense(graph, view.encoder.weights), torch.cat((users, items)), layers)
        final = Tables(*rows.split([graph.user_count, graph.item_count]))
        u, i, j = (part.long() for part in batch[:3])
        margin = (final.users[u] * (final.items[i] - final.items[j])).sum(1)
        squares = users[u].square().sum() + items[i].square().sum() + items[j].square().sum()
        total = total - F.logsigmoid(margin).mean() + config.l2 * squares / (2 * len(u))
        finals.append(final)
    inv = sum(
        infonce_by_definition(finals[0][kind][nodes[kind].long()], finals[1][kind][nodes[kind].long()], config.tau)
        for kind in range(2)
    )
    return total + config.inv_tau * inv


@pytest.mark.parametrize("rescale", ["keep_prob", "prob"])
def test_loss_and_gradients_are_those_of_the_definition(rescale):
    graph = random_graph()
    method = prepared(advdrop(rescale=rescale, l2=0.1, inv_tau=0.5, inv_nodes=6, tau=0.3), graph)
    same_draws = Generators(1)["dropout"]
    nodes = method._draw_nodes(same_draws)
    batch = some_batch(graph)
    losses = method.loss(batch)
    losses.total.backward()
    tables = [tuple(part.detach().double().requires_grad_() for part in view.encoder.layer0) for view in method.views]
    expected = expected_loss(method, batch, nodes, tables)
    expected.backward()
    torch.testing.assert_close(losses.total.double(), expected, rtol=1e-5, atol=1e-6)
    for view, wanted in zip(method.views, tables, strict=True):
        for found, other in zip(view.encoder.parameters, wanted, strict=True):
            torch.testing.assert_close(found.grad.double(), other.grad, rtol=1e-4, atol=1e-6)
    parts = losses.parts
    torch.testing.assert_close(losses.total, parts["bpr"] + parts["bpr_dual"] + 0.1 * parts["l2"] + 0.5 * parts["inv"])


def test_padding_changes_nothing():
    graph = random_graph()
    batch = some_batch(graph)
    plain, longer = (prepared(advdrop(), graph).loss(each) for each in (batch, padded(batch)))
    torch.testing.assert_close(plain.total, longer.total)


# ---------------------------------------------------------------- recommending


def test_recommending_is_lightgcn_with_the_main_table():
    log = skewed()
    method, _ = trained(advdrop(interval=2, adv_steps=3), log, epochs=4)
    other = prepared(LightGCN(LightGCNConfig(embedding_size=8, layers=2)), BipartiteGraph.from_interactions(log))
    with torch.no_grad():
        for mine, theirs in zip(method.main.encoder.parameters, other.encoder.parameters, strict=True):
            theirs.copy_(mine)
    everyone = torch.arange(log.user_count)
    scores = method.scorer()(everyone)
    assert torch.equal(scores, other.scorer()(everyone))
    for part in method.dual.encoder.parameters:
        part.data.zero_()
    assert torch.equal(method.scorer()(everyone), scores)


def test_a_finished_run_keeps_the_main_table_only():
    log = skewed()
    method, _ = trained(advdrop(interval=2, adv_steps=3), log, epochs=2)
    kept = method.serving_state().clone()
    assert kept.tensors.keys() == {"users", "items"}
    other = prepared(advdrop(), BipartiteGraph.from_interactions(log), seed=5)
    other.load_serving_state(kept)
    everyone = torch.arange(log.user_count)
    assert torch.equal(other.scorer()(everyone), method.scorer()(everyone))


def test_the_main_table_starts_as_lightgcn_and_the_dual_one_does_not():
    graph = random_graph()
    method = prepared(advdrop(), graph)
    other = prepared(LightGCN(LightGCNConfig(embedding_size=8)), graph)
    assert torch.equal(method.main.encoder.users, other.encoder.users)
    assert torch.equal(method.main.encoder.items, other.encoder.items)
    assert not torch.isclose(method.dual.encoder.users, other.encoder.users).any()


def test_xavier_start():
    log = skewed(user_count=400, item_count=150)
    method = prepared(advdrop(table_init="xavier", embedding_size=32), BipartiteGraph.from_interactions(log))
    for view in method.views:
        for table in view.encoder.parameters:
            assert float(table.detach().std()) == pytest.approx(xavier_scale(*table.shape), rel=0.05)


# ---------------------------------------------------------------- options and presets


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("center", "middle"),
        ("keep_prob", 0),
        ("min_keep", 0),
        ("interval", 0),
        ("adv_steps", 0),
        ("tau", 0),
        ("arm_target", "p"),
    ],
)
def test_values_that_make_no_sense_are_refused(name, value):
    with pytest.raises(ConfigError, match=f"method.{name}"):
        build(AdvDropConfig, {name: value}, "method")


def test_search_space():
    space = {info.name: info.search for info in describe(AdvDropConfig) if info.search}
    assert space == {
        "l2": L2_RANGE,
        "inv_tau": (0.01, 0.1, 0.5, 1.0),
        "rescale": ("keep_prob", "prob"),
        "interval": (3, 5, 7, 10, 15),
        "adv_epochs": (3, 5, 10),
        "adv_lr": (1e-3, 1e-2),
    }


def test_published_values_and_the_backbone_beside_them():
    spec = resolve("yelp2018-ood", "advdrop", presets=["yelp2018_ood"])
    config = spec.config
    assert (config.interval, config.adv_epochs, config.adv_lr, config.adv_steps) == (7, 15, 1e-2, None)
    assert (config.att_dim, config.tau, config.inv_nodes, config.keep_prob, config.arm_coefficient) == (
        *(10, 0.1, 100, 0.8, 5.0),
    )
    assert (config.center, config.rescale, config.arm_target, config.arm_share_nodes, config.table_init) == (
        *("sender", "keep_prob", "prob", False, "xavier"),
    )
    plain = resolve("yelp2018-ood", "lightgcn", presets=["yelp2018_ood"])
    for each in (spec, plain):
        assert (each.train.learning_rate, each.train.batch_size, each.train.sampler) == (5e-4, 1024, "user_uniform")
        assert (each.config.embedding_size, each.config.layers, each.config.l2) == (64, 2, 1e-5)
        assert each.config.table_init == "xavier"  # both start alike, as in the code


def test_the_preset_that_rescales_changes_nothing_else():
    plain, rescaled = (resolve("x", "advdrop", presets=presets) for presets in ((), ("advdrop_rescaled",)))
    assert rescaled.config == replace(plain.config, rescale="prob", min_keep=0.1, inv_tau=0.01, adv_steps=100)
    assert rescaled.train == plain.train
