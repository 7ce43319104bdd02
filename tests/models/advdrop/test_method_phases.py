"""The two phases of AdvDrop: what each changes, interruption within them, and recorded steps on a GPU."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from caged.data import carve_validation
from caged.evaluation.evaluate import make_validator
from caged.graph import Batch, BipartiteGraph, EdgeWeights, Engine
from caged.models.advdrop.method import AdvDrop, AdvDropConfig, Nodes
from caged.models.contract import EpochContext
from caged.seeding import Generators
from caged.training import Loop, TrainConfig
from caged.training.checkpoint import load_checkpoint
from tests.graph.graphs import dense, dense_propagate, random_graph
from tests.models.logs import skewed
from tests.models.short_runs import prepared, some_batch, trained

TABLES = {"users", "items", "dual_users", "dual_items"}


def advdrop(**options):
    return AdvDrop(AdvDropConfig(**{"embedding_size": 8, "layers": 2, **options}))


def epoch_context(epoch, steps=3):
    return EpochContext("train", epoch, steps, None)


def changed(before, after):
    return {name for name, values in after.tensors.items() if not torch.equal(values, before.tensors[name])}


# ---------------------------------------------------------------- the two phases


def test_training_changes_the_tables_and_nothing_else():
    method, start = advdrop(interval=100), prepared(advdrop(), BipartiteGraph.from_interactions(skewed())).state()
    trained(method, skewed(), epochs=2)
    assert changed(start, method.state()) == TABLES


def test_the_adversarial_phase_changes_the_maps_and_nothing_else():
    method = prepared(advdrop(interval=2), random_graph())
    start = method.state().clone()
    method.begin_epoch(epoch_context(1))
    assert not changed(start, method.state())
    method.begin_epoch(epoch_context(2))
    names = changed(start, method.state())
    assert {"adversary.weight", "adversary.bias", "adversary_adam.weight.exp_avg"} <= names
    assert not names & TABLES


@pytest.mark.parametrize(
    ("options", "steps"), [({"adv_epochs": 2}, 6), ({"adv_epochs": 2, "adv_steps": 5}, 5), ({"adv_steps": 1}, 1)]
)
def test_a_phase_is_whole_passes_or_a_number_of_steps_and_says_so(options, steps):
    method = prepared(advdrop(interval=3, **options), random_graph())
    logs = []
    for epoch in range(1, 7):
        ctx = epoch_context(epoch, steps=3)
        method.begin_epoch(ctx)
        logs.append(ctx.log)
    assert [bool(log) for log in logs] == [False, False, True] * 2
    phase = logs[2]["adversary"]
    assert phase["steps"] == steps
    assert phase["seconds"] > 0
    assert all(math.isfinite(phase[name]) for name in ("inv_before", "inv_after", "probability_std"))
    assert method.state().scalars == {"adversarial_steps": 2 * steps}
    assert int(method.state().tensors["adversary_adam.weight.step"]) == 2 * steps


def mean_disagreement(method, draws=40):
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        found = [
            method._disagreement_on_probe(method._uniform(generator), method._draw_nodes(generator))
            for _ in range(draws)
        ]
    return float(torch.stack(found).mean())


@pytest.fixture(scope="module")
def trained_state():
    return trained(advdrop(interval=100), skewed(), epochs=30, learning_rate=0.03)[0].state()


@pytest.mark.parametrize(
    "options", [{}, {"arm_share_nodes": True}, {"arm_target": "logit"}, {"center": "receiver"}, {"rescale": "prob"}]
)
def test_the_adversary_makes_the_views_disagree(options, trained_state):
    method = prepared(advdrop(adv_lr=0.03, **options), BipartiteGraph.from_interactions(skewed()))
    method.load_state(trained_state)
    before = mean_disagreement(method)
    method._adversarial_phase(150)
    assert mean_disagreement(method) > before + 0.01


@pytest.mark.parametrize("shared", [True, False])
def test_without_propagation_the_masks_do_not_matter(shared):
    """L_inv is then the same under both masks, if it is of the same nodes: g = 0, and the maps stand still."""
    method = prepared(advdrop(layers=0, interval=1, arm_share_nodes=shared), random_graph())
    start = method.state().clone()
    method.begin_epoch(epoch_context(1))
    assert ("adversary.weight" in changed(start, method.state())) is not shared


@pytest.mark.parametrize("rescale", ["keep_prob", "prob"])
def test_arm_target_prob_adds_the_slope_of_the_sigmoid(monkeypatch, rescale):
    """Nothing of either where P stands at its bound."""
    given = {}
    for target in ("prob", "logit"):
        method = prepared(advdrop(arm_target=target, rescale=rescale, min_keep=0.49), random_graph())
        monkeypatch.setattr(method.adversary, "step", lambda _, gradient, to=target: given.update({to: gradient}))
        keep = method.keep_probability(method.dual)
        method._adversarial_phase(1)
    torch.testing.assert_close(given["prob"], given["logit"] * keep * (1 - keep))
    bounded = keep == torch.tensor(0.49)
    if rescale == "prob":
        assert 3 <= int(bounded.sum()) <= len(keep) - 3
    for gradient in given.values():
        assert torch.equal(gradient == 0, bounded)


# ---------------------------------------------------------------- one step, by definition


def logits_by_definition(method, view, maps):
    """(1) and (2) as a float64 matrix, [receiver, sender], centred over the sender; differentiable in Q and K'."""
    weight, bias = maps
    rows = F.normalize(torch.cat(view.encoder.layer0).detach().double(), dim=1)
    q, k = (rows @ weight.T + bias).chunk(2, dim=1)
    edges = (dense(method.graph, method.weights) > 0).double()
    alpha = edges * (k @ q.T)
    return alpha - alpha.sum(0) / edges.sum(0).clamp(min=1)


