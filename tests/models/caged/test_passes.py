"""The written-out gradient of the estimator against autograd, its recording, and updates on CUDA against CPU."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from caged.errors import DeviceError
from caged.graph import BipartiteGraph, Engine, Tables
from caged.models.caged import gradients
from caged.models.caged.estimator import Estimator, Network, Terms, chunk_size, power_sums
from caged.models.caged.gradients import FlatNetwork
from caged.models.caged.method import CAGED, CAGEDConfig
from caged.models.caged.passes import Course, PlainPasses, WrittenPasses, make_passes
from caged.models.caged.sides import sides_of
from caged.seeding import Generators
from caged.training import Loop, TrainConfig
from tests.graph.graphs import random_graph, random_weights
from tests.models.caged.test_method import update
from tests.models.logs import skewed

K = 6
EQUAL = Terms(1.0, 1.0)


class Trained:
    """An estimator on some embeddings, trained by one of the two ways."""

    def __init__(self, passes, *, layers=3, averaged=False, terms=EQUAL, directions=2, device="cpu", **options):
        batch_size, precision = options.pop("batch_size", 16), options.pop("precision", "auto")
        graph = random_graph(edges=60).to(device)
        draw = torch.Generator().manual_seed(5)
        self.vectors = Tables(
            *(torch.randn(count, K, generator=draw).to(device) for count in (graph.user_count, graph.item_count))
        )
        network = Network(K, layers, torch.device(device), torch.Generator().manual_seed(1))
        with torch.no_grad():  # some pairs reach the limit of log sigma^2, where the gradient stops
            network.log_variance.bias[:3] = torch.tensor([-12.0, -10.0, 12.0])
        noise = torch.Generator(device).manual_seed(2)
        self.estimator = Estimator(network, learning_rate=1e-2, averaged=averaged, precision=precision, noise=noise)
        sides = sides_of(graph, random_weights(graph, dtype=torch.float32))[:directions]
        self.passes = passes(self.estimator, Course(graph, sides, batch_size, terms), **options)

    def run(self, count=1):
        return self.passes.run(self.vectors, count)

    @property
    def numbers(self):
        """Network and moments; Adam's steps are in the moments."""
        return {name: value.detach().cpu().clone() for name, value in self.estimator.state().items()}


def check_equal(one, other, tolerance=1e-3):
    """Everything agrees to this share of the largest number beside it."""
    for _ in range(2):  # the second run starts from moments that are not zero
        assert one.run(2) == pytest.approx(other.run(2), rel=tolerance)
    for name, values in other.numbers.items():
        difference = (one.numbers[name] - values).abs().max()
        assert difference <= tolerance * values.abs().max(), name
    assert torch.equal(one.estimator.noise.get_state(), other.estimator.noise.get_state())


CASES = {
    "one layer": {"layers": 1},
    "two layers": {"layers": 2},
    "three layers": {"layers": 3},
    "four layers": {"layers": 4},
    "averaged": {"averaged": True},
    "scaled": {"terms": Terms(1.2, 0.3)},
    "no KL": {"terms": Terms(1.0, 0.0)},
    "users only": {"directions": 1},
    "one batch": {"batch_size": 60},
    "more places than edges": {"batch_size": 100},
}


@pytest.mark.parametrize("case", CASES)
def test_the_written_gradient_is_that_of_autograd(case):
    """The same network, moments, random numbers and reported terms after several passes."""
    check_equal(Trained(WrittenPasses, record=False, **CASES[case]), Trained(PlainPasses, **CASES[case]))


def test_the_clamp_of_the_log_variance_holds_in_these_tests():
    """Otherwise they would not see a gradient that goes through it."""
    trained = Trained(WrittenPasses, record=False)
    trained.run()
    held = trained.passes._step.heads[:, K:].abs() > 10
    assert held[:, [0, 2]].all()
    assert not held[:, 3:].any()


