"""The testable properties of CAGED, named after the specification, and what its options do to the weights."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from caged.errors import ConfigError, DeviceError, TrainingError
from caged.evaluation.ranking import ndcg, ndcg_hits100
from caged.graph import BipartiteGraph, Sampler, degree_weights
from caged.models.caged.method import CAGED, CAGEDConfig, blended, code_scale, controlled, new_weights
from caged.models.caged.sides import sides_of
from caged.models.contract import EpochContext, Stage
from caged.models.lightgcn import LightGCN, LightGCNConfig
from caged.seeding import Generators
from caged.training import Loop, TrainConfig
from tests.data.realdata import needs_real_data, real_data
from tests.graph.graphs import CORNERS, dense, random_graph
from tests.models.logs import skewed

SMALL = {"embedding_size": 4, "layers": 2, "estimator_batch_size": 16, "estimator_layers": 2}
FORMS = ("paper", "code", "normalised")
QUICK = TrainConfig(epochs=5, batch_size=64, learning_rate=0.01, patience=None)


def prepared(graph=None, seed=1, **options):
    method = CAGED(CAGEDConfig(**{**SMALL, **options}))
    method.prepare(random_graph(edges=60) if graph is None else graph, Generators(seed))
    return method


def update(method, times=1):
    """Updates as after epochs that improved; the logs of all of them."""
    logs = []
    for epoch in range(1, times + 1):
        ctx = EpochContext("train", epoch, 1, None, improved=True, metrics={"recall@20": float(epoch)})
        method.begin_epoch(ctx)
        method.end_epoch(ctx)
        logs.append(ctx.log)
    return logs


def train(method, values=(0.1, 0.3, 0.2, 0.4, 0.4), observers=(), config=QUICK, seed=1):
    """Train with scripted validations; an improvement is whatever the script says."""
    script = iter(values)
    log = BipartiteGraph.from_interactions(skewed())
    loop = Loop(
        method,
        log,
        dataclasses.replace(config, epochs=len(values)),
        Generators(seed),
        lambda _: {"recall@20": next(script)},
        observers=observers,
    )
    loop.run()
    return method


class Recorder:
    def __init__(self):
        self.records = []

    def epoch(self, record):
        self.records.append(record)

    @property
    def updates(self):
        return [record["diagnostics"]["update"] for record in self.records if "diagnostics" in record]


def weights_of(method):
    return torch.stack((method.weights.to_user, method.weights.to_item))


def normalisers(method):
    """F of the centre of every edge, in both directions."""
    return torch.stack([side.per_edge(side.normaliser) for side in method.sides])


# ---------------------------------------------------------------- 1. neutral settings are LightGCN


def same_bits(method, values):
    other = train(LightGCN(LightGCNConfig(embedding_size=4, layers=2)), values)
    return all(
        torch.equal(mine, theirs) for mine, theirs in zip(method.scorer().vectors, other.scorer().vectors, strict=True)
    )


def test_1_eps_0_is_lightgcn_bit_for_bit_while_updates_run():
    values = (0.1, 0.3, 0.2, 0.4, 0.5)
    recorder = Recorder()
    method = train(CAGED(CAGEDConfig(**SMALL, eps=0)), values, (recorder,))
    assert recorder.updates == [1, 2, 3, 4]
    assert same_bits(method, values)


def test_1_a_condition_never_met_is_lightgcn_bit_for_bit():
    graph, losses = BipartiteGraph.from_interactions(skewed()), []
    for method in (CAGED(CAGEDConfig(**SMALL, eps=0.5)), LightGCN(LightGCNConfig(embedding_size=4, layers=2))):
        recorder = Recorder()
        Loop(method, graph, QUICK, Generators(1), None, observers=(recorder,)).run()
        losses.append([record["loss"] for record in recorder.records])
        assert not any("diagnostics" in record for record in recorder.records)
    assert losses[0] == losses[1]


def test_1_other_eps_is_not_lightgcn():
    values = (0.1, 0.3, 0.2, 0.4, 0.5)
    assert not same_bits(train(CAGED(CAGEDConfig(**SMALL, eps=0.1)), values), values)


# ---------------------------------------------------------------- 2. lambda = beta = 0


@pytest.mark.parametrize("form", FORMS)
def test_2_without_terms_the_weights_depend_on_degrees_alone(form):
    method = prepared(lam=0.0, beta=0.0, weight_form=form, without="momentum")  # eps = 1: the weights are W
    base = weights_of(method)
    update(method)
    users, items = (
        method.graph.user_degrees[method.graph.users.long()],
        method.graph.item_degrees[method.graph.items.long()],
    )
    expected = {
        "paper": normalisers(method),
        "code": code_scale(method.graph) * base,
        "normalised": normalisers(method) / torch.stack((users, items)),
    }
    torch.testing.assert_close(weights_of(method), expected[form])
    assert code_scale(method.graph) > 1


# ---------------------------------------------------------------- 3. pattern and momentum


@pytest.mark.parametrize("form", FORMS)
def test_3_after_n_updates_the_weights_are_the_running_mean(form, monkeypatch):
    seen = []

    def spy(*arguments):
        seen.append(new_weights(*arguments))
        return seen[-1]

    monkeypatch.setattr("caged.models.caged.method.new_weights", spy)
    eps, count = 0.3, 4
    method = prepared(eps=eps, weight_form=form)
    base = weights_of(method)
    update(method, count)
    assert len(seen) == 2 * count
    expected = (1 - eps) ** count * base
    for t in range(1, count + 1):
        expected = expected + eps * (1 - eps) ** (count - t) * torch.stack((seen[2 * t - 2], seen[2 * t - 1]))
    torch.testing.assert_close(weights_of(method), expected)


def test_3_the_pattern_never_changes():
    method = prepared(eps=0.5)
    before = dense(method.graph, method.weights) != 0
    update(method, 3)
    after = dense(method.graph, method.weights)
    assert torch.equal(after != 0, before)
    assert not torch.allclose(after, dense(method.graph, degree_weights(method.graph)))


def test_3_propagation_uses_the_new_weights():
    method = prepared(eps=0.5, layers=1)
    update(method)
    stacked = torch.cat([method.encoder.users, method.encoder.items]).double()
    expected = (stacked + dense(method.graph, method.weights) @ stacked) / 2
    torch.testing.assert_close(torch.cat(method.scorer().vectors).double(), expected, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- 4. and 5. row sums and bounds


@pytest.mark.parametrize("likelihood", ["estimated", "shuffled", "uniform", "constant"])
def test_4_normalised_keeps_the_row_sums(likelihood):
    method = prepared(eps=0.4, weight_form="normalised", likelihood=likelihood, lam=20.0)
    for _ in range(3):
        update(method)
        for side, weights in zip(method.sides, weights_of(method), strict=True):
            torch.testing.assert_close(side.sums(weights), side.normaliser, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["paper", "code"])
def test_4_the_other_forms_do_not(form):
    method = prepared(eps=0.4, weight_form=form)
    update(method)
    assert not torch.allclose(method.sides[0].sums(method.weights.to_user), method.sides[0].normaliser, rtol=0.01)


@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize("form", FORMS)
def test_5_weights_stay_within_their_bounds(form, name):
    method = prepared(CORNERS[name](), weight_form=form, eps=0.7)
    upper = code_scale(method.graph) * weights_of(method) if form == "code" else normalisers(method)
    for _ in range(3):
        [log] = update(method)
        assert 0 <= log["to_user"]["likelihood"]["min"] <= log["to_user"]["likelihood"]["max"] <= 1
        assert (weights_of(method) >= 0).all()
        assert (weights_of(method) <= upper * (1 + 1e-6)).all()


# ---------------------------------------------------------------- 8. when updates happen


def test_8_eps_1_equals_without_momentum():
    replaced = prepared(eps=1.0)
    variant = prepared(eps=0.01, without="momentum")
    for method in (replaced, variant):
        update(method, 2)
    assert torch.equal(weights_of(replaced), weights_of(variant))


@pytest.mark.parametrize(
    ("without", "updates"), [("none", [1, 2, 3]), ("update_condition", [1, 2, 3, 4, 5]), ("momentum", [1, 2, 3])]
)
def test_8_updates_equal_strict_improvements(without, updates):
    """0.1, 0.3 and 0.4 improve; the first always counts, and equal is not better."""
    recorder = Recorder()
    train(CAGED(CAGEDConfig(**SMALL, without=without)), (0.1, 0.3, 0.2, 0.4, 0.4), (recorder,))
    assert recorder.updates == updates
    assert [record["improved"] for record in recorder.records] == [True, True, False, True, False]


def test_8_epochs_without_validation_never_update():
    recorder = Recorder()
    config = dataclasses.replace(QUICK, validate_every=2)
    method = CAGED(CAGEDConfig(**SMALL, without="update_condition"))
    script = iter((0.1, 0.2, 0.3))
    graph = BipartiteGraph.from_interactions(skewed())
    Loop(method, graph, config, Generators(1), lambda _: {"recall@20": next(script)}, observers=(recorder,)).run()
    assert [record["epoch"] for record in recorder.records if "diagnostics" in record] == [2, 4, 5]


def test_the_best_state_precedes_its_own_update():
    method = train(CAGED(CAGEDConfig(**SMALL, eps=0.2)), (0.1, 0.3, 0.2))
    assert method.updates == 1


# ---------------------------------------------------------------- 9. the printed NDCG


def test_9_one_hit_at_rank_1_of_many_relevant_items():
    hits = np.zeros((1, 100), dtype=bool)
    hits[0, 0] = True
    assert ndcg(hits, np.array([25]), 20)[0] < 1
    assert ndcg_hits100(hits, np.array([25]), 20)[0] == 1


# ---------------------------------------------------------------- controls


def log_likelihoods(count=30):
    return -10 * torch.rand(count, generator=torch.Generator().manual_seed(3))


def test_constant_is_the_mean_likelihood():
    values = log_likelihoods()
    replaced = controlled(values, "constant", torch.Generator())
    torch.testing.assert_close(replaced.exp(), values.exp().mean().expand(30))


def test_shuffled_keeps_the_values_and_nothing_else():
    values = log_likelihoods()
    replaced = controlled(values, "shuffled", torch.Generator().manual_seed(0))
    assert torch.equal(replaced.sort().values, values.sort().values)
    assert not torch.equal(replaced, values)


def test_in_the_code_form_constant_is_scale_only():
    method = prepared(eps=0.5, likelihood="constant", weight_form="code")
    base = weights_of(method)
    update(method)
    ratio = weights_of(method) / base
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))
    assert ratio[0, 0] > 1.01


def test_in_the_normalised_form_constant_equals_uniform():
    methods = [prepared(eps=0.5, likelihood=kind, weight_form="normalised") for kind in ("constant", "uniform")]
    for method in methods:
        update(method, 2)
    torch.testing.assert_close(*map(weights_of, methods))
    assert (weights_of(methods[0]) - weights_of(prepared())).abs().max() > 0.01


@pytest.mark.parametrize("form", ["paper", "code"])
def test_uniform_belongs_to_the_normalised_form(form):
    with pytest.raises(ConfigError, match=f"weight_form is '{form}'.*set that"):
        CAGEDConfig(likelihood="uniform", weight_form=form)


@pytest.mark.parametrize("likelihood", ["constant", "shuffled"])
def test_a_control_leaves_the_draws_of_the_estimator_alone(likelihood):
    """Same network after the first update: the controls change what is done with its answer, nothing before it."""
    methods = [prepared(likelihood=kind) for kind in ("estimated", likelihood)]
    logs = [update(method)[0] for method in methods]
    assert logs[0]["to_item"]["elbo"] == logs[1]["to_item"]["elbo"]
    assert not torch.equal(*map(weights_of, methods))
    noise = [method.estimator.noise.get_state() for method in methods]
    assert torch.equal(*noise)


# ---------------------------------------------------------------- forms, by hand


def test_the_three_forms_by_hand():
    """Two users share item 0, user 1 also has item 1: A~[0,0] = 1/sqrt(2), A~[1,0] = 1/2, A~[1,1] = 1/sqrt(2)."""
    from tests.graph.graphs import graph_of

    graph = graph_of([(0, 0), (1, 0), (1, 1)], 2, 2)
    to_user, _ = sides_of(graph, degree_weights(graph))
    likelihood = torch.tensor([0.5, 0.25, 0.75])
    root = math.sqrt(0.5)
    c = (math.sqrt(2) + 2 + math.sqrt(2)) / 3
    expected = {
        "paper": [root * 0.5, (0.5 + root) * 0.25, (0.5 + root) * 0.75],
        "code": [c * root * 0.5, c * 0.5 * 0.25, c * root * 0.75],
        "normalised": [root, (0.5 + root) * 0.25, (0.5 + root) * 0.75],  # 0.25 and 0.75 sum to one already
    }
    for form, values in expected.items():
        torch.testing.assert_close(new_weights(form, likelihood.log(), to_user, c), torch.tensor(values))


def test_normalised_survives_likelihoods_that_underflow():
    side = prepared().sides[1]
    weights = new_weights("normalised", torch.full_like(side.base, -500.0), side, 1.0)
    torch.testing.assert_close(side.sums(weights), side.normaliser)


def test_blending_at_both_ends_is_exact():
    old, new = torch.rand(2, 100)
    assert torch.equal(blended(old, new, 0.0), old)
    assert torch.equal(blended(old, new, 1.0), new)


@needs_real_data()
@pytest.mark.realdata
@pytest.mark.parametrize(("folder", "expected"), [("caged_movie", 364.6), ("caged_epinions", 47.7)])
def test_the_scale_of_the_released_code_on_its_data(folder, expected):
    from caged.data import load

    source = load(real_data() / folder)
    graph = BipartiteGraph.from_interactions(source.parts["train"])
    assert code_scale(graph) == pytest.approx(expected, abs=0.05)


# ---------------------------------------------------------------- options


def after_two_updates(**options):
    method = prepared(**{"eps": 0.3, **options})
    update(method, 2)
    return weights_of(method)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("lam", 0.5),
        ("beta", 1.0),
        ("eps", 0.1),
        ("layers", 1),
        ("estimator_learning_rate", 0.01),
        ("estimator_layers", 3),
        ("estimator_epochs", 2),
        ("estimator_batch_size", 8),
        ("estimator_input", "layer0"),
        ("weight_form", "paper"),
        ("weight_form", "normalised"),
        ("recon_reduce", "mean"),
        ("score_z", "mean"),
        ("directions", "user"),
        ("likelihood", "constant"),
        ("likelihood", "shuffled"),
        ("without", "momentum"),
    ],
)
def test_every_option_changes_the_weights(option, value):
    assert not torch.equal(after_two_updates(**{option: value}), after_two_updates())


def test_elbo_train_scaled_changes_the_weights():
    scaled, plain = (after_two_updates(lam=1.2, beta=0.3, elbo_train_scaled=flag) for flag in (True, False))
    assert not torch.equal(scaled, plain)
    one = [after_two_updates(lam=1.0, beta=1.0, elbo_train_scaled=flag) for flag in (True, False)]
    assert torch.equal(*one)  # with both at 1 there is nothing to scale


def test_directions_user_leaves_the_item_side_alone():
    weights = after_two_updates(directions="user")
    base = weights_of(prepared())
    assert torch.equal(weights[1], base[1])
    assert not torch.allclose(weights[0], base[0])


def test_the_seed_of_the_estimator_is_its_own():
    """Tables and samples are those of LightGCN, whatever the estimator draws."""
    method, other = prepared(), LightGCN(LightGCNConfig(embedding_size=4, layers=2))
    other.prepare(method.graph, Generators(1))
    update(method)
    assert torch.equal(method.encoder.users, other.encoder.users)
    assert method.parameters(Stage("train"))[0]["params"][0] is method.encoder.users
    batch = next(iter(Sampler(method.graph, 16).epoch(torch.Generator().manual_seed(0))))
    assert method.loss(batch).parts.keys() == other.loss(batch).parts.keys()


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_precisions_that_the_cpu_lacks_are_refused_when_training_and_not_before(precision):
    method = prepared(estimator_precision=precision)  # a run of another machine can still recommend here
    assert method.scorer() is not None
    with pytest.raises(DeviceError, match=f"estimator_precision is {precision}.*leave it at auto"):
        method.begin_epoch(EpochContext("train", 1, 1, None))


# ---------------------------------------------------------------- divergence


def test_divergence_ends_in_a_report():
    method = prepared(without="momentum", lam=0.0, beta=0.0)
    with torch.no_grad():
        method.encoder.items.fill_(3e38)
    with pytest.raises(TrainingError, match=r"diverged: after update 1 in epoch 1.*without=momentum.*lower method.eps"):
        update(method)


def test_weights_that_vanish_are_told(caplog):
    method = prepared(without="momentum", lam=1e9)
    update(method)
    assert float(method.weights.to_user.max()) == 0.0
    assert "after update 1 in epoch 1 every edge weight is 0" in caplog.text
    assert "method.without=momentum replaces the weights too fast, lower method.eps" in caplog.text


def test_weights_that_are_there_are_not_told(caplog):
    update(prepared(eps=0.5))
    assert caplog.text == ""