def disagreement_by_definition(method, masks, keeps, nodes):
    """(5) of users and items, from dense propagation of both tables over the entries that are kept."""
    graph, config = method.graph, method.config
    finals = []
    for view, mask, keep in zip((method.dual, method.main), masks, keeps, strict=True):
        matrix = dense(graph, method.weights) * mask / (keep if config.rescale == "prob" else config.keep_prob)
        start = torch.cat(view.encoder.layer0).detach().double()
        rows = dense_propagate(matrix, start, (1 / (config.layers + 1),) * (config.layers + 1))
        finals.append(rows.split([graph.user_count, graph.item_count]))
    total = 0
    for dual, main, chosen in zip(*finals, nodes, strict=True):
        z = torch.sigmoid(dual[chosen.long()] @ main[chosen.long()].T) / config.tau
        total = total + F.cross_entropy(z, torch.arange(len(z)))
    return total


def step_by_definition(method, u, first_nodes, second_nodes):
    """(7) and (8) on dense matrices; the gradients of the two maps, by autograd."""
    maps = [part.detach().double().requires_grad_() for part in (method.adversary.weight, method.adversary.bias)]
    u = dense(method.graph, EdgeWeights(method.graph, *u.chunk(2)))  # one number for both views
    logits = logits_by_definition(method, method.dual, maps)
    least = method.config.min_keep if method.config.rescale == "prob" else 0
    probability = torch.sigmoid(logits).clamp(min=least)
    of_main = 1 - torch.sigmoid(logits_by_definition(method, method.main, maps))
    keeps = [probability.detach(), of_main.clamp(min=least).detach()]
    first = disagreement_by_definition(method, [u > 1 - keep for keep in keeps], keeps, first_nodes)
    second = disagreement_by_definition(method, [u < keep for keep in keeps], keeps, second_nodes)
    edges = dense(method.graph, method.weights) > 0
    g = method.config.arm_coefficient * (second - first) * (u - 0.5) * edges
    if method.config.arm_target == "prob":
        return torch.autograd.grad(probability, maps, g)
    return torch.autograd.grad(logits, maps, g * (probability > least))