def test_products_in_bfloat16_follow_those_in_float32(monkeypatch):
    """The types of all buffers fit together; CPU lacks only the product with a float32 result."""
    monkeypatch.setattr(gradients, "_product", lambda left, right, out: out.copy_(left.float() @ right.float()))
    exact, rounded = Trained(WrittenPasses, record=False), Trained(WrittenPasses, record=False, precision="bf16")
    assert rounded.run(3) == pytest.approx(exact.run(3), rel=0.05)
    flat = rounded.passes._flat
    assert flat.rounded.dtype == torch.bfloat16
    assert torch.equal(flat.rounded, flat.values.bfloat16())  # rounded again after the last step
    assert flat.values.dtype == flat.gradients.dtype == torch.float32


def test_the_flat_numbers_are_those_of_the_network():
    network = Network(K, 3, torch.device("cpu"), torch.Generator().manual_seed(1))
    before = {name: values.detach().clone() for name, values in network.named_parameters()}
    flat = FlatNetwork(network, torch.float32)
    for name, values in network.named_parameters():
        assert torch.equal(values, before[name])
        assert values.untyped_storage().data_ptr() == flat.values.untyped_storage().data_ptr()
        assert values.grad.untyped_storage().data_ptr() == flat.gradients.untyped_storage().data_ptr()
    places = {values.data_ptr() for _, values in network.named_parameters()}
    assert len(places) == len(before)  # none on top of another
    assert all(layer.weight.data_ptr() % 256 == flat.values.data_ptr() % 256 for layer in [*flat.encoder, flat.heads])
    heads = torch.cat((before["mean.weight"], before["log_variance.weight"]))
    assert torch.equal(flat.heads.weight, heads)
    assert torch.equal(flat.heads.bias, torch.cat((before["mean.bias"], before["log_variance.bias"])))
    assert torch.equal(flat.decoder[1].weight, before["decoder.1.weight"])
    flat.heads.weight_gradient[K:] = 1.0
    assert (network.log_variance.weight.grad == 1).all()
    assert not network.mean.weight.grad.any()


def test_a_loaded_state_is_what_the_next_run_starts_from():
    trained, other = Trained(WrittenPasses, record=False), Trained(WrittenPasses, record=False)
    trained.run(2)
    for name, values in other.estimator.state().items():
        values.copy_(trained.numbers[name])
    other.estimator.noise.set_state(trained.estimator.noise.get_state())
    assert other.run() == trained.run()
    assert all(torch.equal(other.numbers[name], values) for name, values in trained.numbers.items())


def test_cpu_takes_the_plain_way():
    trained = Trained(make_passes, record=True)
    assert isinstance(trained.passes, PlainPasses)


# ---------------------------------------------------------------- scoring


@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_power_sums_are_accurate_in_float32(offset):
    """Also far from zero, where squares of a float32 sum would cancel: the variance that decides on a unit is 0.01."""
    draw = torch.Generator().manual_seed(0)
    values = offset + 0.1 * torch.randn(20_000, K, generator=draw)
    moments = sum(power_sums(part) for part in values.split(4096)) / len(values)
    exact = values.double()
    torch.testing.assert_close(moments[0], exact.mean(0), rtol=1e-6, atol=1e-7)
    variance = moments[1] - moments[0].square()
    torch.testing.assert_close(variance, exact.var(0, correction=0), rtol=2e-3, atol=0)


def test_chunks_on_cuda_follow_the_free_memory(monkeypatch):
    free = {"bytes": 2**36}
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free["bytes"], 2**37))
    cuda = torch.device("cuda")
    assert chunk_size(256, cuda) == 2**17  # four gibibytes
    assert chunk_size(64, cuda) == 2**19
    free["bytes"] = 3 * 2**28
    assert chunk_size(256, cuda) == 2**12  # a quarter of it, and a power of two
    free["bytes"] = 0
    assert chunk_size(256, cuda) == 1
    assert chunk_size(256, torch.device("cpu")) == 2**13


def test_half_precision_is_refused_on_cpu():
    method = CAGED(CAGEDConfig(embedding_size=K, estimator_precision="bf16"))
    method.prepare(random_graph(), Generators(1))
    with pytest.raises(DeviceError, match="estimator_precision is bf16"):
        update(method)