@pytest.mark.parametrize("rescale", ["keep_prob", "prob"])
@pytest.mark.parametrize("target", ["prob", "logit"])
def test_a_step_is_the_definition(monkeypatch, target, rescale):
    """Fixed u and nodes; the first step of Adam has the size adv_lr in every entry with a gradient, against it."""
    graph = random_graph()
    options = {"arm_target": target, "rescale": rescale, "min_keep": 0.4}
    method = prepared(advdrop(adv_lr=0.037, arm_coefficient=3.0, tau=0.3, **options), graph)
    for table in (*method.main.encoder.parameters, *method.dual.encoder.parameters):
        table.data.mul_(5.0)  # far from agreement, so that the masks matter
    method.adversary.weight.data.mul_(2.0)
    draw = torch.Generator().manual_seed(4)
    u = torch.rand(2 * graph.edge_count, generator=draw)
    nodes = [Nodes(*(torch.randint(n, (6,), generator=draw).int() for n in (13, 9))) for _ in range(2)]
    expected = step_by_definition(method, u, *nodes)
    given = iter(nodes)  # others for m2 than for m1
    monkeypatch.setattr(method, "_uniform", lambda _: u)
    monkeypatch.setattr(method, "_draw_nodes", lambda _: next(given))
    maps = (method.adversary.weight, method.adversary.bias)
    before = [part.detach().clone() for part in maps]
    with torch.no_grad():
        method._adversarial_step()
    for part, start, gradient in zip(maps, before, expected, strict=True):
        torch.testing.assert_close(part.grad.double(), gradient, rtol=1e-3, atol=1e-5)
        clear = gradient.abs() > 1e-4  # not the bias of K': centring over the sender takes it away
        assert clear.double().mean() >= 0.5
        moved = (part.detach() - start).double()
        torch.testing.assert_close(moved[clear], -0.037 * gradient.sign()[clear], rtol=1e-3, atol=0)


# ---------------------------------------------------------------- interruption

EPOCHS = 5


class Killed(Exception):  # noqa: N818 - stands for a signal
    """The process ends here."""


def run(folder, kill_at_step=None, **options):
    """Phases before epochs 2 and 4, of 4 steps each; optionally killed within one."""
    method = advdrop(interval=2, adv_steps=4, **options)
    train, valid = carve_validation(skewed(), seed=1)
    history = []

    class Watch:
        def epoch(self, record):
            history.append(record)

    config = TrainConfig(epochs=EPOCHS, batch_size=64, learning_rate=0.01, patience=None, checkpoint_seconds=0)
    validate = make_validator(train, valid, k=5, metrics=("recall@5",))
    graph = BipartiteGraph.from_interactions(train)
    loop = Loop(method, graph, config, Generators(1), validate, "recall@5", folder, load_checkpoint(folder), (Watch(),))
    taken = iter(range(1, 100))
    step = method._adversarial_step

    def counted():
        if next(taken) == kill_at_step:
            raise Killed
        step()

    method._adversarial_step = counted
    loop.run()
    return method, loop, history