# ---------------------------------------------------------------- CUDA


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_a_recorded_step_equals_a_written_one(case):
    options = {"device": "cuda", "precision": "float32", **CASES[case]}
    recorded, written = Trained(WrittenPasses, record=True, **options), Trained(WrittenPasses, record=False, **options)
    check_equal(recorded, written)
    assert recorded.passes._replay is not None


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_a_recorded_step_equals_an_eager_one(case):
    options = {"device": "cuda", "precision": "float32", **CASES[case]}
    check_equal(Trained(WrittenPasses, record=True, **options), Trained(PlainPasses, **options))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_rounded_products_stay_near_exact_ones(precision):
    allowed = torch.backends.cuda.matmul.allow_tf32
    exact, rounded = (
        Trained(WrittenPasses, record=True, device="cuda", precision=kind).run(3) for kind in ("float32", precision)
    )
    assert rounded == pytest.approx(exact, rel=0.05)
    assert torch.backends.cuda.matmul.allow_tf32 == allowed


@pytest.mark.gpu
def test_one_recording_serves_every_update():
    trained = Trained(WrittenPasses, record=True, device="cuda")
    trained.run()
    recording = trained.passes._replay
    trained.vectors = Tables(*(table + 1 for table in trained.vectors))
    trained.run()
    assert recording is not None
    assert trained.passes._replay is recording


@pytest.mark.gpu
@pytest.mark.parametrize("weight_form", ["paper", "code", "normalised"])
def test_an_update_on_cuda_equals_one_on_cpu(weight_form):
    """Whole batches, so that the order of the edges does not matter, and a posterior that hardly varies.

    log sigma^2 is held at its lower limit, where z = mu + 0.007 tau and no gradient reaches sigma.
    """
    log = skewed()
    options = {"embedding_size": 8, "estimator_batch_size": len(log), "estimator_layers": 3, "eps": 0.5}
    config = CAGEDConfig(**options, score_z="mean", weight_form=weight_form, estimator_learning_rate=1e-3)
    on_cpu, on_gpu = CAGED(config), CAGED(dataclasses.replace(config, estimator_precision="float32"))
    on_cpu.prepare(BipartiteGraph.from_interactions(log), Generators(1))
    on_gpu.prepare(BipartiteGraph.from_interactions(log, "cuda", Engine(precision="float32")), Generators(1, "cuda"))
    for method in (on_cpu, on_gpu):
        with torch.no_grad():
            method.estimator.network.log_variance.weight.zero_()
            method.estimator.network.log_variance.bias.fill_(-20.0)
    logs = [update(method, 3) for method in (on_cpu, on_gpu)]
    assert isinstance(on_gpu.passes, WrittenPasses)
    torch.testing.assert_close(on_gpu.weights.to_user.cpu(), on_cpu.weights.to_user, rtol=1e-2, atol=1e-5)
    torch.testing.assert_close(on_gpu.weights.to_item.cpu(), on_cpu.weights.to_item, rtol=1e-2, atol=1e-5)
    for one, other in zip(*logs, strict=True):
        assert one["training"] == pytest.approx(other["training"], rel=1e-2)
        assert one["operator_norm"] == pytest.approx(other["operator_norm"], rel=1e-2)


def scripted(values):
    """A validation that says one value after the other."""
    script = iter(values)
    return lambda _: {"recall@20": next(script)}


@pytest.mark.gpu
@pytest.mark.parametrize("without", ["none", "two_stage"])
def test_a_recorded_estimator_and_recorded_epochs_get_along(without):
    """Two recordings share random streams; a run without that of the estimator sees the same numbers."""
    log = skewed()
    config = TrainConfig(epochs=4, batch_size=48, learning_rate=0.01, patience=None, precision="float32")
    weights = []
    for capture in (True, False):
        options = {"embedding_size": 8, "estimator_batch_size": 64, "eps": 0.1, "estimator_precision": "float32"}
        method = CAGED(CAGEDConfig(**options, estimator_capture=capture, without=without, estimator_pretrain_epochs=2))
        graph = BipartiteGraph.from_interactions(log, "cuda", config.engine)
        Loop(method, graph, config, Generators(1, "cuda"), scripted([0.1, 0.3, 0.2, 0.4] * 2)).run()
        assert isinstance(method.passes, WrittenPasses) == capture
        assert method.updates > 0
        weights.append(torch.stack((method.weights.to_user, method.weights.to_item)).cpu())
    torch.testing.assert_close(*weights, rtol=1e-2, atol=1e-5)