@pytest.mark.parametrize("kill_at_step", [1, 3, 5, 8])
def test_killed_within_an_adversarial_phase_and_resumed_equals_uninterrupted(kill_at_step, tmp_path):
    whole, loop, history = run(tmp_path / "whole")
    with pytest.raises(Killed):
        run(tmp_path / "killed", kill_at_step)
    resumed, resumed_loop, rest = run(tmp_path / "killed")
    assert len(rest) == EPOCHS - (1 if kill_at_step <= 4 else 3)
    for mine, theirs in ((resumed.state(), whole.state()), (resumed_loop.best, loop.best)):
        assert mine.scalars == theirs.scalars
        assert not changed(theirs, mine)
    for mine, theirs in zip(rest, history[-len(rest) :], strict=True):
        assert (mine["loss"], mine["validation"]) == (theirs["loss"], theirs["validation"])
        assert without_seconds(mine) == without_seconds(theirs)
    ends = [load_checkpoint(tmp_path / name) for name in ("whole", "killed")]
    assert ends[0].meta == ends[1].meta
    assert ends[0].meta["scalars"] == {"adversarial_steps": 8}
    for name, values in ends[0].tensors().items():  # the last epoch, with optimisers and random streams
        assert torch.equal(values, ends[1].tensors()[name]), name


def without_seconds(record):
    phase = record.get("diagnostics", {}).get("adversary", {})
    return {name: value for name, value in phase.items() if name != "seconds"}


# ---------------------------------------------------------------- on a GPU


def on_gpu(backend, capture):
    losses = []

    class Watch:
        def epoch(self, record):
            losses.append(record["loss"]["total"])

    config = TrainConfig(epochs=4, batch_size=48, learning_rate=0.01, patience=None, capture=capture)
    graph = BipartiteGraph.from_interactions(skewed(), "cuda", Engine(backend, "float32"))
    method = advdrop(interval=2, adv_steps=5, adv_capture=capture)
    Loop(method, graph, config, Generators(1, "cuda"), None, observers=(Watch(),)).run()
    return method, losses


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ["sparse", "dense"])
def test_recorded_steps_draw_new_views_and_equal_plain_ones(backend, caplog):
    """The generator of the masks is registered with the recording: a replay draws what a plain step would draw."""
    (recorded, losses), (_, expected) = on_gpu(backend, capture=True), on_gpu(backend, capture=False)
    assert "cannot be recorded" not in caplog.text
    assert losses == pytest.approx(expected, rel=1e-2)
    assert recorded.state().scalars == {"adversarial_steps": 10}


@pytest.mark.gpu
@pytest.mark.parametrize("rescale", ["keep_prob", "prob"])
@pytest.mark.parametrize("backend", ["sparse", "dense"])
def test_a_recorded_adversary_moves_as_a_plain_one(backend, rescale, caplog):
    """Two phases, of which the second replays what the first has recorded."""
    moved = []
    for capture in (True, False):
        graph = BipartiteGraph.from_interactions(skewed(), "cuda", Engine(backend, "float32"))
        method = advdrop(adv_capture=capture, adv_lr=0.03, rescale=rescale)
        method.prepare(graph, Generators(1, "cuda"))
        for table in (*method.main.encoder.parameters, *method.dual.encoder.parameters):
            table.data.mul_(5.0)  # far from agreement, so that the masks matter
        start = method.keep_probability(method.dual)
        for _ in range(2):
            method._adversarial_phase(4)
        moved.append(method.keep_probability(method.dual) - start)
    assert "cannot be recorded" not in caplog.text
    assert moved[1].std() > 0.01
    torch.testing.assert_close(*moved, rtol=0.05, atol=2e-3)


def loss_on(device):
    """The loss with random numbers that do not depend on the device."""
    graph = BipartiteGraph.from_interactions(skewed(), device, Engine(precision="float32"))
    method = advdrop()
    method.prepare(graph, Generators(1, device))
    draw, rows = torch.Generator().manual_seed(7), torch.arange(20, dtype=torch.int32, device=device)
    method._uniform = lambda _: torch.rand(2 * graph.edge_count, generator=draw).to(device)
    method._draw_nodes = lambda _: Nodes(rows, rows)
    return float(method.loss(Batch(*(part.to(device) for part in some_batch(graph)))).total)


@pytest.mark.gpu
def test_the_loss_on_cuda_is_the_loss_on_cpu_for_the_same_views():
    assert loss_on("cuda") == pytest.approx(loss_on("cpu"), rel=1e-4)
